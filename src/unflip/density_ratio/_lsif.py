"""Least-squares density ratios in closed form: RuLSIF and its special case uLSIF."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from unflip._utils.docs import documented_like
from unflip._utils.gaussian_kernel import (
    SELECTION_ROWS,
    GaussianDesign,
    gaussian_at_widths,
    row_blocks,
    squared_distances,
    weighted_gram,
    weighted_sum,
    width_grid,
)
from unflip._utils.samples import Samples, TwoSamples
from unflip._utils.typing import Array, RandomState, Record, Rows
from unflip._utils.validation import (
    check_choice,
    check_positive,
    check_positives,
    check_width,
    check_widths,
    is_number,
)
from unflip.density_ratio._base import KernelDensityRatio


@documented_like(KernelDensityRatio)
class RuLSIF(KernelDensityRatio):
    r"""Relative unconstrained least-squares importance fitting.

    Estimates the relative ratio r_a = p_num / (a p_num + (1-a) p_den), which 1/a bounds, by
    r_a(x) = sum_l theta_l exp(-|x - c_l|^2 / (2 bandwidth^2)) with
    theta = max(0, (H + regularization I)^-1 h), h = mean_num phi and
    H = a mean_num phi phi' + (1-a) mean_den phi phi'.
    `predict` returns the plain ratio r = (1-a) r_a / (1 - a r_a), with r_a clipped at 0.999 / a.

    Parameters
    ----------
    alpha : float, default=0.1
        a in [0, 1): 0 is the plain ratio; larger values are more stable where p_den is small.
    bandwidth : "cv" or float, default="cv"
        The kernel's width; "cv" takes the best leave-one-out score.
    regularization : "cv" or float, default="cv"
        The ridge penalty; "cv" takes the best leave-one-out score.
    n_centers : int, default=100
        Number of basis functions (at most the number of numerator samples).
    bandwidths : array-like, default=None
        Widths for "cv". None: nine, from 1/8 to 2 times the median distance.
    regularizations : array-like, default=None
        Penalties for "cv". None: nine, from 1e-3 to 10.
    random_state : int, RandomState instance or None, default=None
        Seed of the centres and of the left-out pairs.

    Attributes
    ----------
    bandwidth_, regularization_ : float
        The width and penalty used.
    loo_scores_ : ndarray of shape (n_tried, 3)
        Width, penalty and leave-one-out score (higher is better) of all candidates.

    Notes
    -----
    Features are not scaled, and one width serves all columns: a column on a larger scale dominates
    the others. Standardise the columns first.

    Leave-one-out is exact and in closed form: a pair of a numerator and a denominator sample is
    left out of both H and h by a rank-two update. The choice uses at most 10 000 random, unweighted
    samples of either distribution; the fit uses all samples and weights.

    References
    ----------
    Yamada, Suzuki, Kanamori, Hachiya, Sugiyama (2013), "Relative density-ratio estimation for
    robust distribution comparison", Neural Computation 25.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.density_ratio import RuLSIF
    >>> rng = np.random.default_rng(0)
    >>> X_den, X_num = rng.normal(0, 1, (2000, 1)), rng.normal(0.5, 0.8, (1000, 1))
    >>> ratio = RuLSIF(alpha=0.1, random_state=0).fit(X_num, X_den)
    >>> bool(ratio.predict_relative(X_den).max() <= 10)
    True
    """

    regularization_: float
    loo_scores_: Array

    def __init__(
        self,
        alpha: float = 0.1,
        bandwidth: float | str = "cv",
        regularization: float | str = "cv",
        n_centers: int = 100,
        *,
        bandwidths: ArrayLike | None = None,
        regularizations: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.bandwidth = bandwidth
        self.regularization = regularization
        self.n_centers = n_centers
        self.bandwidths = bandwidths
        self.regularizations = regularizations
        self.random_state = random_state

    def predict_relative(self, X: Rows) -> Array:
        """Return r_a(x) = p_num / (a p_num + (1-a) p_den).

        Returns
        -------
        ndarray of shape (n_samples,)
            Relative ratios.
        """
        return self._linear_ratio(self._check_new_rows(X))

    def score(self, X_num: Rows, X_den: Rows) -> float:
        """Return mean_num r_a - a mean_num r_a^2 / 2 - (1-a) mean_den r_a^2 / 2: higher is better.

        Minus 1/2 this is the estimated relative Pearson divergence.
        """
        r_num, r_den = self.predict_relative(X_num), self.predict_relative(X_den)
        return -_squared_loss(r_num, r_den, self.alpha)

    def _ratio(self, X: Rows) -> Array:
        relative = self._linear_ratio(X)
        if self.alpha == 0:
            return relative
        relative = np.minimum(relative, 0.999 / self.alpha)  # r_a itself is at most 1 / a
        return (1 - self.alpha) * relative / (1 - self.alpha * relative)

    @property
    def _by_sums(self) -> bool:
        return True

    def _fit_kernel(
        self, samples: Samples, centers: Array, random_state: np.random.RandomState
    ) -> Record:
        if not (is_number(self.alpha) and 0 <= self.alpha < 1):
            raise ValueError(f"alpha must lie in [0, 1), got {self.alpha!r}.")
        widths = self._candidates("bandwidth", width_grid(centers))
        penalties = self._candidates("regularization", np.logspace(-3, 1, 9))
        tried = np.empty((0, 3))
        if len(widths) * len(penalties) > 1:
            tried = self._leave_one_out(
                samples.drawn(SELECTION_ROWS, random_state), centers, widths, penalties
            )
            bandwidth, penalty, _ = (float(value) for value in tried[np.argmax(tried[:, 2])])
        else:
            bandwidth, penalty = float(widths[0]), float(penalties[0])
        shared = centers, bandwidth, self.alpha, samples.total_num, samples.total_den
        moments = samples.sum(_moments, shared)
        H, h = moments[:, :-1], moments[:, -1]
        try:
            factor = cho_factor(H + penalty * np.eye(len(H)))
        except LinAlgError:
            raise ValueError(
                f"regularization={penalty:g} is too small: with this many centres, or this wide a "
                "kernel, the equations are singular. Raise it."
            ) from None
        theta = cho_solve(factor, h)
        return {
            "bandwidth_": bandwidth,
            "regularization_": penalty,
            "coef_": np.maximum(theta, 0.0),
            "loo_scores_": tried,
        }

    def _candidates(self, name: str, default: Array) -> Array:
        parameters = self.get_params(deep=False)
        value, grid = parameters[name], parameters[f"{name}s"]
        if not isinstance(value, str):
            check = check_width if name == "bandwidth" else check_positive
            return np.array([check(value, name)])
        check_choice(value, ("cv",), name)
        if grid is None:
            return default
        check_all = check_widths if name == "bandwidth" else check_positives
        return check_all(grid, f"{name}s")

    def _leave_one_out(
        self, samples: TwoSamples, centers: Array, widths: Array, penalties: Array
    ) -> Array:
        if min(samples.num.shape[0], samples.den.shape[0]) < 2:
            raise ValueError(
                "leave-one-out needs two numerator and two denominator samples: give both "
                "bandwidth and regularization."
            )
        n_num = samples.num.shape[0]
        distances = np.concatenate(
            [squared_distances(rows, centers) for rows in (samples.num, samples.den)]
        ).astype(np.float64)
        losses = np.empty((len(widths), len(penalties)))
        for k, phi in gaussian_at_widths(distances, widths):
            losses[k] = leave_one_out_losses(phi[:n_num], phi[n_num:], penalties, self.alpha)
        grid = np.meshgrid(widths, penalties, indexing="ij")
        return np.column_stack([grid[0].ravel(), grid[1].ravel(), -losses.ravel()])


@documented_like(RuLSIF)
class ULSIF(RuLSIF):
    r"""Unconstrained least-squares importance fitting: RuLSIF with alpha = 0.

    r(x) = sum_l theta_l exp(-|x - c_l|^2 / (2 bandwidth^2)) with
    theta = max(0, (H + regularization I)^-1 h), H = mean_den phi phi', h = mean_num phi.

    References
    ----------
    Kanamori, Hido, Sugiyama (2009), "A least-squares approach to direct importance estimation",
    JMLR 10.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.density_ratio import ULSIF
    >>> rng = np.random.default_rng(0)
    >>> X_num, X_den = rng.normal(0, 1, (300, 1)), rng.normal(0.5, 1.2, (300, 1))
    >>> ratio = ULSIF(random_state=0).fit(X_num, X_den)
    >>> bool(ratio.predict([[-1.0]])[0] > ratio.predict([[2.0]])[0])
    True
    """

    alpha = 0.0

    def __init__(
        self,
        bandwidth: float | str = "cv",
        regularization: float | str = "cv",
        n_centers: int = 100,
        *,
        bandwidths: ArrayLike | None = None,
        regularizations: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.regularization = regularization
        self.n_centers = n_centers
        self.bandwidths = bandwidths
        self.regularizations = regularizations
        self.random_state = random_state


def _moments(
    rows: Rows,
    weight_num: Array,
    weight_den: Array,
    shared: tuple[Array, float, float, float, float],
) -> Array:
    """Return the block's part of H, with its part of h as the last column."""
    centers, bandwidth, alpha, total_num, total_den = shared
    moments = np.zeros((len(centers), len(centers) + 1))
    share_num = weight_num / total_num
    share = alpha * share_num + (1 - alpha) * weight_den / total_den
    if not weight_num.any() and not weight_den.any():
        return moments
    for block, phi in GaussianDesign(rows, centers, bandwidth).blocks():
        moments[:, -1] += weighted_sum(phi, share_num[block])
        if share[block].any():
            moments[:, :-1] += weighted_gram(phi, share[block])
    return moments


