"""Which structures of T the rows may find, and how likely each of them is."""

from collections.abc import Sequence

import numpy as np
from scipy.special import betaln, gammaln, xlogy
from scipy.stats import chi2

from unflip._utils.typing import Floats
from unflip.channel._check import borne_out_evidence
from unflip.channel._design import ChannelDesign
from unflip.channel._maximise import Mode, maximise
from unflip.channel._outcomes import EvidenceTest
from unflip.channel._settings import SETTINGS
from unflip.channel._structure import FEW_TARGETS, ONE_RATE, ONE_TARGET, NoiseStructure, structures
from unflip.channel._targets import maximise_targets, one_target_modes


def counted_evidence(structure: NoiseStructure, counts: Floats) -> float:
    """Return log P(labels | structure), were the true classes known."""
    K = structure.n_classes
    flipped = counts[~np.eye(K, dtype=bool)].reshape(K, -1)
    by_class, kept = flipped.sum(axis=1), np.diag(counts)
    pairs = (by_class, kept) if structure.per_class else (by_class.sum(), kept.sum())
    flips, stays = SETTINGS.prior_flips, SETTINGS.prior_stays
    found = np.sum(betaln(pairs[0] + flips, pairs[1] + stays) - betaln(flips, stays))
    if not structure.n_ratios:
        return float(found - by_class.sum() * np.log(K - 1))
    a = structure.target_count
    found += np.sum(gammaln(a + flipped) - gammaln(a))
    return float(found + np.sum(gammaln(a * (K - 1)) - gammaln(a * (K - 1) + by_class)))


def may_be_better(others: list[NoiseStructure], than: Mode) -> list[NoiseStructure]:
    """Return the structures that might explain the labels better than another.

    It is judged by expected counts of true classes and labels, which are those that a free T would
    expect at the clean posterior of the other. Counts do not judge one target, with which a single
    other flip would be impossible.
    """
    if not than.structure.n_parameters or than.structure.targets is not None:
        return others
    counts, design, g = than.fit.counts, than.fit.design, than.fit.clean.T
    # a step of EM frees the counts from the structure with which they were found
    T = counts + SETTINGS.prior_flips / design.n_classes
    T /= T.sum(axis=1, keepdims=True)
    gamma = g * T[:, design.codes]
    counts = design.counts((gamma / gamma.sum(axis=0)).T)
    least = counted_evidence(than.structure, counts) - SETTINGS.structure_gap
    return [
        each
        for each in others
        if not each.n_parameters
        or each.targets is not None
        or counted_evidence(each, counts) > least
    ]


def first_modes(
    design: ChannelDesign,
    starts: dict[str, Mode],
    variance: Floats,
) -> dict[str, Mode]:
    """Return the maxima of one rate, and of few targets unless no targets stand out.

    Where nothing is known, one target for each class is looked for first, which is found sooner.
    """
    _, one, *others = _possible(design)

    def maximised(structure: NoiseStructure) -> Mode:
        start = starts.get(structure.name)
        if start is None:
            return maximise(design, structure, structure.start(), variance)
        if start.fit.design is design:
            return _again(start, design)
        # few targets are kept; one rate may have stood for what other features explain
        theta = start.fit.theta if structure.n_ratios else structure.start()
        return maximise(design, structure, theta, variance)

    found = {one.name: maximised(one)}
    targeted = [structure for structure in others if structure.n_ratios]
    if not targeted:
        return found
    near = starts
    if not starts:
        pilot = maximise_targets(design, False, found[one.name])
        near = found = found | {pilot.structure.name: pilot}
    # with even targets noise may be hidden by overlap: its counts say little then
    if _is_near(near, (ONE_TARGET, FEW_TARGETS)) or may_be_better(targeted, found[one.name]):
        found[targeted[0].name] = maximised(targeted[0])
    return found


def _is_near(modes: dict[str, Mode], names: Sequence[str]) -> bool:
    """Return whether one of some structures is near the best."""
    least = max(map(_height, modes.values())) - SETTINGS.structure_gap
    return any(name in modes and _height(modes[name]) > least for name in names)


def compared(found: dict[str, Mode]) -> list[Mode]:
    """Return the maxima of all structures that the rows may find, from those that are known."""
    found = dict(found)
    pilot = found.pop(ONE_TARGET, None)
    base = max(found.values(), key=_height)
    others = [each for each in _possible(base.fit.design) if each.name not in found]
    for structure in may_be_better(others, base):
        found[structure.name] = _maximised(found, structure, base.fit.design)
    return [*found.values(), *one_target_modes(found, base.fit.design, pilot)]


