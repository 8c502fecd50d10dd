r"""Goodness of fit: whether the noise model explains the labels of samples that it has not seen.

Randomised trees predict the residuals [label = k] - P(noisy=k | x). Where they succeed, the classes
or the label errors follow a shape that the model cannot follow, and that it takes for noise.
(Residual prediction: Jankova, Shah, Buehlmann and Samworth, JRSS B 2020.)
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.tree import DecisionTreeClassifier

from unflip._utils.threads import SCIKIT_LEARN
from unflip._utils.typing import Bools, Codes, Floats
from unflip.channel._design import ChannelDesign, softmax_over_classes
from unflip.channel._evidence import ChannelFit, fit_coefficients, fit_without
from unflip.channel._features import ChannelFeatures
from unflip.channel._forest import centred_logs, class_shares, folds_of, for_trees
from unflip.channel._maximise import Mode
from unflip.channel._outcomes import ModelCheck
from unflip.channel._settings import SETTINGS
from unflip.channel._temperature import held_out_logits


def check_channel(rows: Floats, fit: ChannelFit, factor: float, statistic: float) -> ModelCheck:
    """Return how well the noise model explains labels that it has not seen."""
    rows = rows[: SETTINGS.pilot_samples]
    codes, weight = fit.design.codes[: len(rows)], fit.design.weight[: len(rows)]
    wrong = _disagreement(leave_one_out(fit, len(rows), factor), codes, weight)
    enough = len(rows) >= SETTINGS.fewest_checked
    verdict = "not_rejected"
    if statistic >= SETTINGS.suspect_statistic:
        verdict = "rejected" if statistic >= SETTINGS.rejected_statistic else "suspect"
    by_columns = None
    if verdict != "not_rejected" or int(fit.design.block.max()) > 1:
        by_columns = _missed_by_columns(rows, codes, weight, fit)
    if enough and wrong < SETTINGS.largest_rule_disagreement:
        by_tree = _missed_by_a_tree(rows, codes, weight)
        if weight @ by_tree < SETTINGS.explained_disagreement * weight.sum():
            if by_columns is None:
                by_columns = _missed_by_columns(rows, codes, weight, fit)
            if _gain(by_columns, by_tree, weight) > SETTINGS.suspect_statistic:
                verdict = "rule"
    simple = wrong
    if by_columns is not None:
        simple = max(wrong, float(np.average(by_columns, weights=weight)))
    return ModelCheck(
        statistic=statistic,
        p_value=float(norm.sf(statistic)),
        verdict=verdict,
        disagreement=wrong,
        simple_disagreement=simple,
        n_rows=float(weight.sum()),
    )


def leave_one_out(fit: ChannelFit, most_rows: int | None = None, factor: float = 1.0) -> Floats:
    """Return P(noisy | x) of every row without its own label: one step of Newton's method."""
    t = factor * held_out_logits(fit, most_rows)
    return np.asarray(softmax_over_classes(t.T).T @ fit.T)


def held_out_gain(plain: ChannelFit, noisy: ChannelFit) -> tuple[float, float]:
    """Return by how much noise makes the labels likelier, each without its row, and the error."""
    logs = []
    for each in (plain, noisy):
        held_out = leave_one_out(each, SETTINGS.pilot_samples)
        own = np.arange(len(held_out)), each.design.codes[: len(held_out)]
        logs.append(np.log(np.maximum(held_out[own], SETTINGS.smallest_probability)))
    difference, weight = logs[1] - logs[0], plain.design.weight[: len(logs[0])]
    share = float(plain.design.weight.sum() / weight.sum())  # of all rows to these
    spread = difference - np.average(difference, weights=weight)
    return share * float(weight @ difference), share * float(np.sqrt(weight @ spread**2))


def borne_out_evidence(modes: list[Mode]) -> Floats:
    """Return the log-evidence of structures, that of no noise as far as held-out labels say.

    Classes that hardly overlap are likelier with some noise by Laplace's method, though not in
    truth: there, the distribution of the coefficients is far from normal. So the evidence of noise
    is at most the gain of the held-out log-likelihood plus two standard errors.
    """
    evidence = np.array([mode.log_evidence for mode in modes])
    best = int(np.argmax(evidence))
    for k, mode in enumerate(modes):
        if not mode.structure.n_parameters and k != best and _hardly_overlap(mode.fit):
            gain, error = held_out_gain(mode.fit, modes[best].fit)
            margin = SETTINGS.held_out_standard_errors * error
            evidence[k] = max(evidence[k], evidence[best] - gain - margin)
    return evidence


def _hardly_overlap(plain: ChannelFit) -> bool:
    """Return whether nearly all labels are the likeliest of their rows, each held out."""
    held_out = leave_one_out(plain, SETTINGS.pilot_samples)
    some = slice(len(held_out))
    wrong = _disagreement(held_out, plain.design.codes[some], plain.design.weight[some])
    return wrong < SETTINGS.separated_disagreement


