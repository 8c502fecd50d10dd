"""Training and audit with checked rows."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from unflip import CheckedLabels, ImportanceReweightingClassifier, LabelAudit, NoiseRates
from unflip.checked._error_model import (
    ErrorModel,
    Evidence,
    PriorEstimate,
    _stacked,
)
from unflip.checked.internals import Features
from unflip.inspection import summary

N = 800
KNOWN = NoiseRates(positive=0.0, negative=0.0)


def by_rule(seed: int = 0):
    """Return rows, labels by a rule that is often wrong, and true ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4))
    true = (X @ [1.0, 1.0, 1.0, 0.0] + 0.3 * rng.normal(size=N) > 0).astype(int)
    return X, (X[:, 0] > 0.7).astype(int), true


def quick(**changes) -> ImportanceReweightingClassifier:
    return ImportanceReweightingClassifier(
        posterior="probabilistic", noise_rates=KNOWN, random_state=0, **changes
    )


def audited(X, y, checked) -> LabelAudit:
    return LabelAudit("probabilistic", KNOWN, random_state=0).fit(X, y, checked=checked)


def drawn(true, n: int, seed: int = 0) -> CheckedLabels:
    rows = np.random.default_rng(seed).choice(true.size, n, replace=False)
    return CheckedLabels(rows, true[rows], probability=n / true.size)


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_a_hundred_checked_rows_teach_what_a_rule_gets_wrong() -> None:
    X, y, true = by_rule()
    plain = quick().fit(X, y).score(X, true)
    checked = drawn(true, 100)
    taught = quick().fit(X, y, checked=checked)
    alone = LogisticRegression().fit(X[checked.rows], true[checked.rows])
    assert taught.score(X, true) > plain + 0.15
    assert taught.score(X, true) > alone.score(X, true) - 0.02
    low, high = taught.label_error_range_
    assert low <= (y != true).mean() <= high
    assert "checked_disagree" in [one.code for one in taught.noise_.findings]
    assert_array_equal(taught.mislabel_proba_[checked.rows], (y != true)[checked.rows])
    right = np.diag(taught.transition_matrix_)
    assert_allclose(right, [np.mean(y[true == k] == k) for k in (0, 1)], atol=0.1)


def test_what_is_said_of_other_rows_is_as_sure_as_it_is_right() -> None:
    """Half as many columns as checked rows, which leaves much room to explain them too well."""
    said, right = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(600, 40))
        true = (X[:, :8].sum(axis=1) + 2 * rng.normal(size=600) > 0).astype(int)
        y = (X[:, 0] + X[:, 1] > 0).astype(int)
        checked = drawn(true, 80, seed)
        found = audited(X, y, checked).label_proba_
        left = np.setdiff1d(np.arange(600), checked.rows)
        said.append(found[left].max(axis=1).mean())
        right.append(np.mean(found[left].argmax(axis=1) == true[left]))
    assert np.mean(said) == pytest.approx(np.mean(right), abs=0.06)


def test_columns_that_vary_more_may_say_more() -> None:
    """Components of an embedding: two that count, and forty small ones that do not."""
    rng = np.random.default_rng(0)
    spread = np.r_[1.0, 1.0, np.full(40, 0.05)]
    x = rng.normal(size=(600, 42))
    true = (x[:, 0] + x[:, 1] > 0).astype(int)
    y = (x[:, 0] > 0).astype(int)
    checked = drawn(true, 60)
    left = np.setdiff1d(np.arange(600), checked.rows)
    # P(observed | x) tells nothing, so that the columns do
    audit = LabelAudit(DummyClassifier(strategy="uniform", random_state=0), KNOWN)
    as_given, alike, scaled = (
        clone(audit).fit(X, y, checked=checked) for X in (x * spread, x, 1000 * x * spread)
    )
    right = [np.mean(v.label_proba_[left].argmax(1) == true[left]) for v in (as_given, alike)]
    assert right[0] > right[1] + 0.02
    share = sum(v for k, v in as_given.checked_.hypotheses.items() if k.endswith("as given"))
    assert share > 0.5
    # in whatever unit
    assert_allclose(scaled.label_proba_, as_given.label_proba_, atol=1e-5)


