"""uLSIF and RuLSIF: closed forms against brute force and direct minimisation."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Ridge

from tests.density_ratio.test_kliep import kernel, two_samples
from unflip.density_ratio import ULSIF, RuLSIF


def brute_force_leave_one_out(phi_num, phi_den, penalty, alpha):
    """Refit without each pair, written out."""
    losses = []
    for i in range(min(len(phi_num), len(phi_den))):
        num, den = np.delete(phi_num, i, axis=0), np.delete(phi_den, i, axis=0)
        H = alpha * num.T @ num / len(num) + (1 - alpha) * den.T @ den / len(den)
        theta = np.linalg.solve(H + penalty * np.eye(len(H)), num.mean(axis=0))
        theta = np.maximum(theta, 0)
        r_num, r_den = phi_num[i] @ theta, phi_den[i] @ theta
        losses.append(alpha / 2 * r_num**2 + (1 - alpha) / 2 * r_den**2 - r_num)
    return np.mean(losses)


@pytest.mark.parametrize("alpha", [0.0, 0.4])
def test_the_closed_form_minimises_the_penalised_loss(alpha):
    X_num, X_den = two_samples(200, 2, 0)
    ratio = RuLSIF(alpha, 1.5, 0.5, n_centers=8, random_state=1).fit(X_num, X_den)
    phi_num, phi_den = kernel(ratio, X_num), kernel(ratio, X_den)

    def loss(theta):
        r_num, r_den = phi_num @ theta, phi_den @ theta
        squares = alpha * np.mean(r_num**2) + (1 - alpha) * np.mean(r_den**2)
        return squares / 2 - r_num.mean() + 0.5 * theta @ theta / 2

    best = minimize(loss, np.ones(8), options={"gtol": 1e-9})
    np.testing.assert_allclose(ratio.coef_, np.maximum(best.x, 0), atol=1e-5)


def test_ulsif_is_rulsif_at_zero():
    X_num, X_den = two_samples(200, 2, 0)
    np.testing.assert_allclose(
        ULSIF(random_state=0).fit(X_num, X_den).predict(X_den),
        RuLSIF(0.0, random_state=0).fit(X_num, X_den).predict(X_den),
    )


def test_ulsif_of_a_class_against_all_is_ridge_regression_of_its_indicator():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = rng.uniform(size=300) < 1 / (1 + np.exp(-2 * X[:, 0]))
    ratio = ULSIF(1.0, 0.05, n_centers=15, random_state=0).fit(X[y], X)
    ridge = Ridge(alpha=0.05 * len(X), fit_intercept=False).fit(kernel(ratio, X), y)
    np.testing.assert_allclose(y.mean() * ratio.coef_, np.maximum(ridge.coef_, 0), atol=1e-8)


def test_class_against_class_at_its_share_is_class_against_all():
    X_num, X_den = two_samples(300, 2, 1)
    X_rest = X_den[~(X_den[:, None] == X_num[None]).all(axis=2).any(axis=1)]
    share = len(X_num) / len(X_den)
    relative = RuLSIF(share, 1.0, 0.1, random_state=0).fit(X_num, X_rest)
    plain = ULSIF(1.0, 0.1, random_state=0).fit(X_num, X_den)
    np.testing.assert_allclose(
        relative.predict_relative(X_den), plain.predict(X_den), rtol=1e-8, atol=1e-12
    )


def test_the_relative_ratio_is_turned_back_into_the_plain_one():
    X_num, X_den = two_samples(400, 1, 2)
    ratio = RuLSIF(0.3, random_state=0).fit(X_num, X_den)
    relative = np.minimum(ratio.predict_relative(X_den), 0.999 / 0.3)
    plain = ratio.predict(X_den)
    np.testing.assert_allclose(relative, plain / (0.3 * plain + 0.7), rtol=1e-6)


def test_weights_are_repetitions():
    X_num, X_den = two_samples(80, 2, 3)
    rng = np.random.default_rng(0)
    w_num, w_den = rng.integers(0, 3, len(X_num)), rng.integers(0, 3, len(X_den))
    parameters = {"alpha": 0.2, "bandwidth": 1.0, "regularization": 0.1, "random_state": 0}
    weighted = RuLSIF(**parameters).fit(X_num, X_den, weight_num=w_num, weight_den=w_den)
    repeated = RuLSIF(**parameters).fit(X_num.repeat(w_num, axis=0), X_den.repeat(w_den, axis=0))
    np.testing.assert_allclose(weighted.predict(X_den), repeated.predict(X_den), rtol=1e-8)


def test_the_best_leave_one_out_score_is_taken():
    X_num, X_den = two_samples(200, 1, 4)
    ratio = ULSIF(random_state=0).fit(X_num, X_den)
    assert ratio.loo_scores_.shape == (81, 3)
    width, penalty, _ = ratio.loo_scores_[np.argmax(ratio.loo_scores_[:, 2])]
    assert (ratio.bandwidth_, ratio.regularization_) == (width, penalty)


def test_the_score_is_the_relative_pearson_divergence_plus_a_half():
    X_num, X_den = two_samples(300, 2, 5)
    ratio = RuLSIF(0.2, random_state=0).fit(X_num, X_den)
    r_num, r_den = ratio.predict_relative(X_num), ratio.predict_relative(X_den)
    divergence = -0.1 * np.mean(r_num**2) - 0.4 * np.mean(r_den**2) + r_num.mean() - 0.5
    assert ratio.score(X_num, X_den) == pytest.approx(divergence + 0.5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 1.0}, r"alpha must lie in \[0, 1\), got 1.0"),
        ({"regularization": 0.0}, "regularization must be a finite number > 0"),
        ({"regularization": "loo"}, "regularization='loo' is not one of"),
        ({"regularizations": [1, -1]}, "regularizations must be a finite number > 0"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X_num, X_den = two_samples(50, 2, 0)
    with pytest.raises(ValueError, match=message):
        RuLSIF(**parameters).fit(X_num, X_den)


def test_leave_one_out_of_a_single_row_is_refused():
    with pytest.raises(ValueError, match="leave-one-out needs"):
        ULSIF().fit([[0.0]], [[0.0], [1.0]])
