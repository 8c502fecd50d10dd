"""What commands refuse, and what they leave out, after the first hour."""

import pytest

from tests.cli.mixed import COLUMNS
from unflip._app.persistence import packages_of


def test_fit_prints_the_verdict_and_not_the_whole_estimate(run, noisy, tmp_path):
    found = run("fit", noisy, *COLUMNS, "--out", tmp_path / "m.unflip")
    assert found.exit_code == 0, found.output
    before, trained, _ = found.stdout.partition("Trained")
    assert trained
    assert "labels are wrong" in before
    assert "truly" not in before
    assert len(before.splitlines()) <= 6


@pytest.mark.parametrize("command", ["estimate", "audit", "fit"])
def test_an_option_of_one_value_is_given_once(run, noisy, command):
    found = run(command, noisy, *COLUMNS, "--label", "truth")
    assert found.exit_code == 2
    assert "--label" in found.output
    found = run("estimate", noisy, *COLUMNS, "--seed", "1", "--seed=2")
    assert found.exit_code == 2
    # what may be repeated still may
    assert run("estimate", noisy, *COLUMNS, "--drop", "city", "--quiet").exit_code in (0, 2)


@pytest.mark.parametrize("name", ["model.pkl", "MODEL.PKL", "model.joblib", "model.pickle"])
def test_a_model_file_is_not_called_a_pickle(run, noisy, tmp_path, name):
    found = run("fit", noisy, *COLUMNS, "--out", tmp_path / name)
    assert found.exit_code == 2
    assert ".unflip" in found.output
    assert not list(tmp_path.iterdir())


def test_a_package_is_trusted_by_its_name(run, noisy, tmp_path):
    model = tmp_path / "m.unflip"
    forest = ("--estimator", "sklearn.ensemble.RandomForestClassifier")
    fitted = run("fit", noisy, *COLUMNS, *forest, "--out", model)
    assert fitted.exit_code == 0, fitted.output
    predict = ("predict", model, noisy, "--out", tmp_path / "p.csv")
    for wrong in ((), ("--trust", "sklearn_other")):
        refused = run(*predict, *wrong)
        assert (refused.exit_code, "--trust" in refused.stderr) == (2, True)
    assert run(*predict, "--trust", "sklearn").exit_code == 0


def test_options_have_the_names_of_their_python_twins(run, noisy):
    names = (("--positive", "--pos-label"), ("--rates", "--noise-rates"))
    values = ("no", "0.1,0.3")
    shown = [
        run(
            "estimate",
            noisy,
            *COLUMNS,
            "--json",
            *(word for pair in zip(each, values, strict=True) for word in pair),
        )
        for each in zip(*names, strict=True)
    ]
    assert shown[0].exit_code == 0, shown[0].output
    assert shown[0].stdout == shown[1].stdout
    assert run("estimate", noisy, *COLUMNS, "--rates", "?,?", "--noise-rates", "?,?").exit_code == 2
    for name in ("--pred-probs", "--checked"):
        assert name in run("audit", "--help").stdout


def test_types_of_the_standard_library_are_trusted_one_by_one():
    names = ["collections.OrderedDict", "lightgbm.basic.Booster", "lightgbm.sklearn.X", "os.system"]
    assert packages_of(names) == ["lightgbm", "os.system"]
