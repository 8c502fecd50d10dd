"""Goodness of fit: whether the noise model explains the labels of samples that it has not seen.

Trees are asked to predict its residuals, [label = k] - P(noisy=k | x) of every class k, out of
fold. Where they can, the classes, or the label errors, follow a shape that the model cannot, and
what it cannot follow it takes for noise.
"""

from collections.abc import Iterable, Iterator

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
from unflip.channel._forest import folds_of, for_trees
from unflip.channel._maximise import Mode
from unflip.channel._outcomes import ModelCheck
from unflip.channel._settings import SETTINGS
from unflip.channel._temperature import held_out_logits


def check_channel(rows: Floats, fit: ChannelFit, factor: float = 1.0) -> ModelCheck:
    """Return how well a channel explains labels that it has not seen."""
    rows = rows[: SETTINGS.checked_samples]
    codes, weight = fit.design.codes[: len(rows)], fit.design.weight[: len(rows)]
    held_out = leave_one_out(fit, len(rows), factor)
    wrong = _disagreement(held_out, codes, weight)
    statistic, verdict, simple = 0.0, "not_rejected", wrong
    enough = len(rows) >= SETTINGS.fewest_checked
    by_tree = None
    if enough and wrong < SETTINGS.largest_rule_disagreement:
        by_tree = _missed_by_a_tree(rows, codes, weight)
    if by_tree is not None and weight @ by_tree < SETTINGS.explained_disagreement * weight.sum():
        missed = _missed_by_columns(rows, codes, weight, fit)
        if _gain(missed, by_tree, weight) > SETTINGS.rule_standard_errors:
            verdict, simple = "rule", max(wrong, float(np.average(missed, weights=weight)))
    if enough and verdict == "not_rejected" and wrong > SETTINGS.explained_disagreement:
        residual = np.eye(fit.design.n_classes)[codes] - held_out
        statistic = residual_score(rows, out_of_fold(rows, fit, factor), residual, weight)
    if statistic >= SETTINGS.suspect_statistic:
        verdict = "rejected" if statistic >= SETTINGS.rejected_statistic else "suspect"
    beyond_columns = int(fit.design.block.max()) > 1
    if verdict != "rule" and (verdict != "not_rejected" or beyond_columns):
        missed = _missed_by_columns(rows, codes, weight, fit)
        simple = max(wrong, float(np.average(missed, weights=weight)))
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


def out_of_fold(rows: Floats, fit: ChannelFit, factor: float = 1.0) -> Floats:
    """Return P(noisy | x) of the rows, each fold's with w from the others.

    Unlike the fit itself, and what leaves out single rows, it does not tell a row's label.
    """
    design, fold = fit.design, folds_of(rows)[0]
    F, weight = design.features[: len(rows)], design.weight[: len(rows)]
    weight = weight * (design.weight.sum() / weight.sum())  # they stand for all
    t = design.logits(fit.unscaled_coef, slice(len(rows))).T
    for k in range(fold.max() + 1):
        others, left = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if others.size:
            found = fit_without(fit, others, weight[others], tol=SETTINGS.rough_tolerance)
            t[left] += F[left] @ (found.unscaled_coef - fit.unscaled_coef)
    return np.asarray(softmax_over_classes(factor * t.T).T @ fit.T)


def held_out_gain(plain: ChannelFit, noisy: ChannelFit) -> tuple[float, float]:
    """Return by how much noise makes the labels likelier, each without its row, and the error."""
    logs = []
    for each in (plain, noisy):
        held_out = leave_one_out(each, SETTINGS.checked_samples)
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
    held_out = leave_one_out(plain, SETTINGS.checked_samples)
    some = slice(len(held_out))
    wrong = _disagreement(held_out, plain.design.codes[some], plain.design.weight[some])
    return wrong < SETTINGS.separated_disagreement


def residual_score(rows: Floats, fitted: Floats, residual: Floats, weight: Floats) -> float:
    """Return by how many standard errors trees predict the residuals of rows they have not seen."""
    columns, fold = for_trees(np.column_stack([rows, fitted])), folds_of(rows)[0]

    def gains() -> Iterator[Floats]:
        for k in range(fold.max() + 1):
            others, left = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if others.size:
                predicted = _predicted(columns, residual, weight, others, left, seed=k)
                yield weight[left] * (predicted * residual[left]).sum(axis=1)

    return score_of_folds(gains())


def score_of_folds(gains: Iterable[Floats]) -> float:
    """Return what is gained over its standard error; of folds in turn, till there is no hope.

    Parameters
    ----------
    gains : iterable of ndarrays
        The gain of every row of one fold, the next fold's computed where it is asked for.
    """
    total = squares = score = 0.0
    for gain in gains:
        total, squares = total + float(gain.sum()), squares + float(gain @ gain)
        score = total / np.sqrt(squares) if squares > 0 else 0.0
        if score < SETTINGS.early_stop_statistic:
            break
    return float(score)


def _predicted(
    columns: Floats, residual: Floats, weight: Floats, others: Codes, left: Codes, seed: int
) -> Floats:
    """Return the residuals of some rows as trees grown on others predict them.

    The trees are grown on few random combinations of the classes' residuals, which find about the
    same splits in less time (Joly, Geurts and Wehenkel, 2014); their leaves hold all of them.
    """
    n_classes, n_trees = residual.shape[1], SETTINGS.residual_trees
    mixed = residual[others]
    if n_classes > SETTINGS.residual_combinations:
        shape = n_classes, SETTINGS.residual_combinations
        mixed = mixed @ np.random.RandomState(seed).standard_normal(shape)
    forest = ExtraTreesRegressor(
        n_trees,
        min_samples_leaf=SETTINGS.residual_leaf_samples,
        max_features=0.5,
        random_state=seed,
    )
    with SCIKIT_LEARN:
        leaves = forest.fit(columns[others], mixed, weight[others]).apply(columns)
    leaves += np.cumsum([0, *(tree.tree_.node_count for tree in forest.estimators_)])[:-1]
    ends = np.arange(0, leaves.size + 1, n_trees)
    placed = csr_array((np.ones(leaves.size), leaves.ravel(), ends))
    grown = placed[others].T
    sums = grown @ np.column_stack([weight[others, None] * residual[others], weight[others]])
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