def test_columns_that_say_more_of_the_noisy_labels_may_say_more_of_the_truth() -> None:
    """Components of equal variance: a rule knows one of the two that count, forty do not count."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 42))
    true = (x[:, 0] + x[:, 1] > 0).astype(int)
    y = (x[:, 0] + 0.5 * x[:, 1] + 0.5 > 0).astype(int)
    checked = drawn(true, 60)
    found = audited(x, y, checked)
    left = np.setdiff1d(np.arange(600), checked.rows)
    share = sum(v for k, v in found.checked_.hypotheses.items() if k.endswith("by labels"))
    assert share > 0.3
    assert np.mean(found.label_proba_[left].argmax(axis=1) == true[left]) > np.mean(y == true)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_column_counts_by_the_share_of_its_variance_that_labels_explain(kind) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 300)
    X = 5 + rng.normal(size=(300, 4)) * [1, 2, 3, 0] + 2 * np.eye(3, 4)[codes]
    X[:, 3] = 7  # says nothing
    between = np.zeros(4)
    for k in range(3):
        between += np.mean(codes == k) * (X[codes == k].mean(axis=0) - X.mean(axis=0)) ** 2
    share = between[:3] / X[:, :3].var(axis=0)
    found = Features.of(kind(X), codes[:0], np.eye(3)[codes]).transform(kind(X))["by labels"]
    spread = np.std(found.toarray() if sparse.issparse(found) else found, axis=0)
    assert_allclose(spread[:3] / spread[0], share / share[0])
    assert spread[3] < 1e-5
    even = Features.of(X, codes[:0], np.full((300, 3), 1 / 3))
    assert "by labels" not in even.scales


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_no_checked_rows_change_nothing() -> None:
    X, y, _ = by_rule()
    before, after = quick().fit(X, y), quick().fit(X, y, checked=CheckedLabels([], []))
    assert_array_equal(before.predict_proba(X), after.predict_proba(X))
    assert_array_equal(before.mislabel_proba_, after.mislabel_proba_)


def test_all_rows_checked_are_plain_training_on_the_truth() -> None:
    X, y, true = by_rule()
    taught = quick(estimator=LogisticRegression())
    taught.fit(X, y, checked=CheckedLabels(np.arange(N), true, 1.0))
    clean = LogisticRegression().fit(X, true)
    assert_allclose(taught.predict_proba(X), clean.predict_proba(X))
    assert_allclose(taught.label_error_range_, (y != true).mean())


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_rows_picked_by_hand_train_and_do_not_speak_of_others() -> None:
    X, y, true = by_rule()
    rows = np.flatnonzero(y != true)[:60]
    found = quick(estimator=LogisticRegression())
    found.fit(X, y, checked=CheckedLabels(rows, true[rows]))
    assert ("convenience_sample", "note") in [(f.code, f.severity) for f in found.noise_.findings]
    assert found.noise_rates_ == KNOWN
    assert (found.mislabel_proba_[rows] == 1).all()
    others = np.setdiff1d(np.arange(N), rows)
    assert not found.mislabel_proba_[others].any()
    fixed = y.copy()
    fixed[rows] = true[rows]
    assert_allclose(
        found.predict_proba(X), LogisticRegression().fit(X, fixed).predict_proba(X), atol=1e-4
    )


def test_rows_of_no_class_teach_nothing_and_unsure_ones_stay_open() -> None:
    X, y, true = by_rule()
    checked = drawn(true, 100)
    answers = checked.labels.copy()
    answers[:5], answers[5:10] = CheckedLabels.NONE, CheckedLabels.UNSURE
    changed = CheckedLabels(checked.rows, answers, checked.probability)
    found = quick().fit(X, y, checked=changed)
    assert (found.sample_weight_[checked.rows[:5]] == 0).all()
    assert (found.mislabel_proba_[checked.rows[:5]] == 1).all()
    unsure = found.mislabel_proba_[checked.rows[5:10]]
    assert ((unsure > 0) & (unsure < 1)).all()


def test_rows_drawn_more_often_where_labels_are_wrong_are_weighted_back() -> None:
    X, y, true = by_rule()
    rng = np.random.default_rng(0)
    value = np.where(y != true, 5.0, 1.0)  # as if a model had known
    order = np.argsort(rng.exponential(size=N) / value)[:200]
    chance = value[order] / (value.sum() - np.cumsum(value[order]) + value[order])
    found = quick().fit(X, y, checked=CheckedLabels(order, true[order], chance))
    said = found.mislabel_proba_.mean()
    assert abs(said - (y != true).mean()) < 0.06
    naive = quick().fit(X, y, checked=CheckedLabels(order, true[order], 1.0))
    assert naive.mislabel_proba_.mean() > said + 0.03


def test_three_classes_sparse_rows_and_the_audit() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    true = X.argmax(axis=1)
    y = np.where(X[:, 0] + X[:, 1] > 1.0, 2, true)  # mistakes that follow a rule
    classes = np.array(["a", "b", "c"])
    checked, names, rows = drawn(classes[true], 150), classes[y], sparse.csr_array(X)
    parts = {"posterior": "probabilistic", "noise_rates": np.eye(3)}
    found = ImportanceReweightingClassifier(**parts).fit(rows, names, checked=checked)
    assert (
        found.score(sparse.csr_array(X), np.array(["a", "b", "c"])[true])
        > np.mean(y == true) + 0.05
    )
    audit = LabelAudit(**parts, random_state=0).fit(X, names, checked=checked)
    left = np.setdiff1d(np.arange(N), checked.rows)
    assert roc_auc_score((y != true)[left], audit.mislabel_proba_[left]) > 0.85
    assert_allclose(audit.label_proba_.sum(axis=1), 1)
    low, high = audit.label_error_range_
    assert low <= (y != true).mean() <= high
    assert audit.n_errors_ == pytest.approx((y != true).sum(), rel=0.25)


def test_probabilities_of_any_model_are_audited_with_checked_rows() -> None:
    X, y, true = by_rule()
    model = LogisticRegression().fit(X, y).predict_proba(X)
    checked = drawn(true, 150)
    audit = LabelAudit(noise_rates=KNOWN).fit_posterior(model, y, checked=checked)
    left = np.setdiff1d(np.arange(N), checked.rows)
    assert audit.mislabel_proba_[left].mean() == pytest.approx((y != true)[left].mean(), abs=0.1)


def test_weights_that_keep_the_labels_are_refused_with_checked_rows() -> None:
    X, y, true = by_rule()
    with pytest.raises(ValueError, match="weighting='pi'"):
        quick(weighting="pi").fit(X, y, checked=drawn(true, 50))
    with pytest.raises(TypeError, match="CheckedLabels"):
        quick().fit(X, y, checked={3: 1})


def test_rows_with_words_are_taught_without_x() -> None:
    pd = pytest.importorskip("pandas")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"colour": rng.choice(["red", "green", "blue"], N)})
    true = (frame["colour"] == "red").to_numpy().astype(int)
    y = np.where(frame["colour"] == "green", 1, true)
    model = make_pipeline(OneHotEncoder(), LogisticRegression())
    clf = ImportanceReweightingClassifier(model, posterior=model, noise_rates=KNOWN)
    assert clf.fit(frame, y, checked=drawn(true, 100)).score(frame, true) > 0.95


@pytest.mark.parametrize("picked", [False, True])
@pytest.mark.parametrize("speaks_for", [1.0, -1.0])
def test_the_error_model_is_at_the_maximum_of_its_penalised_likelihood(speaks_for, picked) -> None:
    rng = np.random.default_rng(0)
    codes, truth = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    log_p = rng.normal(size=(60, 3)) + speaks_for * np.eye(3)[truth]
    x = rng.normal(size=(60, 2))
    weight = rng.uniform(0.5, 2, 60)
    log_p -= log_p.mean(axis=1, keepdims=True)
    proba = np.exp(log_p) / np.exp(log_p).sum(axis=1, keepdims=True)
    rows = Evidence(proba, proba, {"alike": x}, codes)
    before = PriorEstimate(rows, spread=0.01, spread_by_row=0.1) if picked else None
    model = ErrorModel(5.0, "alike", before).fit(rows, truth, weight)
    spread = (x**2).sum(axis=1).mean()

    def log_q(parameters):
        alpha, beta = parameters[:2]
        b, w, v = np.split(parameters[2:], [3, 12])
        score = (picked + beta) * log_p + b + w.reshape(3, 3)[codes] + x @ v.reshape(2, 3)
        score[np.arange(60), codes] += alpha
        return score - np.log(np.exp(score).sum(axis=1, keepdims=True))

    def loss(parameters):
        found, v = log_q(parameters), parameters[14:]
        value = -weight @ found[np.arange(60), truth]
        value += 0.5 * (parameters[:14] ** 2).sum() + (v**2).sum() * spread / 5.0
        if not picked:
            return value
        # the error rate of all rows is known to 0.1 before any answer
        right, was = (np.exp(p)[np.arange(60), codes].mean() for p in (found, np.log(proba)))
        return value + 0.5 * ((right - was) / 0.1) ** 2

    slope = approx_fprime(model.parameters_, loss, 1e-6)
    if speaks_for < 0:  # labels that speak against the truth are not believed to do so for ever
        assert model.parameters_[1] == -float(picked)
        assert slope[1] > 0
        slope[1] = 0
    assert_allclose(slope, 0, atol=5e-3)
    assert_allclose(model.predict(rows).sum(axis=1), 1)


def test_stacked_shares_are_the_best_mixture() -> None:
    rng = np.random.default_rng(0)
    log_scores = np.log(rng.uniform(0.1, 1, (200, 3)))
    weight = rng.uniform(0.5, 2, 200)
    prior = np.array([0.5, 0.3, 0.2])
    shares = _stacked(log_scores, weight, prior)

    def value(s):
        return weight @ np.log(np.exp(log_scores) @ s) + prior @ np.log(s)

    assert_allclose(shares.sum(), 1)
    for _ in range(200):
        other = rng.dirichlet(np.full(3, 0.5)) * 0.999 + 0.001 / 3
        assert value(shares) >= value(other) - 1e-6


def test_what_is_learnt_does_not_depend_on_the_order_of_checking() -> None:
    X, y, true = by_rule()
    checked = drawn(true, 60)
    order = np.random.default_rng(1).permutation(60)
    other = CheckedLabels(checked.rows[order], checked.labels[order], 60 / N)
    assert_allclose(*(audited(X, y, each).label_proba_ for each in (checked, other)))


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_the_summary_quotes_the_checked_rows() -> None:
    X, y, true = by_rule()
    fitted = quick().fit(X, y, checked=drawn(true, 100))
    found = summary(fitted)
    assert found["verdict"]["code"] == "checked_range"
    assert "100 checked samples" in found["verdict"]["sentence"]
    assert found["range"] == ""  # checked samples assume nothing
    share = fitted.checked_.error_rate
    assert found["checked"] == {
        "n_rows": 100,
        "label_error_rate": {
            "value": share.value,
            "fixed_n": list(share.interval),
            "at_any_time": list(share.anytime),
            "method": share.method,
            "n_unsure": 0,
        },
        "hypotheses": fitted.checked_.hypotheses,
    }
    json.dumps(found)
    assert summary(quick().fit(X, y))["checked"] is None
    assert not found["rates_given"]
    low, high = found["label_error_range"]["by_row"]
    assert low <= np.mean(y != true) <= high
    assert found["expected_error_share"] == pytest.approx(np.mean(y != true), abs=0.08)
    assert summary(quick().fit(X, y))["verdict"]["code"] == "rule"
