"""The channel as a rate estimator."""

import numpy as np
import pytest

from unflip import NoiseRates, flip_labels
from unflip._stages import fit_stages
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
    stages = fit_stages("auto", NoiseRates(None, 0.1), *data)
    assert stages.posterior.known == NoiseRates(None, 0.1)
    assert stages.estimator.posterior_ is stages.posterior
    assert stages.rates.negative == 0.1
    known = fit_stages("auto", RATES.transition_matrix, *data)
    assert known.estimator is None
    assert known.rates == known.posterior.rates_ == RATES
    own = fit_stages(ChannelPosterior(known=RATES), NoiseRates(0.2, 0.2), *data)
    assert own.posterior.known == RATES  # a posterior that is given stays as it is


def test_the_mean_never_rules_noise_out(data):
    X, _ = data
    clean = X.sum(axis=1) > 1
    assert fit_stages("auto", "auto", X, clean).rates.both() == (0, 0)
    mean = fit_stages("auto", "auto", X, clean, estimate="mean").rates
    assert all(0 < rate < 0.05 for rate in mean.both())
