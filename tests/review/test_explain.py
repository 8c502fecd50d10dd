"""What makes a row differ from its class, and its neighbours."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.neighbors import NearestNeighbors

from unflip._app.review import Explainer
from unflip.review import ReviewTable


def explained(columns, labels, row, other=None, n=10):
    found = Explainer(ReviewTable(columns, labels)).differences(row, other, n)
    return {difference.name: difference for difference in found}


def test_numbers_differ_by_standard_deviations_of_the_class():
    rng = np.random.default_rng(0)
    far, near = rng.normal(5, 2, 100), rng.normal(size=100)
    labels = np.repeat(["a", "b"], 50)
    found = explained({"near": near, "far": far + 100 * (labels == "b")}, labels, 0, other=1)
    assert_allclose(found["far"].score, (far[0] - far[:50].mean()) / far[:50].std())
    assert_allclose(found["near"].score, (near[0] - near[:50].mean()) / near[:50].std())
    assert [float(value) for value in found["far"].typical] == pytest.approx(
        [far[:50].mean(), 100 + far[50:].mean()], rel=0.01
    )
    assert found["far"].share == []


def test_categories_differ_by_how_rare_they_are_in_the_class():
    colour = np.array(["red"] * 47 + ["green"] * 2 + ["blue"] + ["blue"] * 50)
    labels = np.repeat(["a", "b"], 50)
    found = explained({"colour": colour, "x": np.zeros(100)}, labels, 49, other=1)
    assert found["colour"].share == [1 / 50, 1.0]
    assert found["colour"].typical == ["red", "blue"]
    assert_allclose(found["colour"].score, norm.isf(1 / 50 / 2))
    assert "x" not in found  # it does not differ at all
    assert_allclose(explained({"colour": colour}, labels, 47)["colour"].score, norm.isf(3 / 50 / 2))


def test_a_column_in_which_every_row_is_alone_makes_none_stand_out():
    names = [f"n{k}" for k in range(20)]
    assert explained({"name": names}, ["a", "b"] * 10, 3) == {}


def test_free_text_makes_no_row_stand_out():
    words = np.array([f"w{k}" for k in range(1001)] + ["same"] * 1001)
    assert explained({"text": words}, np.arange(2002) % 2, 0) == {}
    assert list(explained({"text": words[2:]}, np.arange(2000) % 2, 0)) == ["text"]


def test_missing_cells_are_a_category_and_no_distance():
    numbers = np.array([np.nan, 1.0, 2.0, 3.0, 4.0, 5.0])
    words = np.array([None, "x", "x", "x", "x", "x"], dtype=object)
    found = explained({"number": numbers, "word": words}, list("aaaabb"), 0)
    assert list(found) == ["word"]
    assert found["word"].value is None


def test_the_largest_difference_comes_first():
    rng = np.random.default_rng(1)
    columns = {f"f{k}": rng.normal(size=40) for k in range(6)}
    columns["f4"][0] = 30.0
    found = Explainer(ReviewTable(columns, ["a", "b"] * 20)).differences(0, None, 3)
    assert found[0].name == "f4"
    assert len(found) == 3
    assert sorted((abs(d.score) for d in found), reverse=True) == [abs(d.score) for d in found]


def test_similar_rows_are_the_nearest_in_standardised_numbers():
    X = np.random.default_rng(0).normal(size=(200, 4)) * [1, 100, 0.01, 1]
    explainer = Explainer(ReviewTable(X, np.arange(200) % 2))
    nearest = NearestNeighbors(n_neighbors=7).fit(X / X.std(axis=0))
    for row in (0, 17, 199):
        expected = nearest.kneighbors(X[[row]] / X.std(axis=0), return_distance=False)[0]
        assert explainer.similar(row, 6) == [k for k in expected.tolist() if k != row]


def test_another_category_is_a_distance_and_a_row_is_not_its_own_neighbour():
    columns = {"x": [0.0, 0.1, 0.0, 5.0], "c": ["u", "u", "v", None]}
    explainer = Explainer(ReviewTable(columns, list("abab")))
    assert explainer.similar(0, 2) == [1, 2]
    assert explainer.similar(0, 50) == [1, 2, 3]
