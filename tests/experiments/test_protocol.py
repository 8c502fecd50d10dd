"""One protocol: the same splits and flips for all, noise in the training part only."""

import csv
from collections import Counter, defaultdict

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MinMaxScaler

from tests.experiments.beside import paper_table
from unflip.datasets import make_separable
from unflip.paper.experiments import (
    EXPERIMENTS,
    Run,
    dataset_table,
    noisy_split,
    perform,
    planned_runs,
    published,
    stated_choices,
)

CASE = ("synthetic-2d", 0.3, 0.1)
PROTOCOL = "unflip.paper.experiments._protocol"


class Witness:
    """A classifier that keeps what it is shown."""

    def fit(self, X, y):
        self.training = X, y
        return self

    def predict(self, X):
        self.test_rows = X
        return np.ones(len(X))


@pytest.fixture
def witnesses(monkeypatch):
    """Collect a witness per run, with small tables in place of the benchmark's."""
    seen = []

    def witness(*arguments, **options):
        seen.append(Witness())
        return seen[-1]

    monkeypatch.setattr(f"{PROTOCOL}.make_classifier", witness)
    monkeypatch.setattr(f"{PROTOCOL}.make_rate_estimator", witness)
    monkeypatch.setattr(
        f"{PROTOCOL}.load_benchmark", lambda name: make_separable(80, 3, random_state=len(name))
    )
    return seen


def test_every_method_learner_and_table_sees_the_same_split_and_flips(witnesses):
    names = [name for name in EXPERIMENTS if "heart" in EXPERIMENTS[name].datasets]
    runs = [
        run
        for run in planned_runs(names, 1, peers=True, datasets=["heart"])
        if (run.rho_pos, run.rho_neg, run.repeat) == (0.2, 0.2, 0)
    ]
    assert {run.experiment for run in runs} == set(names)
    for run in runs:
        perform(run)
    X_first, y_first = witnesses[0].training
    for run, witness in zip(runs, witnesses, strict=True):
        X, y = witness.training
        np.testing.assert_array_equal(X, X_first)
        # cleanlab takes 0 and 1
        np.testing.assert_array_equal(2 * y - 1 if run.method == "cleanlab" else y, y_first)
        if not EXPERIMENTS[run.experiment].measures_rates:
            assert len(witness.test_rows) == 20


def test_a_method_is_scored_on_the_clean_labels(witnesses):
    outcome = perform(Run("figure1", "linear-logistic", *CASE, "plain", 4))
    _, _, _, y_test, _ = noisy_split(*CASE, 4)
    assert outcome.accuracy == 100 * np.mean(y_test == 1)  # the witness says +1 to all


def test_a_split_is_drawn_once_per_repeat_and_noise_changes_its_training_labels_only():
    X, y = dataset_table("synthetic-2d", 5)
    true = {tuple(row): label for row, label in zip(X, y, strict=True)}
    X_train, y_noisy, X_test, y_test, clean_prior = noisy_split(*CASE, 5)
    assert (len(X_train), len(y_noisy), len(X_test), len(y_test)) == (750, 750, 250, 250)
    together = np.concatenate([X_train, X_test])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(X, axis=0))
    assert clean_prior == np.mean(y == 1)
    assert [true[tuple(row)] for row in X_test] == y_test.tolist()
    assert [true[tuple(row)] for row in X_train] != y_noisy.tolist()
    # drawn again, with other noise
    X_again, _, X_test_again, y_test_again, _ = noisy_split("synthetic-2d", 0.4, 0.4, 5)
    np.testing.assert_array_equal(X_train, X_again)
    np.testing.assert_array_equal(X_test, X_test_again)
    np.testing.assert_array_equal(y_test, y_test_again)
    # and for another repeat
    assert not np.isin(X, dataset_table("synthetic-2d", 6)[0]).any()


@pytest.mark.parametrize("pair", [(0.0, 0.4), (0.3, 0.1), (0.4, 0.4)])
def test_the_flipped_shares_are_the_rates(pair):
    shares = []
    for repeat in range(20):
        _, y_true, *_ = noisy_split("synthetic-2d", 0.0, 0.0, repeat)
        _, y_noisy, *_ = noisy_split("synthetic-2d", *pair, repeat)
        wrong = y_noisy != y_true
        shares.append((wrong[y_true == 1].mean(), wrong[y_true == -1].mean()))
    # 7500 labels of each class: a standard deviation of 0.0057 at most
    np.testing.assert_allclose(np.mean(shares, axis=0), pair, atol=0.02)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("table1", 2 * 3 * 3),
        ("table2", 2 * 3 * 3),
        ("table3", 6 * 3 * 5),
        ("table4", 6 * 3 * 5),
        ("table5", 6 * 3 * 4),
        ("table6", 6 * 3 * 5),
        ("figure1", 6 * (3 + 4)),
        ("levels", 4 * 6 * 11 * 4),
    ],
)
def test_an_experiment_has_so_many_runs_per_repeat(name, expected):
    runs = list(planned_runs([name], 3))
    assert len(runs) == len(set(runs)) == 3 * expected


