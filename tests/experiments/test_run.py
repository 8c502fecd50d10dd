"""Finished runs are written down at once, read back, and not done twice."""

import json

import pytest

from unflip.paper.experiments import Journal, Outcome, Run, run_all, stated_choices

MODULE = "unflip.paper.experiments._run"
PERFORM = f"{MODULE}.perform"
RUNS = [Run("table6", "linear-logistic", "heart", 0.3, 0.1, "plain", k) for k in range(6)]


@pytest.fixture
def performed(monkeypatch):
    """Take the place of `perform`, and list the runs it was asked for."""
    calls = []

    def fake(run):
        calls.append(run)
        return Outcome(60.0 + run.repeat, None, 0.1, 0.25)

    monkeypatch.setattr(PERFORM, fake)
    return calls


def lines_of(folder):
    return (folder / "runs.jsonl").read_text().splitlines(keepends=True)


def test_a_journal_reads_back_what_it_wrote(tmp_path):
    outcomes = {run: Outcome(1 / 3 + run.repeat, None, 0.1, 2e-7) for run in RUNS}
    with Journal(tmp_path) as journal:
        for run, outcome in outcomes.items():
            journal.add(run, outcome)
    assert Journal(tmp_path).outcomes == outcomes


def test_a_run_is_in_the_file_as_soon_as_it_is_added(tmp_path):
    with Journal(tmp_path) as journal:
        journal.add(RUNS[0], Outcome(70.0, None, None, 0.1))
        assert set(Journal(tmp_path).outcomes) == {RUNS[0]}


def test_a_journal_makes_its_folder_only_when_it_is_written(tmp_path):
    journal = Journal(tmp_path / "new" / "folder")
    assert not journal.outcomes
    assert not (tmp_path / "new").exists()
    with journal:
        assert journal.path.exists()


def test_all_runs_are_performed_once_and_yielded(tmp_path, performed):
    journal = Journal(tmp_path)
    yielded = list(run_all(RUNS, journal, n_jobs=1))
    assert sorted(yielded, key=RUNS.index) == RUNS
    assert sorted(performed, key=RUNS.index) == RUNS
    assert journal.outcomes[RUNS[2]].accuracy == 62
    assert Journal(tmp_path).outcomes == journal.outcomes


def test_only_missing_runs_are_performed(tmp_path, performed):
    list(run_all(RUNS[:2], Journal(tmp_path), n_jobs=1))
    performed.clear()
    assert set(run_all(RUNS, Journal(tmp_path), n_jobs=1)) == set(RUNS[2:]) == set(performed)
    performed.clear()
    assert not list(run_all(RUNS, Journal(tmp_path), n_jobs=1))
    assert not performed


def test_a_line_that_was_cut_off_is_dropped_and_its_run_done_again(tmp_path, performed):
    list(run_all(RUNS, Journal(tmp_path), n_jobs=1))
    path = tmp_path / "runs.jsonl"
    *kept, last = lines_of(tmp_path)
    lost = Run(**json.loads(last)["run"])
    path.write_text("".join(kept) + last[: len(last) // 2])
    performed.clear()
    journal = Journal(tmp_path)
    assert set(journal.outcomes) == set(RUNS) - {lost}
    assert list(run_all(RUNS, journal, n_jobs=1)) == performed == [lost]
    assert lines_of(tmp_path) == [*kept, last]


def test_a_first_line_that_was_cut_off_is_written_again(tmp_path, performed):
    (tmp_path / "runs.jsonl").write_text('{"unflip": "0.1')
    list(run_all(RUNS, Journal(tmp_path), n_jobs=1))
    assert set(Journal(tmp_path).outcomes) == set(RUNS)


@pytest.mark.parametrize("changed", ["version", "choices"])
def test_runs_of_another_version_or_of_other_choices_are_refused(
    tmp_path, performed, monkeypatch, changed
):
    list(run_all(RUNS, Journal(tmp_path), n_jobs=1))
    if changed == "version":
        monkeypatch.setattr(f"{MODULE}.__version__", "99")
    else:
        changed_choices = stated_choices() | {"alpha": 1.0}
        monkeypatch.setattr(f"{MODULE}.stated_choices", lambda: changed_choices)
    before = lines_of(tmp_path)
    with pytest.raises(ValueError, match=r"runs\.jsonl holds runs of another version") as refusal:
        Journal(tmp_path)
    assert str(tmp_path) in str(refusal.value)
    assert "--force" in str(refusal.value)
    assert lines_of(tmp_path) == before


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
def test_a_stop_midway_keeps_the_finished_runs(tmp_path, performed, monkeypatch, stop):
    def stops(run):
        raise stop

    with monkeypatch.context() as patch:
        going = run_all(RUNS, Journal(tmp_path), n_jobs=1)
        for _ in range(3):
            next(going)
        patch.setattr(PERFORM, stops)
        with pytest.raises(stop):
            next(going)
    assert len(performed) == 3
    assert set(Journal(tmp_path).outcomes) == set(performed)
    again = list(run_all(RUNS, Journal(tmp_path), n_jobs=1))
    assert len(again) == 3
    assert set(Journal(tmp_path).outcomes) == set(RUNS)


def test_a_reader_who_stops_listening_keeps_the_runs_yielded(tmp_path, performed):
    runs = run_all(RUNS, Journal(tmp_path), n_jobs=1)
    heard = [next(runs), next(runs)]
    runs.close()
    assert set(Journal(tmp_path).outcomes) >= set(heard)


@pytest.mark.slow  # starting processes takes seconds
def test_two_processes_measure_what_one_does(tmp_path):
    runs = [
        Run("figure1", "linear-logistic", "synthetic-2d", 0.3, 0.1, method, 0)
        for method in ("plain", "ld")
    ]
    measured = []
    for n_jobs in (1, 2):
        journal = Journal(tmp_path / str(n_jobs))
        list(run_all(runs, journal, n_jobs=n_jobs))
        measured.append({run: journal.outcomes[run].accuracy for run in runs})
    assert measured[0] == measured[1]