def held_out_statistics(rows: Floats, fit: ChannelFit, factor: float = 1.0) -> tuple[float, float]:
    r"""Return the statistics of the goodness of fit, and of a forest's scores as features.

    Both are standardised sums of products r_i' e_i of residuals with what trees say of them. Trees
    that are grown on the folds before a fold predict r_i: their mean residuals at w fitted to these
    folds alone, or the logarithms of their probabilities of the labels (the score test of the
    coefficient by which such scores would enter the logits). Given the earlier folds, the sum over
    a fold, with

        e_i = [label = k] - P(noisy=k | x_i) at w fitted to this fold, too,

    has mean 0 under the model: the sums of the folds are differences of a martingale. (With labels
    of the fold in w, e_i is the generalised least-squares residual, to first order. Without them, w
    would err the same way for all samples of a fold.) The variance is that of the labels, less what
    w follows of it: q' H^-1 q, with q the derivative of the sum in w and H the information.
    """
    fold, n, design = folds_of(rows)[0], len(rows), fit.design
    codes, weight = design.codes[:n], design.weight[:n]
    columns, share = for_trees(rows), class_shares(codes, weight, design.n_classes)
    label = np.eye(design.n_classes)[codes]

    def fitted_to(seen: Codes) -> ChannelFit:
        if seen.size == len(design.codes):
            return fit
        return fit_without(fit, seen, weight[seen], tol=SETTINGS.rough_tolerance)

    def clean_by(now: ChannelFit) -> Floats:
        logits = factor * design.logits(now.unscaled_coef, slice(n))
        return np.asarray(softmax_over_classes(logits).T)

    total, variance = np.zeros(2), np.zeros(2)
    seen = np.flatnonzero(fold == 0)
    now = fitted_to(seen)
    for k in range(1, fold.max() + 1):
        left = np.flatnonzero(fold == k)
        means = _leaf_means(columns, label, label - clean_by(now) @ fit.T, weight, seen, left, k)
        proba, residual = np.split(means, 2, axis=1)
        seen = np.append(seen, left)
        now = fitted_to(seen)
        clean = clean_by(now)[left]
        p = clean @ fit.T
        for j, r in enumerate((residual, centred_logs(proba, share, SETTINGS.residual_trees))):
            weighted = weight[left, None] * r
            total[j] += (weighted * (label[left] - p)).sum()
            variance[j] += (weighted * p * (r - (p * r).sum(axis=1, keepdims=True))).sum()
            by_clean = weighted @ fit.T.T
            by_t = factor * clean * (by_clean - (clean * by_clean).sum(axis=1, keepdims=True))
            q = (by_t @ now.directions).T @ design.features[left]
            variance[j] -= (np.matmul(q[:, None], now.unscaled_roots) ** 2).sum()
    found = np.divide(
        total, np.sqrt(np.maximum(variance, 0.0)), where=variance > 0, out=np.zeros(2)
    )
    return float(found[0]), float(found[1])


def _leaf_means(
    columns: Floats,
    label: Floats,
    residual: Floats,
    weight: Floats,
    others: Codes,
    left: Codes,
    seed: int,
) -> Floats:
    """Return the mean labels and residuals in the leaves of trees grown on the labels of others.

    The trees are grown on few random combinations of the classes' labels, which find about the
    same splits in less time (Joly, Geurts and Wehenkel, 2014); their leaves hold all of them.
    """
    n_classes, n_trees = label.shape[1], SETTINGS.residual_trees
    # the indicators of all classes sum to 1
    shape = n_classes, min(n_classes - 1, SETTINGS.residual_combinations)
    mixed = label[others] @ np.random.RandomState(seed).standard_normal(shape)
    mixed = mixed[:, 0] if n_classes == 2 else mixed
    n_leaf = SETTINGS.residual_leaf
    forest = ExtraTreesRegressor(n_trees, min_samples_leaf=n_leaf, random_state=seed)
    with SCIKIT_LEARN:
        leaves = forest.fit(columns[others], mixed, weight[others]).apply(columns)
    leaves += np.cumsum([0, *(tree.tree_.node_count for tree in forest.estimators_)])[:-1]
    ends = np.arange(0, leaves.size + 1, n_trees)
    placed = csr_array((np.ones(leaves.size), leaves.ravel(), ends))
    own = weight[others, None]
    sums = placed[others].T @ np.column_stack([own * label[others], own * residual[others], own])
    means = sums[:, :-1] / np.maximum(sums[:, -1:], SETTINGS.smallest_probability)
    return np.asarray(placed[left] @ means) / n_trees


def _missed_by_columns(rows: Floats, codes: Codes, weight: Floats, fit: ChannelFit) -> Bools:
    """Return which labels logistic regression with a prior disagrees with, each held out."""
    K = fit.design.n_classes
    features = ChannelFeatures(None, 0).fit(rows, weight, np.arange(0))
    design = ChannelDesign(features.transform(rows), features.block, codes, weight, K)
    start = fit.structure, fit.theta, design.first_variance()
    plain = fit_coefficients(design, *start, T=np.eye(K), tol=SETTINGS.rough_tolerance)
    return np.asarray(leave_one_out(plain).argmax(axis=1) != codes)


def _missed_by_a_tree(rows: Floats, codes: Codes, weight: Floats) -> Bools:
    """Return which labels a small decision tree disagrees with, each held out."""
    leaves = max(SETTINGS.rule_leaves, 3 * (int(codes.max()) + 1))
    fold, missed = folds_of(rows)[0], np.zeros(len(rows), dtype=bool)
    rows = for_trees(rows)
    for k in range(fold.max() + 1):
        others, left = fold != k, fold == k
        if others.any():
            tree = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0)
            tree.fit(rows[others], codes[others], weight[others])
            missed[left] = tree.predict(rows[left]) != codes[left]
    return missed


def _gain(missed: Bools, by_other: Bools, weight: Floats) -> float:
    """Return by how many standard errors another model misses fewer labels."""
    fewer = weight * (missed.astype(float) - by_other)
    spread = float(np.sqrt((fewer**2).sum()))
    return float(fewer.sum()) / spread if spread > 0 else 0.0


def _disagreement(probability: Floats, codes: Codes, weight: Floats) -> float:
    return float(np.average(probability.argmax(axis=1) != codes, weights=weight))