def leave_one_out_losses(
    phi_num: Array, phi_den: Array, penalties: ArrayLike, alpha: float
) -> Array:
    """Return the leave-one-out loss of each penalty, over pairs of samples of both kinds.

    Without pair i, (H_i + penalty I) theta_i = h_i differs from the full system by two rank-one
    terms, so theta_i = t + (a_i phi_num_i + b_i phi_den_i) (H + penalty I)^-1 with a_i, b_i from a
    2 x 2 system. In the eigenvectors of H these follow for all penalties at once. theta_i itself,
    needed for its positive part, takes one matrix product per penalty.
    """
    penalties = np.asarray(penalties, dtype=float)
    n_num, n_den = len(phi_num), len(phi_den)
    n_pairs = min(n_num, n_den)
    d_num, d_den = alpha / (n_num - 1), (1 - alpha) / (n_den - 1)
    H = d_num * phi_num.T @ phi_num + d_den * phi_den.T @ phi_den
    values, vectors = eigh(H)
    # rounding may make an eigenvalue negative, which would cancel a small penalty
    inverses = 1 / (np.maximum(values, 0.0)[:, None] + penalties)
    mean = phi_num.sum(axis=0) / (n_num - 1)
    thetas = vectors @ (inverses * (mean @ vectors)[:, None])
    systems = [(vectors * inverse) @ vectors.T for inverse in inverses.T]
    squares_num, squares_den, sums_num = (np.zeros(len(penalties)) for _ in range(3))
    for rows in row_blocks(n_pairs, len(H)):
        num, den = phi_num[rows], phi_den[rows]
        along_num, along_den = num @ vectors, den @ vectors
        nn, nd, dd = (
            product @ inverses for product in (along_num**2, along_num * along_den, along_den**2)
        )
        # c = phi theta without the sample in h only; m without it in H as well
        c_num = num @ thetas - nn / (n_num - 1)
        c_den = den @ thetas - nd / (n_num - 1)
        determinant = (1 - nn * d_num) * (1 - dd * d_den) - nd**2 * d_num * d_den
        m_num = ((1 - dd * d_den) * c_num + nd * d_den * c_den) / determinant
        m_den = (nd * d_num * c_num + (1 - nn * d_num) * c_den) / determinant
        a, b = d_num * m_num - 1 / (n_num - 1), d_den * m_den
        for k, system in enumerate(systems):
            combined = num * a[:, k, None]
            combined += den * b[:, k, None]
            theta = combined @ system
            theta += thetas[:, k]
            np.maximum(theta, 0.0, out=theta)
            r_num, r_den = _rowwise_dot(num, theta), _rowwise_dot(den, theta)
            squares_num[k] += r_num @ r_num
            squares_den[k] += r_den @ r_den
            sums_num[k] += r_num.sum()
    squares = alpha * squares_num + (1 - alpha) * squares_den
    return np.asarray((squares / 2 - sums_num) / n_pairs)


def _squared_loss(r_num: Array, r_den: Array, alpha: float) -> float:
    """Return a mean r_num^2 / 2 + (1-a) mean r_den^2 / 2 - mean r_num."""
    r_num, r_den = r_num.astype(float), r_den.astype(float)
    squares = alpha * np.mean(r_num**2) + (1 - alpha) * np.mean(r_den**2)
    return float(squares / 2 - np.mean(r_num))


def _rowwise_dot(a: Array, b: Array) -> Array:
    return np.einsum("ij,ij->i", a, b)
