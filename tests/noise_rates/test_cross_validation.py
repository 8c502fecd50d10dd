"""Rates by cross-validation: which criterion finds them, what it costs, what it refuses."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
from unflip._utils.warning import warn
from unflip.noise_rates import CrossValidatedRates, make_rates

GRID = [(0.0, 0.0), (0.1, 0.3), (0.3, 0.1), (0.2, 0.2)]

# cross-validation's means of the estimated (rho_pos, rho_neg) in the paper's table 1
TABLE_1_TWO_DIMENSIONS = {
    (0.0, 0.4): (0.036, 0.402),
    (0.1, 0.3): (0.322, 0.352),
    (0.2, 0.2): (0.424, 0.352),
}


class Thresholded(ClassifierMixin, BaseEstimator):
    """Label-dependent costs: +1 where P(noisy=+1 | x), the only feature, is over alpha*."""

    def __init__(self, noise_rates=None):
        self.noise_rates = noise_rates

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        positive, negative = self.noise_rates.both()
        return self.classes_[(X[:, 0] > (1 - positive + negative) / 2).astype(int)]


class Scripted(ClassifierMixin, BaseEstimator):
    """Says what P(true=+1 | x) is, fails for the rates it is told to, and warns."""

    def __init__(self, noise_rates=None, refused=(), says=0.5):
        self.noise_rates = noise_rates
        self.refused = refused
        self.says = says

    def fit(self, X, y, sample_weight=None):
        warn(f"{self.noise_rates} contradicts the data", UserWarning)
        if self.noise_rates.both() in self.refused:
            raise ValueError(f"cannot learn under {self.noise_rates}")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.classes_[1])

    def predict_proba(self, X):
        return np.full((X.shape[0], 2), [1 - self.says, self.says])


class Spy(LogisticRegression):
    """A posterior that counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).fits += 1
        return super().fit(X, y, sample_weight)


def logistic_sample(n: int, pair, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose true classes follow a logistic regression, and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-3 * X[:, 0] + X[:, 1] - 0.5))).astype(int)
    return X, flip_labels(y, NoiseRates(*pair), random_state=seed)


@pytest.mark.parametrize(
    "pair", [(0.3, 0.1), (0.05, 0.4), pytest.param((0.2, 0.2), marks=pytest.mark.slow)]
)
def test_the_likelihood_finds_the_rates_if_the_classifier_is_well_specified(pair):
    X, y = logistic_sample(8000, pair)
    around = np.arange(-2, 3) / 20
    grid = [(pair[0] + a, pair[1] + b) for a in around for b in around if pair[0] + a >= 0]
    search = CrossValidatedRates(ImportanceReweightingClassifier(), grid, random_state=0)
    np.testing.assert_allclose(search.fit(X, y).rates_.both(), pair, atol=0.05 + 1e-9)


@pytest.mark.parametrize("truth", [(0.3, 0.1), (0.0, 0.4), (0.4, 0.05), (0.2, 0.2)])
def test_noisy_accuracy_of_a_threshold_makes_both_rates_equal_whatever_the_truth(truth):
    noisy = NoiseRates(*truth).noisy_posterior(np.linspace(0, 1, 201))
    # the population: every x once with each label, weighted by the label's probability
    X, y = np.tile(noisy, 2)[:, None], np.repeat([0, 1], 201)
    weight = np.concatenate([1 - noisy, noisy])
    everything = np.arange(402)
    search = CrossValidatedRates(
        Thresholded(), scoring="noisy_accuracy", cv=[(everything, everything)]
    ).fit(X, y, weight)
    assert search.rates_.positive == search.rates_.negative == 0  # of all equal pairs
    nonzero = search.grid_[search.grid_.sum(axis=1) > 0]
    search.set_params(grid=nonzero).fit(X, y, weight)
    assert search.rates_.positive == search.rates_.negative


def test_ties_go_to_the_smallest_sum_then_to_the_smallest_difference():
    X, y = np.arange(40.0)[:, None], np.tile([0, 1], 20)
    grid = [(0.4, 0.1), (0.3, 0.0), (0.0, 0.3), (0.1, 0.2), (0.2, 0.1), (0.4, 0.4)]
    search = CrossValidatedRates(Scripted(), grid, scoring="noisy_accuracy").fit(X, y)
    assert np.ptp(search.scores_) == 0
    assert search.rates_.both() == (0.1, 0.2)
    assert CrossValidatedRates(Scripted(), grid[::-1], scoring="noisy_accuracy").fit(
        X, y
    ).rates_.both() == (0.2, 0.1)


def test_the_default_grid_is_a_square_of_a_hundred_pairs():
    X, y = np.arange(40.0)[:, None], np.tile([0, 1], 20)
    search = CrossValidatedRates(Scripted()).fit(X, y)
    assert search.grid_.shape == (100, 2)
    assert search.scores_.shape == (100,)
    assert search.grid_.sum(axis=1).max() == pytest.approx(0.9)
    np.testing.assert_allclose(np.unique(search.grid_), np.arange(10) / 20)
    np.testing.assert_array_equal(search.classes_, [0, 1])


