"""Checked labels as users give them: read, compared with the table, and refused by row."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from unflip import CheckedLabels

Y = np.array(["cat", "dog", "cat", "dog", "cat", "dog"])


def test_answers_become_positions_of_classes() -> None:
    answers = ["dog", CheckedLabels.NONE, CheckedLabels.UNSURE]
    checked = CheckedLabels([4, 0, 2], answers, probability=0.5)
    found = checked.label_error_rate(Y)
    # the label of row 4 is "cat", row 0 belongs to no class, and nobody knows about row 2
    assert (found.value, found.n_rows, found.n_unsure) == (1.0, 3, 1)
    assert checked.is_drawn.all()
    assert len(checked) == 3
    # a class may be called like the answer
    found = CheckedLabels([0], ["unsure"], 1 / 3).label_error_rate(["sure", "unsure", "sure"])
    assert (found.value, found.n_unsure) == (1.0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1, 0], ["cat", "dog", "dog"]), "row 0 was checked twice.*'cat' and 'dog'"),
        (([0, 3], ["cat", "dog"], [0.5, 0.0]), "row 3 was drawn with probability 0"),
        (([0, 3], ["cat", "dog"], [0.5, 1.5]), "row 3 was drawn with probability 1.5"),
        (([0, -3], ["cat", "dog"]), "counted from 0, got -3"),
        ((["a", "b"], ["cat", "dog"]), "from_ids"),
        (([0, 1], ["cat"]), "labels has 1 entries, and rows has 2"),
        (([0, 1], ["cat", None]), "row 1 has no label"),
        (([0, 1], ["cat", "dog"], [0.5]), r"probability has shape \(1,\)"),
    ],
)
def test_bad_input_is_refused_with_its_row(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        CheckedLabels(*arguments)


def test_rows_and_labels_that_the_table_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="row 9"):
        CheckedLabels([1, 9], ["cat", "dog"]).label_error_rate(Y)
    with pytest.raises(ValueError, match="label of row 1 is 'bird', which is not one of"):
        CheckedLabels([1], ["bird"]).label_error_rate(Y)


def test_the_same_answer_twice_counts_once_and_as_drawn() -> None:
    checked = CheckedLabels([0, 1, 0], ["cat", "dog", "cat"], [np.nan, 0.5, 0.25])
    assert_array_equal(checked.rows, [1, 0])
    assert_allclose(checked.probability, [0.5, 0.25])


def test_rows_by_their_names() -> None:
    checked = CheckedLabels.from_ids(["c", "a"], ["cat", "dog"], table_ids=list("abcdef"))
    assert_array_equal(checked.rows, [2, 0])
    with pytest.raises(ValueError, match="the checked id 'z' is not in the table"):
        CheckedLabels.from_ids(["c", "z"], ["cat", "dog"], table_ids=list("abcdef"))
    with pytest.raises(ValueError, match=r"the id 'c' was checked twice.*'cat' and 'dog'"):
        CheckedLabels.from_ids(["c", "c"], ["cat", "dog"], table_ids=list("abcdef"))
    with pytest.raises(ValueError, match="'a' twice, in rows 0 and 2"):
        CheckedLabels.from_ids(["a"], ["cat"], table_ids=["a", "b", "a"])


def test_the_file_of_the_review_page_is_read(tmp_path: Path) -> None:
    path = tmp_path / "reviewed.csv"
    path.write_text("row,label,given,fingerprint\n0,dog,cat,ab\n3,dog,dog,cd\n")
    checked = CheckedLabels.from_file(path, Y)
    assert_array_equal(checked.rows, [0, 3])
    assert checked.labels.tolist() == ["dog", "dog"]
    assert not checked.is_drawn.any()


def test_numbers_and_probabilities_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "reviewed.csv"
    path.write_text("row,label,probability\n0,1,0.25\n3,unsure,\n2,0,0.5\n")
    checked = CheckedLabels.from_file(path, [0, 1, 0, 1])
    assert checked.labels.tolist() == [1, "unsure", 0]
    assert_allclose(checked.probability, [0.25, np.nan, 0.5])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row,label,given\n0,dog,cat\n1,dog,cat\n", "another table: row 1 had the label 'cat'"),
        ("row,given\n0,dog\n", "has no column 'label'"),
        ("row,label\nx,dog\n", "line 2 .*whole number.*'x'"),
        ("row,label,probability\n0,dog,often\n", "line 2 .*probability.*'often'"),
        ("row,label,probability\n0,dog,0\n", "row 0 was drawn with probability 0"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "reviewed.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        CheckedLabels.from_file(path, Y)


def test_the_pages_own_file_is_to_be_exported_first(tmp_path: Path) -> None:
    path = tmp_path / "review.sqlite"
    path.write_bytes(b"SQLite format 3\0" + bytes(100))
    with pytest.raises(ValueError, match="export it"):
        CheckedLabels.from_file(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        CheckedLabels.from_file(tmp_path / "none.csv")


def test_probabilities_of_a_turn_and_of_the_sample_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 2, 1000)
    y = np.where(rng.random(1000) < 0.2, 1 - y_true, y_true)
    rows = rng.choice(1000, 50, replace=False)
    chance = rng.uniform(0.5, 1.5, 50)
    left = 1000 - np.arange(50)
    at_turn = CheckedLabels(rows, y_true[rows], chance / left).label_error_rate(y)
    at_all = CheckedLabels(rows, y_true[rows], chance * 50 / 1000).label_error_rate(y)
    # one counts rows that were drawn before as known, the other does not
    assert_allclose(at_turn.interval, at_all.interval, rtol=0.5 * 50 / 1000)
    # only draws in turn tell at every moment; of others, only what was seen is sure
    seen = (y != y_true)[rows].sum()
    assert at_all.anytime == pytest.approx((seen / 1000, (seen + 950) / 1000))
    assert at_turn.anytime[1] < 0.6
