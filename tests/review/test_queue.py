"""The order of the rows, and which of them are asked for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import entropy

from tests.review.made import audit_of, made_audit, made_table
from unflip._app.review import Opinion, QueueFilter, Queues
from unflip.audit import LabelAudit
from unflip.estimate import NoiseEstimate
from unflip.noise import TransitionMatrix
from unflip.review import Decision, ReviewTable

TABLE = made_table()
REVIEW_TABLE = ReviewTable(TABLE, "kind", id_column="name")
AUDIT = made_audit(TABLE)
OPINION = Opinion(AUDIT, REVIEW_TABLE)
SAMPLE = [7, 3, 250, 11]
QUEUES = Queues(REVIEW_TABLE, OPINION, SAMPLE)


def all_rows(queue_filter: QueueFilter, decisions: dict[int, Decision] | None = None) -> list[int]:
    rows, after, more = [], -1, True
    while more:
        page, _, _, more = QUEUES.page(queue_filter, decisions or {}, after=after, limit=37)
        rows += page.tolist()
        after = rows[-1] if rows else -1
    return rows


def test_the_true_labels_probabilities_agree_with_the_audits():
    assert_allclose(OPINION.truth.sum(axis=1), 1)
    own = OPINION.truth[np.arange(REVIEW_TABLE.n_rows), REVIEW_TABLE.codes]
    assert_allclose(1 - own, AUDIT.mislabel_proba_, atol=1e-12)
    assert_array_equal(OPINION.suggested, OPINION.truth.argmax(axis=1))


def test_a_fitted_audit_is_read_alike():
    X = TABLE.select("weight", "length").to_numpy()
    audit = LabelAudit(random_state=0).fit(X, TABLE["kind"])
    opinion = Opinion(audit, REVIEW_TABLE)
    own = opinion.truth[np.arange(REVIEW_TABLE.n_rows), REVIEW_TABLE.codes]
    assert_allclose(1 - own, audit.mislabel_proba_, atol=1e-6)
    assert_array_equal(REVIEW_TABLE.classes[opinion.suggested], audit.suggested_label_)
    assert_allclose(opinion.rates, 1 - np.diagonal(audit.transition_matrix_))


def test_the_most_informative_row_is_the_one_a_look_tells_most_of():
    rows = all_rows(QueueFilter("informative"))
    p = AUDIT.mislabel_proba_[rows]
    bits = entropy(np.column_stack([p, 1 - p]), base=2, axis=1)
    assert np.all(np.diff(bits) <= 1e-9)
    assert abs(p[0] - 0.5) == np.abs(AUDIT.mislabel_proba_ - 0.5).min()
    assert sorted(rows) == list(range(REVIEW_TABLE.n_rows))


def test_the_most_suspicious_row_is_first_in_its_queue():
    rows = all_rows(QueueFilter("suspicious"))
    assert np.all(np.diff(AUDIT.mislabel_proba_[rows]) <= 0)


def test_filters_cut_the_queue_and_keep_its_order():
    full = all_rows(QueueFilter("suspicious"))
    cut = all_rows(QueueFilter("suspicious", given=1, least=0.3, words="RED"))
    red = TABLE["colour"].to_numpy() == "red"
    expected = [
        row
        for row in full
        if REVIEW_TABLE.codes[row] == 1 and AUDIT.mislabel_proba_[row] >= 0.3 and red[row]
    ]
    assert cut == expected
    assert 0 < len(cut) < len(full)


def test_the_random_sample_is_never_cut():
    assert all_rows(QueueFilter("sample", given=1, least=0.9, words="nowhere")) == SAMPLE


def test_decided_rows_leave_the_open_queue_and_are_found_by_their_verdict():
    decisions = {3: Decision(3, 1, "keep", 0), 7: Decision(7, 2, None, None)}
    assert all_rows(QueueFilter("sample"), decisions) == [7, 250, 11]
    assert all_rows(QueueFilter("sample", status="keep"), decisions) == [3]
    assert all_rows(QueueFilter("sample", status="all"), decisions) == SAMPLE
    _, n_decided, n_members, _ = QUEUES.page(QueueFilter("sample"), decisions, after=-1, limit=9)
    assert (n_decided, n_members) == (1, 4)


def test_the_queue_goes_on_after_a_row_that_left_it():
    decisions = {7: Decision(7, 1, "keep", 0), 3: Decision(3, 1, "keep", 0)}
    page, *_ = QUEUES.page(QueueFilter("sample"), decisions, after=3, limit=9)
    assert page.tolist() == [250, 11]


def test_three_classes_are_ordered_by_the_entropy_of_all():
    labels = np.array(["a", "b", "c"] * 10)
    classes, codes = np.unique(labels, return_inverse=True)
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 30)
    noise = TransitionMatrix.uniform(3, 0.2)
    audit = audit_of(NoiseEstimate(classes, codes, noise, proba, proba, proba, (0.0, 1.0)))
    source = ReviewTable({"x": np.arange(30.0)}, labels)
    opinion = Opinion(audit, source)
    assert_allclose(opinion.information(), entropy(audit.label_proba_, base=2, axis=1))
    assert opinion.other_label(0, 0) == 1 + np.argmax(audit.label_proba_[0, 1:])


def test_an_audit_of_other_rows_or_classes_is_refused():
    with pytest.raises(ValueError, match="fitted to 300 rows, but the table has 4"):
        Opinion(AUDIT, ReviewTable({"x": [1, 2, 3, 4]}, ["a", "b", "a", "b"]))
    with pytest.raises(ValueError, match="fitted to the classes"):
        Opinion(AUDIT, ReviewTable(TABLE, np.arange(300) % 3))