def test_the_score_is_the_mean_log_likelihood_of_the_held_out_labels():
    X, y = np.arange(40.0)[:, None], np.repeat([0, 1], [30, 10])
    search = CrossValidatedRates(Scripted(says=0.8), [(0.3, 0.1)], cv=5).fit(X, y)
    noisy = 0.1 + 0.6 * 0.8
    assert search.scores_[0] == pytest.approx(0.75 * np.log(1 - noisy) + 0.25 * np.log(noisy))
    sure = CrossValidatedRates(Scripted(says=1.0), [(0.0, 0.0)], cv=5).fit(X, y)
    assert np.isfinite(sure.scores_[0])


def test_the_posterior_is_fitted_once_per_fold():
    X, y = logistic_sample(300, (0.2, 0.1))
    Spy.fits = 0
    clf = ImportanceReweightingClassifier(posterior=Spy())
    frozen = CrossValidatedRates(clf, GRID, cv=3, random_state=0).fit(X, y)
    assert Spy.fits == 3
    # the scores are those of fitting it anew for every pair
    splits = list(StratifiedKFold(3).split(X, y))
    frozen = CrossValidatedRates(clf, GRID, cv=splits).fit(X, y)
    anew = np.zeros(len(GRID))
    for k, pair in enumerate(GRID):
        for train, held_out in splits:
            clf.set_params(noise_rates=NoiseRates(*pair)).fit(X[train], y[train])
            clean = clf.predict_proba(X[held_out])[:, 1]
            noisy = NoiseRates(*pair).noisy_posterior(clean)
            anew[k] += np.mean(np.log(np.where(y[held_out] == 1, noisy, 1 - noisy))) / 3
    np.testing.assert_allclose(frozen.scores_, anew)


def test_a_cross_fitted_posterior_stays_honest():
    X, y = logistic_sample(300, (0.2, 0.1))
    Spy.fits = 0
    clf = ImportanceReweightingClassifier(posterior=Spy(), cv=2)
    CrossValidatedRates(clf, GRID[:2], cv=3, random_state=0).fit(X, y)
    assert Spy.fits == 2 * 3 * 3  # pairs, folds, and two halves and the whole


def test_pairs_that_cannot_be_fitted_are_passed_over():
    X, y = np.arange(40.0)[:, None], np.tile([0, 1], 20)
    search = CrossValidatedRates(Scripted(refused=[(0.0, 0.0), (0.2, 0.2)]), GRID).fit(X, y)
    np.testing.assert_array_equal(np.isinf(search.scores_), [True, False, False, True])
    assert search.rates_.both() in [(0.1, 0.3), (0.3, 0.1)]
    with pytest.raises(ValueError, match=r"cannot learn under NoiseRates\(positive=0, negative=0"):
        CrossValidatedRates(Scripted(refused=GRID), GRID).fit(X, y)


def test_rows_of_weight_zero_are_as_good_as_removed():
    X, y = logistic_sample(400, (0.3, 0.1))
    weight = np.random.default_rng(0).integers(0, 3, 400)
    counts = weight > 0
    clf = ImportanceReweightingClassifier()
    search = CrossValidatedRates(clf, GRID, random_state=0)
    weighted = search.fit(X, y, weight).scores_
    removed = search.fit(X[counts], y[counts], weight[counts]).scores_
    np.testing.assert_allclose(weighted, removed)
    unweighted = search.fit(X[counts], y[counts]).scores_
    assert not np.allclose(weighted, unweighted)


def test_rows_of_weight_zero_are_removed_from_given_splits():
    X, y = logistic_sample(200, (0.3, 0.1))
    weight = np.repeat([0.0, 1.0], [50, 150])
    search = CrossValidatedRates(ImportanceReweightingClassifier(), GRID)
    splits = list(StratifiedKFold(2).split(X[50:], y[50:]))
    given = [
        (np.append(train + 50, np.arange(25)), np.append(test + 50, np.arange(25, 50)))
        for train, test in splits
    ]
    with_zeros = search.set_params(cv=given).fit(X, y, weight).scores_
    without = search.set_params(cv=splits).fit(X[50:], y[50:]).scores_
    np.testing.assert_allclose(with_zeros, without, rtol=1e-4)
    with pytest.raises(ValueError, match="sample_weight"):
        search.set_params(cv=[(np.arange(50, 200), np.arange(50))]).fit(X, y, weight)


def test_a_seed_fixes_the_folds_and_any_table_will_do():
    X, y = logistic_sample(200, (0.3, 0.1))
    search = CrossValidatedRates(ImportanceReweightingClassifier(), GRID, random_state=3)
    scores = search.fit(X, y).scores_
    np.testing.assert_array_equal(search.fit(X, y).scores_, scores)
    assert not np.array_equal(search.set_params(random_state=4).fit(X, y).scores_, scores)
    assert np.isfinite(search.fit(sparse.coo_array(X), y).scores_).all()
    assert np.isfinite(search.fit(X.tolist(), np.where(y, "yes", "no")).scores_).all()


