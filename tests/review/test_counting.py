"""Rows drawn to count and to train, recorded with their probabilities."""

from contextlib import closing

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.review.made import client_of, made_audit, made_table
from unflip import CheckedLabels
from unflip.review import Decisions, ReviewTable, export

TABLE = made_table()
AUDIT = made_audit(TABLE)
REVIEW = ReviewTable(TABLE, "kind", id_column="name")
GIVEN = REVIEW.codes
LABELS = TABLE["kind"].to_numpy()


@pytest.fixture
def store(tmp_path):
    with Decisions(tmp_path / "d.sqlite", REVIEW.fingerprint) as opened:
        opened.sample(20, random_state=0)
        yield opened


class Page:
    """The page of a review, as far as it draws rows and counts."""

    def __init__(self, store, table=TABLE, random_state=0):
        review, self._store = ReviewTable(table, "kind", id_column="name"), store
        options = {"title": "Fruit", "sample_size": 5, "random_state": random_state}
        folder = store.path.parent / "out"
        self._client = client_of(review, made_audit(table), store, folder, **options)

    def draw(self, goal):
        assert self._client.get(f"api/queue?queue={goal}").status_code == 200
        return self._store.drawn.draws()

    def estimate(self):
        return self._client.get("api/tally").json()["counted"]

    def close(self):
        self._client.close()


@pytest.fixture
def counting(store):
    with closing(Page(store)) as page:
        yield page


def answer(store, row, queue, *, wrong=False):
    label = int(1 - GIVEN[row] if wrong else GIVEN[row])
    version = store.current(row).version
    store.decide(row, version, "change" if wrong else "keep", label, queue=queue)


def answer_open(store, draws, queue, n):
    opened = [draw.row for draw in draws if store.current(draw.row).verdict is None]
    for row in opened[:n]:
        answer(store, row, queue, wrong=row % 3 == 0)


def test_the_draws_are_those_of_checked_labels(store, counting):
    draws = counting.draw("count")
    seed = int(np.random.SeedSequence([0, 0]).generate_state(1)[0])
    picks = CheckedLabels([], []).next_rows(
        GIVEN, AUDIT.mislabel_proba_, goal="count", n=len(draws), random_state=seed
    )
    assert [draw.row for draw in draws] == picks.rows.tolist()
    assert_allclose([draw.probability for draw in draws], picks.probability)
    assert counting.draw("count") == draws  # nothing more while these are open


@pytest.mark.parametrize("goals", [("count",) * 6, ("train",) * 6, ("count", "train") * 3])
def test_no_row_is_drawn_twice_and_all_are_drawn_at_last(tmp_path, goals):
    small = ReviewTable(TABLE[:45], "kind", id_column="name")
    with Decisions(tmp_path / "d.sqlite", small.fingerprint) as store:
        store.sample(5, random_state=0)
        with closing(Page(store, TABLE[:45])) as counting:
            for goal in goals:
                answer_open(store, counting.draw(goal), goal, 100)
            draws = store.drawn.draws()
            assert sorted(draw.row for draw in draws) == list(range(45))
            assert draws[-1].probability == pytest.approx(1)
            assert counting.draw("count") == draws
            found = counting.estimate()
        wrong = np.mean([store.current(row).verdict == "change" for row in range(45)])
        assert found["low"] <= wrong <= found["high"]


def test_more_are_drawn_when_few_are_open_and_other_goals_go_on_from_them(store, counting):
    first = counting.draw("count")
    n = len(first)
    answer_open(store, first, "count", n - 3)
    assert counting.draw("train") == first
    answer_open(store, first, "count", 1)
    more = counting.draw("train")
    assert more[:n] == first
    assert [draw.goal for draw in more[n:]] == ["train"] * n


def test_the_estimate_is_that_of_the_reviewed_draws(store, counting):
    assert counting.estimate()["value"] is None
    assert (counting.estimate()["low"], counting.estimate()["high"]) == (0, 1)
    draws = counting.draw("count")
    answer_open(store, draws, "count", 2)
    answer(store, draws[5].row, "count", wrong=True)  # three are passed by
    found = counting.estimate()
    assert (found["n_rows"], found["n_unsure"]) == (6, 3)
    rows = [draw.row for draw in draws[:6]]
    labels = [store.current(row).label for row in rows]
    labels = ["unsure" if label is None else REVIEW.names[label] for label in labels]
    checked = CheckedLabels(rows, labels, [draw.probability for draw in draws[:6]])
    by_hand = checked.label_error_rate(LABELS, AUDIT.mislabel_proba_)
    assert found["value"] == pytest.approx(by_hand.value)
    assert (found["low"], found["high"]) == pytest.approx(by_hand.anytime)
    assert found["fixed"] == pytest.approx(by_hand.interval)
    assert found["more"] == checked.rows_needed(LABELS, AUDIT.mislabel_proba_)
    assert found["more_always"] >= found["more"]


def test_a_row_that_was_decided_for_its_suspicion_counts_when_it_is_drawn(store, counting):
    draws = counting.draw("count")
    answer(store, draws[0].row, "suspicious", wrong=True)
    assert counting.estimate()["n_rows"] == 0
    answer(store, draws[1].row, "count")
    found = counting.estimate()
    assert (found["n_rows"], found["n_unsure"]) == (2, 0)
    store.undo(draws[1].row, 1)
    assert counting.estimate()["n_rows"] == 0