def test_the_unbiased_loss_is_not_run_with_the_hinge():
    learners = {run.learner for run in planned_runs(EXPERIMENTS, 1) if run.method == "ub"}
    assert learners == {"kernel-logistic", "linear-logistic"}


def test_cleanlab_is_run_among_peers_only_and_in_tables_4_and_6():
    def tables(peers):
        runs = planned_runs(EXPERIMENTS, 1, peers=peers)
        return Counter(run.experiment for run in runs if run.method == "cleanlab")

    assert tables(peers=True) == {"table4": 18, "table6": 18}
    assert not tables(peers=False)


def test_runs_can_be_limited_to_some_data_sets():
    runs = list(planned_runs(["table6"], 1, datasets=["heart", "thyroid"]))
    assert {run.dataset for run in runs} == {"heart", "thyroid"}


def test_every_published_figure_is_planned_and_every_planned_cell_of_a_table_published():
    planned = {
        ((run.experiment, run.dataset, run.rho_pos, run.rho_neg, run.method), quantity)
        for run in planned_runs([f"table{k}" for k in range(1, 7)], 1)
        for quantity in (
            ("rho_pos", "rho_neg") if EXPERIMENTS[run.experiment].measures_rates else ("accuracy",)
        )
    }
    assert set(published()) == planned


@pytest.mark.parametrize("number", range(1, 7))
def test_the_published_figures_are_those_of_the_papers_table(number):
    name, expected = f"table{number}", {}
    with paper_table(number).open() as file:
        for row in csv.DictReader(file):
            pair = float(row["rho_pos"]), float(row["rho_neg"])
            cell = (name, row["dataset"], *pair, row["method"])
            for quantity, column in (
                ("accuracy", "accuracy"),
                ("rho_pos", "est_rho_pos"),
                ("rho_neg", "est_rho_neg"),
            ):
                if f"{column}_mean" in row:
                    figures = float(row[f"{column}_mean"]), float(row[f"{column}_sd"])
                    expected[cell, quantity] = figures
    ours = {key: (p.mean, p.sd) for key, p in published().items() if key[0][0] == name}
    assert ours == expected


@pytest.mark.parametrize(
    "run",
    [
        Run("table1", "", *CASE, "liu-tao", 1),
        Run("table1", "", *CASE, "scott", 1),
        Run("figure1", "linear-hinge", *CASE, "ld", 1),
        Run("figure1", "linear-logistic", *CASE, "ub", 1),
    ],
    ids=lambda run: run.method,
)
def test_a_run_done_again_measures_the_same(run):
    first, again = perform(run), perform(run)
    assert (first.accuracy, first.rho_pos, first.rho_neg) == (
        again.accuracy,
        again.rho_pos,
        again.rho_neg,
    )
    assert first.seconds > 0


def test_an_outcome_holds_rates_in_the_rate_tables_and_accuracy_in_the_others():
    rates = perform(Run("table1", "", *CASE, "scott", 0))
    assert rates.accuracy is None
    assert 0 <= rates.rho_pos < 1
    assert 0 <= rates.rho_neg < 1
    plain = perform(Run("figure1", "linear-hinge", *CASE, "plain", 0))
    assert 50 < plain.accuracy <= 100
    assert (plain.rho_pos, plain.rho_neg) == (None, None)


def test_known_rates_are_told_to_the_method():
    outcome = perform(Run("figure1", "linear-logistic", *CASE, "ld", 0))
    assert (outcome.rho_pos, outcome.rho_neg) == CASE[1:]


@pytest.mark.parametrize("repeat", range(3))
def test_the_plain_linear_logistic_accuracy_is_that_of_scikit_learn(repeat):
    X_train, y_noisy, X_test, y_test, _ = noisy_split(*CASE, repeat)
    chosen = stated_choices()
    scaler = MinMaxScaler(tuple(chosen["feature_range"])).fit(X_train)
    model = LogisticRegression(C=1 / (chosen["alpha"] * len(y_noisy)), tol=1e-8, max_iter=1000)
    model.fit(scaler.transform(X_train), y_noisy)
    expected = 100 * model.score(scaler.transform(X_test), y_test)
    outcome = perform(Run("figure1", "linear-logistic", *CASE, "plain", repeat))
    assert outcome.accuracy == pytest.approx(expected, abs=1e-9)


def test_the_four_tables_of_accuracy_differ_in_their_learner_only():
    settings = defaultdict(set)
    for number in range(3, 7):
        experiment = EXPERIMENTS[f"table{number}"]
        settings["learners"].add(experiment.learners)
        settings["the rest"].add((experiment.datasets, experiment.pairs, experiment.known_rates))
    assert len(settings["learners"]) == 4
    assert len(settings["the rest"]) == 1