def test_swapping_the_labels_swaps_the_rates():
    X, y = logistic_sample(600, (0.3, 0.1))
    splits = list(StratifiedKFold(3).split(X, y))
    search = CrossValidatedRates(ImportanceReweightingClassifier(), GRID, cv=splits)
    one, other = search.fit(X, y).rates_, search.fit(X, 1 - y).rates_
    assert one == other.swapped()


def test_too_few_rows_to_hold_some_out_are_warned_of():
    X, y = np.arange(12.0)[:, None], np.repeat([0, 1], 6)
    search = CrossValidatedRates(ImportanceReweightingClassifier(), [(0.0, 0.0), (0.1, 0.1)])
    with pytest.warns(UserWarning, match="n_samples=12"):
        search.fit(X, y)
    assert np.isfinite(search.scores_).all()


@pytest.mark.parametrize(
    ("search", "error", "message"),
    [
        (CrossValidatedRates(), ValueError, "no estimator to cross-validate. Pass one"),
        (CrossValidatedRates(LogisticRegression()), TypeError, "no parameter noise_rates"),
        (CrossValidatedRates(Thresholded()), TypeError, "Thresholded has no predict_proba"),
        (
            CrossValidatedRates(ImportanceReweightingClassifier(LinearSVC())),
            TypeError,
            "no predict_proba",
        ),
        (CrossValidatedRates(Scripted(), scoring="f1"), ValueError, "scoring='f1' is not one of"),
        (CrossValidatedRates(Scripted(), [0.1, 0.2]), ValueError, r"grid has shape \(2,\)"),
        (CrossValidatedRates(Scripted(), []), ValueError, r"grid has shape \(0,\)"),
        (CrossValidatedRates(Scripted(), [(0.5, 0.5)]), ValueError, "sum to less than 1"),
        (CrossValidatedRates(Scripted(), cv=1), ValueError, "at least 2 folds, got 1"),
        (
            CrossValidatedRates(Scripted(), cv=None),
            ValueError,
            "number of folds, a splitter",
        ),
        (CrossValidatedRates(Scripted(), cv=[]), ValueError, "list of pairs"),
        (CrossValidatedRates(Scripted(), cv=21), ValueError, "class 0 has 20 rows, fewer than"),
    ],
)
def test_bad_input_is_named(search, error, message):
    X, y = np.arange(40.0)[:, None], np.tile([0, 1], 20)
    with pytest.raises(error, match=message):
        search.fit(X, y)
    assert not any(name.endswith("_") for name in vars(search))


def test_the_alias_leaves_the_estimator_to_the_classifier():
    assert isinstance(make_rates("cv"), CrossValidatedRates)
    assert make_rates("cv", random_state=0).estimator is None


@pytest.mark.slow
@pytest.mark.parametrize(("pair", "printed"), list(TABLE_1_TWO_DIMENSIONS.items()))
def test_table_1_noisy_accuracy_is_no_worse_than_printed_or_a_tenth(pair, printed):
    X = np.random.default_rng(0).uniform(size=(1000, 2))
    total = X.sum(axis=1)
    y = np.where(total > np.median(total), 1, -1)
    estimates = []
    for seed in range(10):
        random_state = np.random.RandomState(seed)
        train = random_state.permutation(1000)[:750]
        y_noisy = flip_labels(y[train], NoiseRates(*pair), random_state)
        search = CrossValidatedRates(
            ImportanceReweightingClassifier(), scoring="noisy_accuracy", random_state=seed
        )
        estimates.append(search.fit(X[train], y_noisy).rates_.both())
    error = np.abs(np.mean(estimates, axis=0) - pair)
    # the printed errors reach 0.22: the score is nearly flat in the rates, and its best is chance
    assert (error <= np.maximum(np.abs(np.subtract(printed, pair)), 0.1)).all(), error


def test_the_interval_narrows_with_more_rows_and_holds_the_pair():
    widths = []
    grid = [(a / 10, b / 10) for a in range(1, 5) for b in range(4)]
    clf = ImportanceReweightingClassifier(LogisticRegression(), posterior="probabilistic")
    for n in (4000, 300):
        X, y = logistic_sample(n, (0.3, 0.1))
        search = CrossValidatedRates(clf, grid, random_state=0).fit(X, y)
        for rate, (low, high) in zip(search.rates_.both(), search.interval_.both(), strict=True):
            assert low <= rate <= high
        widths.append(sum(high - low for low, high in search.interval_.both()))
    assert widths[0] < widths[1]
    again = CrossValidatedRates(clf, grid, random_state=0).fit(X, y)
    assert again.interval_ == search.interval_


def test_a_pair_that_fails_on_resamples_has_no_part_in_the_interval():
    X, y = np.zeros((60, 1)), np.tile([0, 1], 30)
    scripted = Scripted(refused=((0.3, 0.1),))
    search = CrossValidatedRates(scripted, GRID, random_state=0).fit(X, y)
    assert search.scores_[2] == -np.inf
    assert search.interval_.positive[1] < 0.3
