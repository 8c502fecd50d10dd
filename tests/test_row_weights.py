"""The scale of sample weights says nothing; their proportions say how many rows there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
from unflip._utils.row_weights import common_unit, relative_weights
from unflip.audit import LabelAudit
from unflip.noise_rates import ALIASES, CrossValidatedRates, make_rates

counts = st.lists(st.integers(1, 9), min_size=12, max_size=30)
scales = st.floats(1e-12, 1e12)


@given(counts, scales)
def test_small_multiples_of_a_unit_are_numbers_of_copies_at_any_scale(copies, scale):
    expected = np.array(copies) / np.gcd.reduce(copies)
    assert_array_equal(relative_weights(np.array(copies) * scale, len(copies)), expected)


@given(scales, st.integers(0, 100))
def test_other_weights_sum_to_the_effective_number_of_rows_at_any_scale(scale, seed):
    weight = np.random.default_rng(seed).lognormal(size=50)
    assert common_unit(weight) is None
    expected = weight * weight.sum() / (weight**2).sum()
    assert_allclose(relative_weights(weight * scale, 50), expected)


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(300, 3))
    return X, flip_labels(X[:, 0] > 0, NoiseRates(0.3, 0.1), random_state=0)


ESTIMATORS = [
    *(make_rates(name) for name in ALIASES if name != "cv"),
    CrossValidatedRates(
        ImportanceReweightingClassifier(posterior="probabilistic"),
        grid=[(0.1, 0.1), (0.3, 0.1)],
    ),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_rates_do_not_depend_on_the_scale_of_the_weights(data, estimator):
    X, y = data
    estimator.set_params(random_state=0)
    plain = estimator.fit(X, y).rates_.both()
    for scale in (10, 1 / len(y)):
        scaled = estimator.fit(X, y, np.full(len(y), scale)).rates_.both()
        assert_allclose(scaled, plain, rtol=1e-9)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    some = estimator.fit(X, y, weight).rates_.both()
    assert_allclose(estimator.fit(X, y, 1e6 * weight).rates_.both(), some, atol=1e-6)
    weight[0] = 1e10
    with pytest.raises(ValueError, match="Clip the largest"):
        estimator.fit(X, y, weight)


@pytest.mark.parametrize("posterior", ["auto", "probabilistic", "kde", "ulsif", "kmm"])
def test_weights_of_rows_do_not_depend_on_the_scale_of_a_users_weights(data, posterior):
    X, y = data
    own = np.random.default_rng(1).integers(1, 4, len(y))
    clf = ImportanceReweightingClassifier(
        posterior=posterior, noise_rates=NoiseRates(0.3, 0.1), cv=3, random_state=0
    )
    beta = clf.fit(X, y, own).sample_weight_
    assert_allclose(clf.fit(X, y, own / 7).sample_weight_, beta, rtol=1e-6, atol=1e-9)


def test_the_audit_does_not_depend_on_the_scale_of_the_weights(data):
    X, y = data
    own = np.random.default_rng(1).uniform(0.5, 2, len(y))
    wrong = LabelAudit(random_state=0).fit(X, y, own).mislabel_proba_
    again = LabelAudit(random_state=0).fit(X, y, 100 * own).mislabel_proba_
    assert_allclose(again, wrong, atol=1e-6)
