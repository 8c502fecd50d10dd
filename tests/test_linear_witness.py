"""A linear model beside the noisy channel, where no noise at random is seen."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from unflip import LabelAudit, _from_features
from unflip._probabilities.label_errors import fit_mistakes
from unflip._probabilities.linear import pooled_with_linear
from unflip._utils.validation import Labels
from unflip.posterior import ProbabilisticPosterior, fit_posterior

FOLDS = KFold(4)


def rows(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    return X, (X @ [1.5, 1.0, 0.0] + rng.logistic(size=n_rows) > 0).astype(int), rng


@pytest.mark.parametrize("no_noise", [0.4, 1.0])
def test_both_witnesses_are_averaged_in_log_odds_the_second_as_far_as_there_is_no_noise(no_noise):
    X, y, rng = rows(200)
    first = rng.dirichlet([1.0, 1.0], 200)
    found = pooled_with_linear(first, no_noise, X, Labels(np.array([0, 1]), y), cv=FOLDS)
    held_out = fit_posterior(ProbabilisticPosterior(), X, y, cv=FOLDS)[1]
    second = fit_mistakes(held_out, y).apply(held_out, y).proba
    odds = (1 - no_noise / 2) * np.log(first[:, 1] / first[:, 0])
    odds += no_noise / 2 * np.log(second[:, 1] / second[:, 0])
    assert_allclose(found[:, 1], 1 / (1 + np.exp(-odds)), rtol=1e-6)
    assert_allclose(found.sum(axis=1), 1)


def test_where_noise_at_random_is_sure_the_channel_speaks_alone():
    X, y, rng = rows(50)
    first = rng.dirichlet([1.0, 1.0], 50)
    assert pooled_with_linear(first, 0.001, X, Labels(np.array([0, 1]), y), cv=FOLDS) is first


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_mistakes_of_a_rule_are_ranked_better_than_by_the_channel_alone(monkeypatch):
    X, _, _ = rows(300, seed=1)
    true = (X[:, 0] > 0).astype(int)
    given = np.where(np.abs(X[:, 2]) < 0.2, 1, true)
    alone = []

    def spy(label_proba, *arguments, **named):
        alone.append(1 - label_proba[np.arange(300), given])
        return pooled_with_linear(label_proba, *arguments, **named)

    monkeypatch.setattr(_from_features, "pooled_with_linear", spy)
    found = LabelAudit(random_state=0).fit(X, given)
    wrong = given != true
    assert roc_auc_score(wrong, found.mislabel_proba_) > roc_auc_score(wrong, alone[0]) + 0.01
    assert found.n_errors_ == pytest.approx(found.mislabel_proba_.sum())


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_folds_that_can_be_read_once_serve_both_models():
    X, y, _ = rows(120)
    once = LabelAudit(cv=FOLDS.split(X), random_state=0).fit(X, y)
    assert_allclose(
        once.mislabel_proba_, LabelAudit(cv=FOLDS, random_state=0).fit(X, y).mislabel_proba_
    )
