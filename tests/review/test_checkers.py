"""More than one checker: whose decision is whose, and how far they agree."""

import itertools

import numpy as np
import polars as pl
import pytest

from tests.review.made import client_of, made_audit, made_table
from unflip._app.review._agreement import krippendorff_alpha
from unflip.review import Decision, Decisions, ReviewTable, StaleDecisionError, export

TABLE = made_table(60)
REVIEW = ReviewTable(TABLE, "kind", id_column="name")
AUDIT = made_audit(TABLE)


def test_alpha_of_the_published_example():
    # three coders, 15 units, nominal labels 1 to 4: Krippendorff's alpha is .691
    coders = ["*****3412113 3*3", "1*213343*******", "**2134 4*2113 3*4"]
    coders = [coder.replace(" ", "") for coder in coders]
    counts = [[sum(c[k] == str(v) for c in coders) for v in (1, 2, 3, 4)] for k in range(15)]
    assert krippendorff_alpha(counts) == pytest.approx(0.691, abs=5e-4)


def alpha_by_pairs(labels):
    """Return one minus observed over expected disagreement, counted pair by pair."""
    known = [each for each in labels if len(each) >= 2]
    values = list(itertools.chain(*known))
    observed = sum(
        sum(a != b for a, b in itertools.permutations(each, 2)) / (len(each) - 1) for each in known
    ) / len(values)
    return 1 - observed / np.mean([a != b for a, b in itertools.permutations(values, 2)])


def test_alpha_is_one_minus_observed_over_expected_disagreement_of_pairs():
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels = [rng.integers(0, 3, rng.integers(0, 5)).tolist() for _ in range(12)]
        counts = [np.bincount(each, minlength=3) for each in labels]
        assert krippendorff_alpha(counts) == pytest.approx(alpha_by_pairs(labels))
    # undefined where nothing could have been disputed
    for counts in ([[2, 0], [3, 0]], [[1, 0], [0, 1]], np.zeros((0, 2))):
        assert np.isnan(krippendorff_alpha(counts))


@pytest.fixture
def two(tmp_path):
    path = tmp_path / "d.sqlite"
    with (
        Decisions(path, REVIEW.fingerprint, "ann") as ann,
        Decisions(path, REVIEW.fingerprint, " bob ") as bob,
    ):
        yield ann, bob


def test_checkers_do_not_stand_in_each_others_way(two):
    ann, bob = two
    ann.decide(4, 0, "keep", 0)
    assert bob.mine()[4] == Decision(4, 1)  # not decided by him
    assert bob.decide(4, 0, "change", 1) == Decision(4, 2, "change", 1)  # seen before her decision
    assert ann.mine()[4] == Decision(4, 2, "keep", 0)
    assert ann.all() == bob.all() == {4: Decision(4, 2, "change", 1)}
    with pytest.raises(StaleDecisionError):
        bob.decide(4, 1, "keep", 0)  # he has decided since
    with pytest.raises(StaleDecisionError):
        ann.decide(4, 3, "keep", 0)  # there is no such version
    assert [event["checker"] for event in ann.log()] == ["ann", "bob"]
    assert ann.checkers() == ["ann", "bob"]


def test_undo_takes_back_ones_own(two):
    ann, bob = two
    ann.decide(4, 0, "keep", 0)
    bob.decide(4, 1, "change", 1)
    assert ann.last() == Decision(4, 2, "change", 1)  # the row, at its version
    assert ann.undo(4, 2) == Decision(4, 3, "change", 1)
    assert ann.mine()[4] == Decision(4, 3)
    assert ann.last() is None
    assert bob.mine()[4] == Decision(4, 3, "change", 1)
    with pytest.raises(ValueError, match="no decision to undo"):
        ann.undo(4, 3)
    assert bob.undo(4, 3) == Decision(4, 4)


def test_without_names_nothing_has_changed(two):
    ann, _ = two
    with Decisions(ann.path, REVIEW.fingerprint) as unnamed:
        ann.decide(4, 0, "keep", 0)
        with pytest.raises(StaleDecisionError):
            unnamed.decide(4, 0, "unsure", None)
        unnamed.decide(4, 1, "unsure", None)
        with pytest.raises(StaleDecisionError):
            ann.decide(4, 1, "keep", 0)  # it may have been her
        assert unnamed.mine() == unnamed.all() == {4: Decision(4, 2, "unsure")}
        assert unnamed.undo(4, 2) == Decision(4, 3, "keep", 0)


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "a\nb"])
def test_what_is_no_name_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="not a name"):
        Decisions(tmp_path / "d.sqlite", REVIEW.fingerprint, name)


def test_the_page_and_the_export_list_disagreements(two, tmp_path):
    ann, bob = two
    options = {"title": "Fruit", "sample_size": 5, "random_state": 0}
    pages = [client_of(REVIEW, AUDIT, each, tmp_path / "out", **options) for each in two]
    assert pages[0].get("api/tally").json()["agreement"] is None
    other = {row: 1 - int(REVIEW.codes[row]) for row in range(6)}
    for row in range(6):
        body = {"row": row, "version": 0, "verdict": "keep", "queue": "suspicious"}
        pages[0].post("api/decide", body)
        if row in (2, 4):
            body |= {"verdict": "change", "label": other[row]}
        assert pages[1].post("api/decide", body).json()["verdict"] == body["verdict"]
    # who is unsure does not disagree
    pages[0].post("api/decide", {"row": 9, "version": 0, "verdict": "keep", "queue": "suspicious"})
    unsure = {"row": 9, "version": 0, "verdict": "unsure", "queue": "suspicious"}
    pages[1].post("api/decide", unsure)
    found = pages[1].get("api/tally").json()
    assert (found["keep"], found["change"]) == (4, 2)  # his own
    assert found["agreement"]["checkers"] == ["ann", "bob"]
    assert (found["agreement"]["n_rows"], found["agreement"]["n_disputed"]) == (6, 2)
    labels = [[ann.mine()[row].label, bob.mine()[row].label] for row in range(6)]
    assert found["agreement"]["alpha"] == pytest.approx(alpha_by_pairs(labels))
    listed = found["agreement"]["disputed"]
    assert [entry["row"] for entry in listed] == [2, 4]
    assert listed[0]["answers"] == [["ann", int(REVIEW.codes[2])], ["bob", other[2]]]
    assert pages[0].get("api/row?row=2&queue=suspicious").json()["verdict"] == "keep"
    for page in pages:
        page.close()
    export(TABLE, "kind", ann.path, tmp_path / "e", id_column="name")
    disputed = pl.read_csv(tmp_path / "e" / "disagreements.csv")
    assert disputed.columns == ["row", "given", "ann", "bob"]
    assert disputed["row"].to_list() == [2, 4]
    assert disputed["ann"].to_list() == disputed["given"].to_list()
    assert disputed["bob"].to_list() == [REVIEW.names[other[row]] for row in (2, 4)]
    log = pl.read_csv(tmp_path / "e" / "log.csv")
    assert log["checker"].to_list() == ["ann", "bob"] * 7
