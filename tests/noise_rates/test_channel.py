"""The channel as a rate estimator."""

import numpy as np
import pytest

from unflip import ImportanceReweightingClassifier, LabelAudit, NoiseRates, flip_labels
from unflip.noise_rates import ChannelRates, estimate_rates, make_rates
from unflip.posterior import ChannelPosterior, ProbabilisticPosterior

RATES = NoiseRates(0.3, 0.1)


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).uniform(size=(500, 2))
    return X, flip_labels(X.sum(axis=1) > 1, RATES, random_state=0)


def test_the_rates_are_those_of_the_posterior(data):
    rates = ChannelRates(random_state=3).fit(*data)
    posterior = ChannelPosterior(random_state=3)
    seeded = ChannelRates(posterior).fit(*data)
    fitted = posterior.fit(*data)
    assert seeded.rates_ == fitted.rates_ == ChannelRates.of(fitted).rates_
    assert seeded.interval_ == fitted.interval_
    assert seeded.noise_test_ == fitted.noise_test_
    assert seeded.symmetry_test_ == fitted.symmetry_test_
    assert seeded.interval(0.5) == fitted.interval(0.5) != fitted.interval_
    np.testing.assert_allclose(rates.rates_.both(), seeded.rates_.both(), atol=0.01)


def test_another_posterior_is_refused(data):
    with pytest.raises(TypeError, match="must be a ChannelPosterior or None"):
        ChannelRates(ProbabilisticPosterior()).fit(*data)


def test_auto_is_the_channel(data):
    assert isinstance(make_rates("auto"), ChannelRates)
    assert estimate_rates("auto", *data) == ChannelRates().fit(*data).rates_


def test_what_is_known_reaches_the_channel_once(data):
    def fitted(**options):
        return ImportanceReweightingClassifier(**options).fit(*data)

    half = fitted(noise_rates=NoiseRates(None, 0.1))
    assert half.posterior_.known == NoiseRates(None, 0.1)
    assert half.rate_estimator_.posterior_ is half.posterior_
    assert half.noise_rates_.negative == 0.1
    known = fitted(noise_rates=RATES.transition_matrix)
    assert known.rate_estimator_ is None
    assert known.noise_rates_ == known.posterior_.rates_ == RATES
    own = fitted(posterior=ChannelPosterior(known=RATES), noise_rates=NoiseRates(0.2, 0.2))
    assert own.posterior_.known == RATES  # a posterior that is given stays as it is


def test_samples_are_ranked_even_if_no_noise_is_the_most_probable(data):
    X, _ = data
    clean = X.sum(axis=1) > 1
    audit = LabelAudit().fit(X, clean)
    assert audit.noise_rates_.both() == (0, 0)
    assert 0 < audit.label_error_rate_ < 0.02
    assert np.unique(audit.mislabel_proba_).size > clean.size / 2
