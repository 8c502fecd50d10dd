"""What makes a row differ from its class, and its neighbours."""

from contextlib import closing

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.neighbors import NearestNeighbors

from tests.review.made import client_of
from tests.review.test_content import audit_of
from unflip.review import Decisions, ReviewTable


@pytest.fixture
def shown(tmp_path):
    """Return what the page shows of a row of any table."""

    def shown(columns, labels, row):
        table = ReviewTable(columns, labels)
        (tmp_path / "d.sqlite").unlink(missing_ok=True)
        with Decisions(tmp_path / "d.sqlite", table.fingerprint) as store:
            audit = audit_of(np.asarray(labels))
            options = {"title": "T", "sample_size": 2}
            with closing(client_of(table, audit, store, tmp_path / "out", **options)) as page:
                return page.get(f"api/row?row={row}&queue=suspicious").json()

    return shown


@pytest.fixture
def explained(shown):
    """Return the features in which a row differs from its class, by name, largest first."""

    def explained(columns, labels, row):
        return {each["name"]: each for each in shown(columns, labels, row)["features"]}

    return explained


def test_numbers_differ_by_standard_deviations_of_the_class(explained):
    rng = np.random.default_rng(0)
    far, near = rng.normal(5, 2, 100), rng.normal(size=100)
    labels = np.repeat(["a", "b"], 50)
    found = explained({"near": near, "far": far + 100 * (labels == "b")}, labels, 0)
    assert_allclose(found["far"]["score"], (far[0] - far[:50].mean()) / far[:50].std())
    assert_allclose(found["near"]["score"], (near[0] - near[:50].mean()) / near[:50].std())
    assert [float(value) for value in found["far"]["typical"]] == pytest.approx(
        [far[:50].mean(), 100 + far[50:].mean()], rel=0.01
    )
    assert found["far"]["share"] == []


def test_categories_differ_by_how_rare_they_are_in_the_class(explained):
    colour = np.array(["red"] * 47 + ["green"] * 2 + ["blue"] + ["blue"] * 50)
    labels = np.repeat(["a", "b"], 50)
    found = explained({"colour": colour, "x": np.zeros(100)}, labels, 49)
    assert found["colour"]["share"] == [1 / 50, 1.0]
    assert found["colour"]["typical"] == ["red", "blue"]
    assert_allclose(found["colour"]["score"], norm.isf(1 / 50 / 2))
    assert "x" not in found  # it does not differ at all
    assert_allclose(
        explained({"colour": colour}, labels, 47)["colour"]["score"], norm.isf(3 / 50 / 2)
    )


def test_a_column_in_which_every_row_is_alone_makes_none_stand_out(explained):
    names = [f"n{k}" for k in range(20)]
    assert explained({"name": names}, ["a", "b"] * 10, 3) == {}


def test_free_text_makes_no_row_stand_out(explained):
    words = np.array([f"w{k}" for k in range(1001)] + ["same"] * 1001)
    assert explained({"text": words}, np.arange(2002) % 2, 0) == {}
    assert list(explained({"text": words[2:]}, np.arange(2000) % 2, 0)) == ["text"]


def test_missing_cells_are_a_category_and_no_distance(explained):
    numbers = np.array([np.nan, 1.0, 2.0, 3.0, 4.0, 5.0])
    words = np.array([None, "x", "x", "x", "x", "x"], dtype=object)
    found = explained({"number": numbers, "word": words}, list("aaaabb"), 0)
    assert list(found) == ["word"]
    assert found["word"]["value"] is None


def test_the_largest_difference_comes_first(explained):
    rng = np.random.default_rng(1)
    columns = {f"f{k}": rng.normal(size=40) for k in range(6)}
    columns["f4"][0] = 30.0
    found = explained(columns, ["a", "b"] * 20, 0)
    scores = [abs(each["score"]) for each in found.values()]
    assert next(iter(found)) == "f4"
    assert scores == sorted(scores, reverse=True)


def test_similar_rows_are_the_nearest_in_standardised_numbers(shown):
    X = np.random.default_rng(0).normal(size=(200, 4)) * [1, 100, 0.01, 1]
    nearest = NearestNeighbors(n_neighbors=7).fit(X / X.std(axis=0))
    for row in (0, 17, 199):
        expected = nearest.kneighbors(X[[row]] / X.std(axis=0), return_distance=False)[0]
        similar = [near["row"] for near in shown(X, np.arange(200) % 2, row)["similar"]]
        assert similar == [k for k in expected.tolist() if k != row]


def test_another_category_is_a_distance_and_a_row_is_not_its_own_neighbour(shown):
    columns = {"x": [0.0, 0.1, 0.0, 5.0], "c": ["u", "u", "v", None]}
    similar = shown(columns, list("abab"), 0)["similar"]
    assert [near["row"] for near in similar] == [1, 2, 3]
