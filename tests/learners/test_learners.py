"""Linear and kernel learners: optimal, weighted, and scikit-learn's where they overlap."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, LinearSVC

from unflip.learners import KernelClassifier, LinearClassifier
from unflip.learners._solvers import LinearProblem
from unflip.losses import LOSSES

ALPHA = 0.02
CONVEX = [name for name, loss in LOSSES.items() if loss.convex]
SMOOTH = [name for name, loss in LOSSES.items() if loss.smooth]


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        150, n_features=4, n_informative=3, n_redundant=0, flip_y=0.2, random_state=0
    )
    return X, y, np.random.default_rng(0).integers(0, 4, len(y))


def problem(data, name, alpha=ALPHA, l1_ratio=0.0):
    """Return the regularised risk, whose gradient is checked below."""
    X, y, weight = data
    return LinearProblem(X, 2.0 * y - 1, weight.astype(float), LOSSES[name], alpha, l1_ratio)


def risk(objective, fitted):
    return objective.value(np.append(fitted.coef_, fitted.intercept_))


@pytest.mark.parametrize("name", LOSSES)
def test_the_linear_objectives_gradient_is_a_finite_difference(data, name):
    objective = problem(data, name)
    rng, step = np.random.default_rng(0), 1e-6
    parameters = rng.normal(size=5)
    _, gradient = objective.smooth_part(parameters)
    numeric = [
        (objective.smooth_part(parameters + e)[0] - objective.smooth_part(parameters - e)[0])
        / (2 * step)
        for e in step * np.eye(5)
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_losses_reach_a_stationary_point(data, name):
    X, y, weight = data
    linear = LinearClassifier(name, ALPHA, tol=1e-6).fit(X, y, sample_weight=weight)
    kernel = KernelClassifier(name, alpha=ALPHA, tol=1e-6).fit(X, y, sample_weight=weight)
    assert linear.gap_ <= 1e-5
    assert kernel.gap_ <= 1e-5


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
def test_the_hinge_reaches_its_duality_gap(data, alpha, fit_intercept):
    X, y, _ = data
    fitted = LinearClassifier("hinge", alpha, fit_intercept=fit_intercept, tol=1e-6).fit(X, y)
    assert 0 <= fitted.gap_ <= 1e-6
    if fit_intercept:
        svc = SVC(kernel="linear", C=1 / (alpha * len(y)), tol=1e-8).fit(X, y)
        objective = problem((X, y, np.ones(len(y))), "hinge", alpha)
        assert risk(objective, fitted) == pytest.approx(risk(objective, svc), abs=2e-6)


@pytest.mark.parametrize("tol", [0.5, 0.1, 1e-2, 1e-3])
def test_the_duality_gap_bounds_the_distance_to_the_optimum(data, tol):
    X, y, weight = data
    rough, best = (LinearClassifier("hinge", ALPHA, tol=t).fit(X, y, weight) for t in (tol, 1e-8))
    reached, optimum = (risk(problem(data, "hinge"), fitted) for fitted in (rough, best))
    assert optimum - 1e-8 <= reached <= optimum + rough.gap_ * max(1.0, reached) + 1e-8
    assert rough.gap_ <= tol


def test_losses_shared_with_scikit_learn_agree_with_it(data):
    X, y, weight = data
    C = 1 / (ALPHA * weight.sum())
    logistic = LogisticRegression(C=C, tol=1e-8).fit(X, y, sample_weight=weight)
    ours = LinearClassifier("logistic", ALPHA, tol=1e-8).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, logistic.coef_, rtol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), logistic.predict_proba(X), rtol=1e-5)
    ridge = Ridge(alpha=ALPHA * weight.sum() / 2).fit(X, 2 * y - 1, sample_weight=weight)
    np.testing.assert_allclose(
        LinearClassifier("squared", ALPHA).fit(X, y, sample_weight=weight).coef_[0], ridge.coef_
    )
    svm = LinearSVC(
        C=C, loss="squared_hinge", tol=1e-10, intercept_scaling=1e4, max_iter=100_000
    ).fit(X, y, sample_weight=weight)  # a large scaling all but frees the intercept
    np.testing.assert_allclose(
        LinearClassifier("squared_hinge", ALPHA, tol=1e-9).fit(X, y, weight).coef_,
        svm.coef_,
        rtol=0.02,
    )
    svc = SVC(C=C, gamma=0.5, tol=1e-8).fit(X, y, sample_weight=weight)
    machine = KernelClassifier("hinge", gamma=0.5, alpha=ALPHA, tol=1e-8).fit(X, y, weight)
    np.testing.assert_allclose(machine.decision_function(X), svc.decision_function(X), atol=1e-4)
    assert abs(machine.gap_) <= 1e-6


def test_kernel_logistic_regression_is_linear_when_its_kernel_is(data):
    X, y, _ = data
    linear = LinearClassifier("logistic", ALPHA, tol=1e-9).fit(X, y)
    kernel = KernelClassifier("logistic", kernel="linear", alpha=ALPHA, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("name", CONVEX)
def test_integer_weights_are_repetitions(data, name):
    X, y, weight = data
    X_repeated, y_repeated = X.repeat(weight, axis=0), y.repeat(weight)
    for learner in (
        LinearClassifier(name, ALPHA, tol=1e-8),
        KernelClassifier(name, gamma=0.5, alpha=ALPHA, tol=1e-8),
    ):
        weighted = clone(learner).fit(X, y, sample_weight=weight)
        repeated = clone(learner).fit(X_repeated, y_repeated)
        np.testing.assert_allclose(
            weighted.decision_function(X), repeated.decision_function(X), rtol=1e-3, atol=2e-4
        )


@pytest.mark.parametrize("name", ["logistic", "modified_huber", "squared_hinge", "hinge"])
def test_the_elastic_net_meets_its_optimality_conditions(data, name):
    X, y, weight = data
    fitted = LinearClassifier(
        name, 0.1, penalty="elasticnet", l1_ratio=0.7, tol=1e-8, max_iter=20_000
    ).fit(X, y, sample_weight=weight)
    objective = problem(data, name, 0.1, 0.7)
    point = np.append(fitted.coef_, fitted.intercept_)
    value = objective.value(point)
    rng = np.random.default_rng(0)
    for _ in range(300):
        assert objective.value(point + rng.normal(scale=0.01, size=5)) >= value - 1e-6
    if name != "hinge":
        assert fitted.gap_ <= 1e-5


def test_a_strong_l1_penalty_leaves_coefficients_at_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10))
    y = (X[:, 0] + 0.3 * rng.normal(size=400) > 0).astype(int)
    fitted = LinearClassifier("logistic", 0.2, penalty="elasticnet", l1_ratio=1.0).fit(X, y)
    assert np.abs(fitted.coef_[0, 0]) > 0.1
    assert (fitted.coef_[0, 1:] == 0).all()


def test_non_convex_losses_keep_the_best_of_their_starts(data):
    objective = problem(data, "welsch")
    X, y, weight = data
    kept = LinearClassifier("welsch", ALPHA, tol=1e-7).fit(X, y, sample_weight=weight)
    run = minimize(objective.smooth_part, np.zeros(5), jac=True, method="L-BFGS-B")
    assert risk(objective, kept) <= run.fun + 1e-9


def test_landmarks_approach_the_exact_kernel_fit(data):
    X, y = make_classification(400, n_features=4, flip_y=0.1, random_state=1)
    exact = KernelClassifier(alpha=0.01, tol=1e-6).fit(X, y).decision_function(X)
    errors = []
    for n_landmarks in (10, 50, 200):
        few = KernelClassifier(
            alpha=0.01, max_exact=100, n_landmarks=n_landmarks, tol=1e-6, random_state=0
        ).fit(X, y)
        assert few.landmarks_.shape == (n_landmarks, 4)
        errors.append(np.abs(few.decision_function(X) - exact).mean())
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 0.02
    hinge_few = KernelClassifier("hinge", alpha=0.01, max_exact=100, n_landmarks=200)
    hinge_all = KernelClassifier("hinge", alpha=0.01)
    agree = hinge_few.fit(X, y).predict(X) == hinge_all.fit(X, y).predict(X)
    assert agree.mean() > 0.98


@pytest.mark.parametrize("kernel", ["poly", "laplacian", lambda a, b: a @ b])
def test_other_kernels_work(data, kernel):
    X, y, _ = data
    assert KernelClassifier(kernel=kernel, alpha=0.01).fit(X, y).score(X, y) > 0.6


def test_sparse_rows_give_the_dense_linear_fit(data):
    X, y, _ = data
    for name in ("logistic", "squared", "hinge", "squared_hinge"):
        dense = LinearClassifier(name, 0.1, tol=1e-7).fit(X, y)
        thin = LinearClassifier(name, 0.1, tol=1e-7).fit(sparse.csr_array(X), y)
        np.testing.assert_allclose(thin.coef_, dense.coef_, atol=2e-3)


def test_probabilities_exist_where_the_loss_tells_them(data):
    X, y, _ = data
    for name, loss in LOSSES.items():
        assert hasattr(LinearClassifier(name), "predict_proba") == (loss.probability is not None)
    probabilities = LinearClassifier("exponential").fit(X, y).predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_alpha_is_chosen_by_grid_search(data):
    X, y, _ = data
    search = GridSearchCV(LinearClassifier("squared_hinge"), {"alpha": [1e-4, 1e-2, 1.0]}, cv=3)
    assert search.fit(X, y).best_params_["alpha"] in (1e-4, 1e-2, 1.0)


def test_stopping_early_warns(data):
    X, y, _ = data
    with pytest.warns(ConvergenceWarning, match="L-BFGS"):
        LinearClassifier("squared_hinge", max_iter=2).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        LinearClassifier("hinge", max_iter=1).fit(X, y)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (LinearClassifier(alpha=0.0), "alpha must be a finite number > 0, got 0.0"),
        (LinearClassifier(penalty="l3"), "penalty='l3' is not one of"),
        (LinearClassifier(penalty="elasticnet", l1_ratio=2), r"l1_ratio must lie in \[0, 1\]"),
        (LinearClassifier("zero-one"), "loss='zero-one' is not one of"),
        (KernelClassifier(gamma=-1.0), "gamma must be 'scale' or a number > 0"),
    ],
)
def test_bad_parameters_are_named_and_leave_nothing_behind(data, learner, message):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        learner.fit(X, y)
    assert not any(name.endswith("_") for name in vars(learner))


def test_a_class_of_weight_zero_is_refused(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="sample_weight"):
        LinearClassifier().fit(X, y, sample_weight=y.astype(float))


@pytest.mark.parametrize("name", ["logistic", "modified_huber", "exponential", "squared_hinge"])
def test_the_kernels_geometry_leads_to_the_minimum_of_the_linear_problem(data, name):
    X, y, weight = data
    fitted = KernelClassifier(name, gamma=0.5, alpha=ALPHA, tol=1e-8).fit(X, y, weight)
    rows, labels, positive = X[weight > 0], y[weight > 0], weight[weight > 0]
    K = np.exp(-0.5 * ((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    factor = np.linalg.cholesky(K + 1e-12 * np.eye(len(K)))
    linear = LinearClassifier(name, ALPHA, tol=1e-9, max_iter=5000).fit(factor, labels, positive)
    np.testing.assert_allclose(
        fitted.decision_function(rows), linear.decision_function(factor), atol=1e-4
    )
    assert fitted.gap_ <= 1e-7