def refined(modes: list[Mode], design: ChannelDesign) -> list[Mode]:
    """Return the maxima on more rows, of the structures that may be the best there."""
    few = modes[0].fit.design
    ordered = sorted(modes, key=_height, reverse=True)
    least = _height(ordered[0]) - SETTINGS.structure_gap
    near = [mode for mode in ordered if _height(mode) > least]
    tried = {structure.name for structure in _possible(few)}
    later = [structure for structure in _possible(design) if structure.name not in tried]
    # where nothing is left to compare, only T matters
    tol = SETTINGS.tolerance if len(near) > 1 else SETTINGS.rough_tolerance
    first = _again(near[0], design, tol=tol)
    if len(near) == 1 and may_be_better(later, first):
        first = _again(first, design)
    rivals = may_be_better([mode.structure for mode in near[1:]], first)
    found = {first.structure.name: first}
    for mode in ordered[1:]:  # no noise is compared by held-out labels too
        if mode.structure in rivals or not mode.structure.n_parameters:
            far = _height(mode) <= least
            found[mode.structure.name] = _again(mode, design, first, far=far)
    simpler = {mode.structure.name: mode for mode in modes} | found
    for structure in may_be_better(later, max(found.values(), key=_height)):
        found[structure.name] = _maximised(simpler, structure, design)
    return list(found.values())


def _again(
    mode: Mode,
    design: ChannelDesign,
    first: Mode | None = None,
    *,
    far: bool = False,
    tol: float = SETTINGS.tolerance,
) -> Mode:
    """Return the maximum on more rows; structures with noise have the first one's variances.

    No noise keeps its own where it is far below the best.
    """
    structure = mode.structure
    held = first is not None and structure.n_parameters * first.structure.n_parameters > 0
    variance = first.fit.variance if first is not None and held else mode.fit.variance
    held = held or far
    if structure.targets is None:
        start = mode.fit.theta, variance, mode.fit.unscaled_coef
        return maximise(design, structure, *start, held=held, tol=tol)
    chosen, shared = np.array(structure.targets), variance if held else None
    return maximise_targets(design, bool(structure.per_class), mode, chosen, shared, tol)


def _height(mode: Mode) -> float:
    return mode.log_evidence


def _possible(design: ChannelDesign) -> list[NoiseStructure]:
    """Return the structures that so many rows may find."""
    K = design.n_classes
    enough = design.weight.sum() >= SETTINGS.samples_per_target * K * (K - 2)
    return [
        structure
        for structure in structures(K, free=design.n_classes <= SETTINGS.most_target_classes)
        if enough or not (structure.per_class and structure.n_ratios)
    ]


def _maximised(found: dict[str, Mode], structure: NoiseStructure, design: ChannelDesign) -> Mode:
    """Start at few targets if the structure has targets of its own, else at one rate."""
    start = found.get(ONE_RATE) or next(iter(found.values()))
    if structure.per_class and structure.n_ratios and FEW_TARGETS in found:
        start = found[FEW_TARGETS]
    theta = structure.matched(start.structure, start.fit.theta)
    place = theta, start.fit.variance, start.fit.unscaled_coef
    # structures with noise are compared at the same variances
    return maximise(design, structure, *place, held=structure.n_parameters > 0)


def probabilities(modes: list[Mode]) -> Floats:
    """Return the probability of every structure given the labels."""
    possible = {structure.name for structure in _possible(modes[0].fit.design)}
    n_noisy = len(possible | {mode.structure.name for mode in modes}) - 1
    none = SETTINGS.no_noise_probability
    prior = [(1 - none) / n_noisy if mode.structure.n_parameters else none for mode in modes]
    logs = borne_out_evidence(modes) + np.log(prior)
    weight = np.exp(logs - logs.max())
    return np.asarray(weight / weight.sum())


def tests(modes: list[Mode], probability: Floats) -> tuple[EvidenceTest, EvidenceTest]:
    """Return the tests of no noise, and of one rate for all classes."""
    K = modes[0].fit.design.n_classes
    best: dict[str, float] = {}
    sizes: dict[str, int] = {}
    chance = {"none": 0.0, "one": 0.0, "class": 0.0}
    for mode, p in zip(modes, probability, strict=True):
        structure = mode.structure
        kind = {None: "none", False: "one", True: "class"}[structure.per_class]
        chance[kind] += float(p)
        found = mode.fit.log_likelihood
        if structure.targets is not None:  # the best of so many
            found -= K * float(np.log(K - 1))
        if found > best.get(kind, -np.inf):
            best[kind], sizes[kind] = found, structure.n_parameters
    noise = _test(max(best.values()), best.get("none", -np.inf), sizes, chance["none"])
    alike = max(best.get("none", -np.inf), best.get("one", -np.inf))
    if "class" not in best:  # their counts ruled it out
        counts = modes[int(np.argmax(probability))].fit.counts
        best["class"] = alike + _differing_rates(counts)
    rates = _test(best["class"], alike, {"class": K - 1}, 1 - chance["class"])
    return noise, rates


def _differing_rates(counts: Floats) -> float:
    """Return how much likelier labels are with a rate per class, were the true classes known."""
    stays, total = np.diag(counts), counts.sum(axis=1)
    flips = total - stays
    overall = np.array([flips.sum(), stays.sum()])
    each = xlogy(flips, flips / total) + xlogy(stays, stays / total)
    return float(each.sum() - xlogy(overall, overall / overall.sum()).sum())


def _test(top: float, restricted: float, sizes: dict[str, int], probability: float) -> EvidenceTest:
    """Return a test whose p-value is conservative: parameters at a bound count in full."""
    statistic = max(0.0, 2 * (top - restricted))
    p_value = float(chi2.sf(statistic, max(sizes.values()))) if statistic > 0 else 1.0
    return EvidenceTest(statistic, p_value, probability)
