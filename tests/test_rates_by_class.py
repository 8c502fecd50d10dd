"""Rates of two classes by their names."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from unflip import (
    ImportanceReweightingClassifier,
    LabelAudit,
    NoiseRates,
    TransitionMatrix,
    flip_labels,
)

RATES = NoiseRates.by_class({"stayed": 0, "churned": 0.3})


def table(n: int = 600):
    rng = np.random.default_rng(0)
    churned = rng.random(n) < 0.5
    X = np.column_stack([3.0 * churned + rng.normal(size=n), rng.normal(size=n)])
    return X, np.where(churned, "churned", "stayed")


def test_rates_by_class_are_those_of_the_greater_and_the_smaller_label() -> None:
    assert NoiseRates(positive=0.0, negative=0.3) == RATES
    assert str(RATES) == "NoiseRates.by_class({'churned': 0.3, 'stayed': 0})"
    assert repr(RATES) == "NoiseRates.by_class({'churned': 0.3, 'stayed': 0.0})"
    assert repr(copy.deepcopy(RATES)) == repr(RATES)
    partly = NoiseRates.by_class({"stayed": None, "churned": (0.1, 0.3)})
    assert str(partly) == "NoiseRates.by_class({'churned': (0.1, 0.3), 'stayed': None})"
    assert str(NoiseRates.by_class({1: 0.25, 2: 0.5})) == "NoiseRates.by_class({1: 0.25, 2: 0.5})"


def test_flips_by_class_flip_that_class() -> None:
    _, y = table()
    noisy = flip_labels(y, RATES, random_state=0)
    assert (noisy[y == "stayed"] == "stayed").all()
    assert np.mean(noisy[y == "churned"] == "stayed") == pytest.approx(0.3, abs=0.06)


@pytest.mark.parametrize("make", [ImportanceReweightingClassifier, LabelAudit])
def test_estimated_and_given_rates_are_shown_by_class(make) -> None:
    X, y = table()
    noisy = flip_labels(y, RATES, random_state=0)
    given = make(noise_rates=RATES, random_state=0)
    assert "by_class" in repr(clone(given))
    assert str(given.fit(X, noisy).noise_rates_) == str(RATES)
    found = make(random_state=0).fit(X, noisy).noise_rates_
    assert str(found).startswith("NoiseRates.by_class({'churned': ")
    # labels of which the positive one is plain
    found = make(random_state=0).fit(X, (noisy == "stayed").astype(int)).noise_rates_
    assert str(found).startswith("NoiseRates(positive=")


def test_rates_of_other_classes_are_refused() -> None:
    X, y = table()
    other = NoiseRates.by_class({"left": 0.3, "stayed": 0})
    for call in (
        lambda: ImportanceReweightingClassifier(noise_rates=other).fit(X, y),
        lambda: LabelAudit(noise_rates=other).fit(X, y),
        lambda: LabelAudit(noise_rates=other).fit_posterior(np.full((600, 2), 0.5), y),
        lambda: flip_labels(y, other),
    ):
        with pytest.raises(ValueError, match="churned"):
            call()


@pytest.mark.parametrize("rates", [{"a": 0.1}, {"a": 0.1, "b": 0.1, "c": 0.1}, (0.1, 0.2)])
def test_by_class_takes_two_classes(rates) -> None:
    with pytest.raises(ValueError, match="two classes"):
        NoiseRates.by_class(rates)


def test_a_transition_matrix_is_given_and_shown_by_class() -> None:
    noise = TransitionMatrix.by_class({"b": {"a": 0.2}, "a": {}, "c": {"a": 0.1, "b": 0.3}})
    assert_allclose(noise.matrix, [[1, 0, 0], [0.2, 0.8, 0], [0.1, 0.3, 0.6]])
    assert eval(repr(noise)) == noise  # noqa: S307
    assert repr(pickle.loads(pickle.dumps(noise))) == repr(noise)  # noqa: S301
    y = np.array(["a", "b", "c"])[np.arange(300) % 3]
    assert (flip_labels(y, noise, random_state=0)[y == "a"] == "a").all()
    with pytest.raises(ValueError, match="classes"):
        flip_labels(np.where(y == "a", "d", y), noise)
    assert noise.of(np.array(["a", "b", "c"])) is noise


@pytest.mark.parametrize(
    "rates", [{"a": 0.1, "b": 0.1}, {"a": {}}, {"a": {"c": 0.1}, "b": {}}, {"a": {"a": 1}, "b": {}}]
)
def test_flip_rates_by_class_name_other_classes(rates) -> None:
    with pytest.raises(ValueError, match="class"):
        TransitionMatrix.by_class(rates)