def test_a_reviewed_random_sample_begins_the_draws(store, counting):
    sample = store.sample(20)
    for row in sample[:4]:
        answer(store, row, "sample")
    assert counting.estimate()["n_rows"] == 4
    draws = counting.draw("count")
    assert [draw.row for draw in draws[:4]] == sample[:4]
    assert_allclose([draw.probability for draw in draws[:4]], 1 / (300 - np.arange(4)))
    answer(store, draws[4].row, "count")
    assert counting.estimate()["n_rows"] == 5
    assert len(store.drawn.reviewed_sample()) == 4  # its own estimate is as it was


def test_what_is_drawn_is_exported_with_its_probability(store, counting, tmp_path):
    for _ in range(3):
        answer_open(store, counting.draw("count"), "count", 10)
    by_hand = next(row for row in range(300) if store.current(row).version == 0)
    answer(store, by_hand, "suspicious", wrong=True)
    path = export(TABLE, "kind", store.path, tmp_path / "out", id_column="name").reviewed
    checked = CheckedLabels.from_file(path, LABELS)
    draws = store.drawn.draws()
    assert checked.rows.tolist() == [*(draw.row for draw in draws), by_hand]
    assert_allclose(checked.probability[:-1], [draw.probability for draw in draws])
    assert not checked.is_drawn[-1]
    found, shown = checked.label_error_rate(LABELS, AUDIT.mislabel_proba_), counting.estimate()
    assert shown["value"] == pytest.approx(found.value)
    assert (shown["low"], shown["high"]) == pytest.approx(found.anytime)


def test_two_processes_do_not_draw_over_each_other(store, counting):
    with (
        Decisions(store.path, REVIEW.fingerprint) as other,
        closing(Page(other, random_state=7)) as page,
    ):
        theirs = page.draw("count")
    assert counting.draw("count") == theirs
    store.drawn.add_draws(theirs[::-1], after=0)  # too late
    assert store.drawn.draws() == theirs


def test_another_table_starts_draws_of_its_own(tmp_path):
    path = tmp_path / "d.sqlite"
    with Decisions(path, REVIEW.fingerprint) as store:
        store.sample(5, random_state=0)
        with closing(Page(store)) as page:
            draws = page.draw("count")
        answer_open(store, draws, "count", 5)
    fewer = ReviewTable(TABLE[:290], "kind", id_column="name")
    with Decisions(path, fewer.fingerprint) as store:
        store.sample(5, random_state=0)
        assert store.drawn.draws() == store.drawn.counted() == []
    with Decisions(path, REVIEW.fingerprint) as store:
        assert store.drawn.draws() == draws
        assert len(store.drawn.counted()) == 5


def test_the_page_is_told_the_goal_and_the_model_is_hidden(store, tmp_path):
    options = {"title": "Fruit", "sample_size": 20, "random_state": 0, "goal": "count"}
    client = client_of(REVIEW, AUDIT, store, tmp_path / "out", **options)
    about = client.get("api/about").json()
    assert about["queue"] == "count"
    assert set(about["goals"]) == {"suspicious", "count", "train"}
    for goal in ("count", "train"):
        queue = client.get(f"api/queue?queue={goal}").json()
        assert len(queue["rows"]) == 10
        assert all(entry["probability"] is entry["suggested"] is None for entry in queue["rows"])
        row = client.get(f"api/row?row={queue['rows'][0]['row']}&queue={goal}").json()
        assert row["probability"] is row["suggested"] is row["truth"] is None
    body = {"row": queue["rows"][0]["row"], "version": 0, "verdict": "keep", "queue": "count"}
    counted = client.post("api/decide", body).json()["tally"]["counted"]
    assert counted["n_rows"] == 1
    client.close()
    with pytest.raises(ValueError, match="goal='look'"):
        client_of(REVIEW, AUDIT, store, tmp_path, **options | {"goal": "look"})


def test_a_person_who_counts_is_told_the_truth(tmp_path):
    """Over sessions, the draws' estimate is unbiased and its interval covers at every moment."""
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(300) < AUDIT.mislabel_proba_, 1 - GIVEN, GIVEN)
    share, found, covered = np.mean(truth != GIVEN), [], []
    for session in range(15):
        with Decisions(tmp_path / f"{session}.sqlite", REVIEW.fingerprint) as store:
            store.sample(1, random_state=session)
            always = True
            with closing(Page(store, random_state=session)) as page:
                for _ in range(3):
                    for draw in page.draw("count"):
                        if store.current(draw.row).verdict is None:
                            wrong = truth[draw.row] != GIVEN[draw.row]
                            answer(store, draw.row, "count", wrong=wrong)
                    seen = page.estimate()
                    always &= seen["low"] <= share <= seen["high"]
            found.append(seen["value"])
            covered.append(always)
    assert abs(np.mean(found) - share) < 4 * np.std(found) / np.sqrt(15)
    assert np.mean(covered) > 0.85
