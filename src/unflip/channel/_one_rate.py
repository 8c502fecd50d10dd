r"""Very many classes: T has one rate r for all of them, and the logits of a model one factor a.

    P(observed = y | x) = (1 - r) g_y + r (1 - g_y) / (K - 1),    g = softmax(a x).

There is a likelihood of two parameters, whatever the number of classes; Laplace's method gives the
distribution of r.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from unflip._utils.typing import Array, Floats
from unflip.channel._choose import ChannelSample
from unflip.channel._design import softmax_over_classes
from unflip.channel._distribution import largest_unseen, shortest_ranges
from unflip.channel._explore import Found
from unflip.channel._settings import SETTINGS
from unflip.channel._structure import LOG_2_PI, ONE_RATE
from unflip.noise import RatesInterval


@dataclass(frozen=True)
class DrawnRates:
    """Draws from the distribution of one rate for all classes."""

    # Sorted.
    rates: Floats
    label_counts: Array
    is_known: bool = False

    def interval(self, level: float) -> RatesInterval:
        """Return the shortest range that holds each entry of T with probability `level`."""
        low, high = (float(end) for end in shortest_ranges(self.rates, level))
        total = float(largest_unseen(self.label_counts.sum(), level))
        unseen = np.maximum(high, largest_unseen(self.label_counts, level))
        K = self.label_counts.size
        # a flip may happen this often though it has not happened once in so many samples
        least, most = np.full((K, K), low / (K - 1)), np.tile(unseen[:, None], K)
        np.fill_diagonal(least, 1 - unseen)
        np.fill_diagonal(most, 1 - low)
        return RatesInterval(least, most, level, (low, max(high, total)))


def one_rate_matrix(rate: float, n_classes: int) -> Floats:
    """Return T of one rate, with flips to all other classes alike."""
    T = np.full((n_classes, n_classes), rate / (n_classes - 1))
    np.fill_diagonal(T, 1 - rate)
    return T


def fit_one_rate(
    sample: ChannelSample, random_state: np.random.RandomState
) -> tuple[float, Found, float]:
    """Return a, the distribution of T, and the log-evidence of the labels."""
    K, own = sample.n_classes, np.arange(sample.codes.size)
    x, spread = np.ascontiguousarray(sample.rows.T), SETTINGS.log_factor_deviation

    def loss(log_factor: float, rate: float) -> float:
        """Return minus the log-likelihood and the log-prior of a."""
        g = softmax_over_classes(np.exp(log_factor) * x)[sample.codes, own]
        p = np.maximum((1 - rate) * g + rate * (1 - g) / (K - 1), SETTINGS.smallest_probability)
        return (log_factor / spread) ** 2 / 2 - float(sample.weight @ np.log(p))

    def with_noise(at: Floats) -> float:
        # Beta prior of the rate, as a density of its logit
        flips, stays, rate = SETTINGS.prior_flips, SETTINGS.prior_stays, expit(at[1])
        prior = flips * np.log(rate) + stays * np.log1p(-rate) + np.log(stays)
        return loss(float(at[0]), float(rate)) - float(prior)

    most = SETTINGS.largest_logit
    clean = minimize(lambda at: loss(float(at[0]), 0.0), [0.0])
    start = [float(clean.x[0]), logit(SETTINGS.starting_rate)]
    noisy = minimize(with_noise, start, method="L-BFGS-B", bounds=[(None, None), (-most, most)])
    covariance = np.linalg.inv(_curvature(with_noise, noisy.x))
    evidence = LOG_2_PI + 0.5 * np.linalg.slogdet(covariance)[1] - float(noisy.fun)
    of_clean = 0.5 * (
        LOG_2_PI - np.log(_curvature(lambda at: loss(float(at[0]), 0.0), clean.x)[0, 0])
    )
    odds = logit(SETTINGS.no_noise_probability) + of_clean - float(clean.fun) - evidence
    no_noise = float(expit(odds))
    drawn = noisy.x[1] + np.sqrt(covariance[1, 1]) * random_state.standard_normal(SETTINGS.n_draws)
    rates = np.sort(expit(drawn))
    mean = (1 - no_noise) * float(rates.mean())
    rates[: round(no_noise * rates.size)] = 0.0
    rates.sort()
    factor = clean.x[0] if no_noise > 0.5 else noisy.x[0]
    counts = np.bincount(sample.codes, sample.weight, minlength=K)
    T = one_rate_matrix(mean, K)
    found = Found(T, T, DrawnRates(rates, counts), {"none": no_noise, ONE_RATE: 1 - no_noise})
    height = float(np.logaddexp(of_clean - float(clean.fun), evidence))
    return float(np.exp(factor)), found, height


def _curvature(loss: Callable[[Floats], float], at: Floats) -> Floats:
    """Return the matrix of second differences; the curvature is at least that of the prior of a."""
    step, n = SETTINGS.log_factor_step, at.size
    unit = step * np.eye(n)
    middle, bends = loss(at), np.empty((n, n))
    for i in range(n):
        for j in range(n):
            if i == j:
                second = loss(at + unit[i]) - 2 * middle + loss(at - unit[i])
            else:
                plus, minus = unit[i] + unit[j], unit[i] - unit[j]
                second = loss(at + plus) - loss(at + minus) - loss(at - minus) + loss(at - plus)
                second /= 4
            bends[i, j] = second / step**2
    values, vectors = np.linalg.eigh(bends)
    floor = SETTINGS.largest_log_factor_deviation**-2
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)
