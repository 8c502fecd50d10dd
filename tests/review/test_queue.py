"""The order of the rows, and which of them are asked for."""

from contextlib import closing

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import entropy

from tests.review.made import audit_of, client_of, made_audit, made_table
from unflip.audit import LabelAudit
from unflip.estimate import NoiseEstimate
from unflip.noise import TransitionMatrix
from unflip.review import Decisions, ReviewTable

TABLE = made_table()
REVIEW = ReviewTable(TABLE, "kind", id_column="name")
AUDIT = made_audit(TABLE)
P = AUDIT.mislabel_proba_
OPTIONS = {"title": "Fruit", "sample_size": 4, "random_state": 0}


@pytest.fixture
def review(tmp_path):
    with (
        Decisions(tmp_path / "d.sqlite", REVIEW.fingerprint) as store,
        closing(client_of(REVIEW, AUDIT, store, tmp_path / "out", **OPTIONS)) as client,
    ):
        yield client, store


@pytest.fixture
def client(review):
    return review[0]


def all_rows(client, **query):
    """Return the rows of a queue in order, asked for page by page."""
    rows, more = [], True
    while more:
        after = {"after": str(rows[-1])} if rows else {}
        page = client.get("api/queue", query | after).json()
        more = page["more"]
        rows += [entry["row"] for entry in page["rows"]]
    return rows


def test_an_audit_fitted_to_features_is_shown_as_it_is(tmp_path):
    X = TABLE.select("weight", "length").to_numpy()
    audit = LabelAudit(random_state=0).fit(X, TABLE["kind"])
    with (
        Decisions(tmp_path / "d.sqlite", REVIEW.fingerprint) as store,
        closing(client_of(REVIEW, audit, store, tmp_path / "out", **OPTIONS)) as client,
    ):
        for row in (0, 7, 299):
            shown = client.get(f"api/row?row={row}&queue=suspicious").json()
            assert shown["probability"] == pytest.approx(audit.mislabel_proba_[row], abs=1e-6)
            assert REVIEW.classes[shown["suggested"]] == audit.suggested_label_[row]
        rates = [part["model"] for part in client.get("api/tally").json()["estimate"]["rates"]]
    assert_allclose(rates, 1 - np.diagonal(audit.transition_matrix_))


def test_the_most_informative_row_is_the_one_a_look_tells_most_of(client):
    rows = all_rows(client, queue="informative")
    bits = entropy(np.column_stack([P[rows], 1 - P[rows]]), base=2, axis=1)
    assert np.all(np.diff(bits) <= 1e-9)
    assert sorted(rows) == list(range(REVIEW.n_rows))


def test_filters_cut_the_queue_and_keep_its_order(client):
    full = all_rows(client, queue="suspicious")
    assert np.all(np.diff(P[full]) <= 0)
    cut = all_rows(client, queue="suspicious", given="1", least="30", words="RED")
    red = TABLE["colour"].to_numpy() == "red"
    assert cut == [row for row in full if REVIEW.codes[row] == 1 and P[row] >= 0.3 and red[row]]
    assert 0 < len(cut) < len(full)


def test_the_random_sample_is_never_cut(review):
    client, store = review
    found = all_rows(client, queue="sample", given="1", least="90", words="nowhere")
    assert found == store.sample(4)


def test_decided_rows_leave_the_open_queue_and_are_found_by_their_verdict(review):
    client, store = review
    first, second, *others = store.sample(4)
    store.decide(second, 0, "keep", int(REVIEW.codes[second]))
    store.decide(first, 0, "unsure", None)
    store.undo(first, 1)
    assert all_rows(client, queue="sample") == [first, *others]
    assert all_rows(client, queue="sample", status="keep") == [second]
    assert all_rows(client, queue="sample", status="all") == [first, second, *others]
    page = client.get("api/queue?queue=sample").json()
    assert (page["decided"], page["total"]) == (1, 4)
    # and the queue goes on after a row that left it
    store.decide(others[0], 0, "keep", int(REVIEW.codes[others[0]]))
    page = client.get(f"api/queue?queue=sample&after={others[0]}").json()
    assert [entry["row"] for entry in page["rows"]] == others[1:]


def test_three_classes_are_ordered_by_the_entropy_of_all(tmp_path):
    labels = np.array(["a", "b", "c"] * 10)
    classes, codes = np.unique(labels, return_inverse=True)
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 30)
    noise = TransitionMatrix.uniform(3, 0.2)
    audit = audit_of(NoiseEstimate(classes, codes, noise, proba, proba, proba, (0.0, 1.0)))
    table = ReviewTable({"x": np.arange(30.0)}, labels)
    with (
        Decisions(tmp_path / "d.sqlite", table.fingerprint) as store,
        closing(client_of(table, audit, store, tmp_path / "out", **OPTIONS)) as client,
    ):
        rows = all_rows(client, queue="informative")
        other = client.get("api/row?row=0&queue=suspicious").json()["other"]
    assert rows == np.argsort(-entropy(proba, axis=1), kind="stable").tolist()
    assert other == 1 + np.argmax(proba[0, 1:])
