"""Any model's held-out probabilities: what is taken, what is refused, how several are pooled."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from unflip import LabelAudit, LabelNoiseWarning, TransitionMatrix, find_label_issues, flip_labels
from unflip._probabilities.inputs import pooled

NAMES = np.array(["cat", "dog", "owl"])


def made(n_rows=400, n_classes=3, seed=0, rate=0.15, sharp=0.05):
    """Clean probabilities, true codes, noisy codes and the exact P(noisy | x)."""
    rng = np.random.default_rng(seed)
    clean = rng.dirichlet(np.full(n_classes, sharp), n_rows)
    true = np.array([rng.choice(n_classes, p=row) for row in clean])
    noise = TransitionMatrix.uniform(n_classes, rate)
    given = np.asarray(flip_labels(true, noise, random_state=seed))
    return clean, true, given, noise.noisy_posterior(clean)


CLEAN, TRUE, GIVEN, NOISY = made()
LABELS = NAMES[GIVEN]


@pytest.fixture(scope="module")
def fitted():
    return LabelAudit().fit_posterior(NOISY, LABELS)


def changed(position, value, source=NOISY):
    values = source.copy()
    values[position] = value
    return values


def test_one_line_audits_probabilities(fitted):
    audit = fitted
    wrong = GIVEN != TRUE
    assert audit.mislabel_proba_[wrong].mean() > 3 * audit.mislabel_proba_[~wrong].mean()
    assert_array_equal(find_label_issues(y=LABELS, pred_probs=NOISY), audit.issues())
    assert audit.n_errors_ == pytest.approx(audit.mislabel_proba_.sum())
    low, high = audit.label_error_range_
    assert low <= wrong.mean() <= high


@pytest.mark.parametrize("classes", [["owl", "cat", "dog"], ("owl", "cat", "dog")])
def test_classes_name_the_columns(classes, fitted):
    by_name = LabelAudit().fit_posterior(NOISY[:, [2, 0, 1]], LABELS, classes=classes)
    assert_allclose(
        by_name.mislabel_proba_, LabelAudit().fit_posterior(NOISY, LABELS).mislabel_proba_
    )


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_a_table_named_after_the_classes_is_put_in_order(table, fitted):
    named = table({"owl": NOISY[:, 2], "cat": NOISY[:, 0], "dog": NOISY[:, 1]})
    by_name = LabelAudit().fit_posterior(named, LABELS)
    assert_allclose(
        by_name.mislabel_proba_, LabelAudit().fit_posterior(NOISY, LABELS).mislabel_proba_
    )


def test_a_class_without_a_label_is_named_in_classes():
    wide = np.c_[NOISY * 0.99, np.full(len(NOISY), 0.01)]
    audit = LabelAudit().fit_posterior(wide, LABELS, classes=[*NAMES, "yak"])
    assert audit.classes_.tolist() == ["cat", "dog", "owl", "yak"]
    assert np.isfinite(audit.label_proba_).all()


BAD = {
    "none at all": (None, "is None"),
    "text": ("probabilities", "must hold numbers"),
    "text in cells": (np.full((400, 3), "a"), "must hold numbers"),
    "booleans": (NOISY > 0.5, "must hold numbers"),
    "a sparse matrix": (sparse.csr_matrix(NOISY), "toarray"),
    "ragged rows": ([[0.5, 0.5], [1.0]], "must hold numbers"),
    "one number": (0.5, "has shape"),
    "one column": (NOISY[:, 0], "has shape"),
    "too few rows": (NOISY[:-1], "has shape"),
    "too many rows": (np.r_[NOISY, NOISY[:1]], "has shape"),
    "no rows": (NOISY[:0], "has shape"),
    "transposed": (NOISY.T, "has shape"),
    "three dimensions": (NOISY[None], "has shape|has 400 columns"),
    "too few columns": (NOISY[:, :2], "has 2 columns"),
    "too many columns": (np.c_[NOISY, NOISY[:, 0]], "has 4 columns"),
    "NaN": (changed((7, 1), np.nan), "row 7"),
    "a row of NaN": (changed(3, np.nan), "row 3"),
    "infinity": (changed((9, 0), np.inf), "row 9"),
    "minus infinity": (changed((9, 0), -np.inf), "row 9"),
    "negative": (changed((0, 0), -0.1), "softmax"),
    "logits": (np.log(NOISY), "softmax"),
    "percentages": (100 * NOISY, "divide by 100"),
    "counts": (np.round(1e5 * NOISY), "counts"),
    "a row that sums to less": (changed(5, 0.2), "row 5 .* sums to 0.6"),
    "a row of zeros": (changed(5, 0.0), "row 5 .* sums to 0"),
    "one-vs-rest scores": (0.9 * NOISY + 0.1, "sums to"),
    "columns in another order": (NOISY[:, [1, 2, 0]], "another order"),
    "a bad model among several": ([NOISY, NOISY[:-1]], r"pred_probs\[1\] has shape"),
    "a NaN among several": ([NOISY, changed((2, 2), np.nan)], r"pred_probs\[1\].*row 2"),
    "an object": (object(), "must hold numbers|has shape"),
    "a dictionary": ({"cat": [0.1]}, "must hold numbers|has shape"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_probabilities_are_refused_and_nothing_is_changed(case, fitted):
    bad, message = BAD[case]
    audit = copy.copy(fitted)
    before = dict(vars(audit))
    with pytest.raises(ValueError, match=message):
        audit.fit_posterior(bad, LABELS)
    assert vars(audit) == before


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["cat", "dog"], "not one of the classes"),
        (["cat", "dog", "ox"], "not one of the classes"),
        (["cat", "dog", "owl", "owl"], "once"),
        (["cat", "dog", "owl", "yak"], "has 3 columns"),
    ],
)
def test_bad_classes_are_refused(classes, message):
    with pytest.raises(ValueError, match=message):
        LabelAudit().fit_posterior(NOISY, LABELS, classes=classes)


def test_one_probability_of_two_classes_says_how_to_give_both():
    _, _, given, noisy = made(n_classes=2)
    with pytest.raises(ValueError, match=r"column_stack\(\[1 - p, p\]\)"):
        LabelAudit().fit_posterior(noisy[:, 1], given)


def test_probabilities_of_seen_labels_are_doubted():
    seen = np.full((400, 3), 0.004)
    seen[np.arange(400), GIVEN] = 0.992
    with pytest.warns(LabelNoiseWarning, match="not_held_out:"):
        audit = LabelAudit().fit_posterior(seen, LABELS)
    assert any("it repeats their errors" in sentence for sentence in audit.diagnostics_)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": LABELS}, "X and pred_probs are both None"),
        ({"X": NOISY, "y": LABELS, "pred_probs": NOISY}, "both given"),
        ({"pred_probs": NOISY}, "requires y"),
        ({"X": NOISY, "y": LABELS, "classes": NAMES}, "names the columns of pred_probs"),
    ],
)
def test_rows_or_probabilities_are_needed_and_labels(arguments, message):
    with pytest.raises(ValueError, match=message):
        find_label_issues(**arguments)


def test_half_and_single_precision_are_taken(fitted):
    double = fitted.mislabel_proba_
    single = LabelAudit().fit_posterior(NOISY.astype(np.float32), LABELS)
    assert single.label_proba_.dtype == np.float32
    assert np.abs(single.mislabel_proba_ - double).mean() < 0.005
    half = LabelAudit().fit_posterior(NOISY.astype(np.float16), LABELS)
    assert np.abs(half.mislabel_proba_ - double).mean() < 0.005


def likelihood(probabilities, labels):
    return np.log(np.maximum(probabilities[np.arange(len(labels)), labels], 1e-12)).mean()


@pytest.mark.parametrize("seed", range(3))
def test_a_pool_is_no_worse_than_its_best_model(seed):
    _, _, given, noisy = made(2000, seed=seed)
    rng = np.random.default_rng(seed)

    def blurred(spread):
        logits = np.log(noisy) + spread * rng.normal(size=noisy.shape)
        return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)

    models = [blurred(0.5), blurred(0.7), blurred(3.0)]
    found = likelihood(pooled(models, given), given)
    assert found > max(likelihood(model, given) for model in models) - 0.002


def test_a_useless_model_does_not_spoil_the_pool():
    _, _, given, noisy = made(2000)
    useless = np.random.default_rng(0).dirichlet(np.ones(3), 2000)
    assert likelihood(pooled([noisy, useless], given), given) > likelihood(noisy, given) - 0.002
    one = LabelAudit().fit_posterior(noisy, given).mislabel_proba_
    two = LabelAudit().fit_posterior([noisy, useless], given).mislabel_proba_
    assert np.corrcoef(one, two)[0, 1] > 0.98


def test_a_table_has_the_index_that_the_labels_came_with():
    y = pd.Series(LABELS, index=[f"row {k}" for k in range(400)])
    audit = LabelAudit().fit_posterior(NOISY, y)
    frame = audit.to_frame()
    assert frame.index.equals(y.index)
    assert_array_equal(frame["given_label"], LABELS)
    assert_array_equal(frame["mislabel_proba"], audit.mislabel_proba_)
    assert frame["suggested_label"].isna().equals(frame["unclear"])
    assert isinstance(LabelAudit().fit_posterior(NOISY, pl.Series(LABELS)).to_frame(), pl.DataFrame)
    assert LabelAudit().fit_posterior(NOISY, LABELS).to_frame().index.tolist() == list(range(400))


def test_no_suggestion_where_the_label_is_wrong_and_no_other_class_stands_out():
    # a label that is all but ruled out, the rest shared by the other classes
    noise = TransitionMatrix.uniform(4, 0.3)
    clean = np.r_[np.eye(4).repeat(100, axis=0), [[0.0, 0.34, 0.33, 0.33], [0.0, 0.98, 0.01, 0.01]]]
    given = np.r_[np.arange(4).repeat(100), 0, 0]
    audit = LabelAudit(noise_rates=noise).fit_posterior(noise.noisy_posterior(clean), given)
    assert audit.unclear_[-2]
    assert not audit.unclear_[-1]
    assert audit.suggested_label_[-1] == 1
    assert audit.suggested_label_.dtype == given.dtype


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_a_suggestion_is_probably_right_and_never_the_label_that_is_called_wrong(n_classes):
    rng = np.random.default_rng(n_classes)
    true = rng.integers(0, n_classes, 1500)
    given = np.asarray(
        flip_labels(true, TransitionMatrix.uniform(n_classes, 0.2), random_state=n_classes)
    )
    logits = rng.normal(size=(1500, n_classes)) + 4 * np.eye(n_classes)[true]
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    audit = LabelAudit().fit_posterior(proba, given)
    wrong = audit.mislabel_proba_ >= 0.5
    suggested = wrong & ~audit.unclear_
    assert (audit.suggested_label_[suggested] != given[suggested]).all()
    assert suggested.sum() > 100
    assert np.mean(audit.suggested_label_[suggested] == true[suggested]) > 0.8
    assert not audit.unclear_[~wrong].any()
    if n_classes == 2:
        assert not audit.unclear_.any()  # of two classes the other one is right
