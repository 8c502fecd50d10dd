"""The page that compares our measurements with the paper's."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np

from unflip._app.report import Block, Cell, Heading, Picture, Table, Text
from unflip._utils.typing import Record
from unflip.paper.experiments._choices import (
    ALPHA,
    CROSS_VALIDATION_FOLDS,
    FEATURE_RANGE,
    FINE_RATE_GRID,
    KERNEL_WIDTH,
    RATE_GRID,
    SCOTT_CONFIDENCE,
    SYNTHETIC_ROWS,
)
from unflip.paper.experiments._compare import Measurement, MethodSummary, Results
from unflip.paper.experiments._config import EXPERIMENTS, LEARNERS, METHOD_NAMES, Pair
from unflip.paper.experiments._pictures import figure_1, noise_levels

REPRODUCTION_TITLE = "The paper's experiments, run again"
RATES_STEP = 0.03
"""Differences of rates are shaded beyond one step and marked beyond two."""

COMPARED = ("plain", "ld", "ub", "stpmkl")
OURS = ("eiw", "iw")


def reproduction_page(results: Results, repeats: int) -> list[Block]:
    """Return the page.

    Parameters
    ----------
    results : Results
        All measurements.
    repeats : int
        Number of splits of each data set.

    Returns
    -------
    list of blocks
        Headings, texts, tables and pictures.
    """
    names = results.experiments
    blocks: list[Block] = [
        Heading(REPRODUCTION_TITLE, 1),
        Text(
            "Liu and Tao, Classification with Noisy Labels by Importance Reweighting, printed six "
            f"tables and one figure. Here they are run again: {repeats} random splits of each data "
            "set, 75 % for training, labels flipped in the training part only, accuracy on clean "
            "test labels. Every method sees the same splits and the same flips."
        ),
        Text(
            "In every table our mean ± standard deviation stands first and the paper's below it. "
            "Bold is as in the paper: in the rate tables both errors below 0.1, in the accuracy "
            "tables the two highest of a row. A shaded accuracy lies more than one of the paper's "
            "standard deviations from the paper's mean, and ▲ marks more than two above, ▼ more "
            f"than two below; for rates the steps are {RATES_STEP:g} and {2 * RATES_STEP:g}."
        ),
        Text(
            f"This page is written by `unflip reproduce {_command(results)} --repeats {repeats}`."
        ),
        Heading("In short"),
        *_in_short(results),
        Heading("Choices"),
        *_choices(),
    ]
    for name in names:
        blocks.append(Heading(EXPERIMENTS[name].title))
        if EXPERIMENTS[name].measures_rates:
            blocks += _rates_section(results, name)
        elif name == "figure1":
            blocks += _figure_section(results)
        elif name == "levels":
            blocks += _levels_section(results)
        else:
            blocks += _accuracy_section(results, name)
    return blocks


def _command(results: Results) -> str:
    """Return the arguments of `unflip reproduce` that were used."""
    names = results.experiments
    what = "all" if names == list(EXPERIMENTS) else " ".join(names)
    peers = any(entry.method == "cleanlab" for entry in results.measurements)
    return f"{what} --peers" if peers else what


def _in_short(results: Results) -> Iterator[Block]:
    """Yield the conclusions, computed from the results."""
    tables = [n for n in results.experiments if results.compares_methods(n)]
    for name in results.experiments:
        if EXPERIMENTS[name].measures_rates:
            yield Text(f"{_number(name)}: {_minimum_agreement(results, name)}", item=True)
    if tables:
        counts = [results.plain_agreement(name) for name in tables]
        by_table = ", ".join(
            f"{within} of {total} in {_number(name).lower()}"
            for name, (within, total) in zip(tables, counts, strict=True)
        )
        within, total = (sum(part) for part in zip(*counts, strict=True))
        yield Text(
            f"Plain methods at (0.2, 0.2) and (0.3, 0.1): {within} of {total} means lie within two "
            f"of the paper's standard deviations ({by_table}).",
            item=True,
        )
        for name in tables:
            yield Text(f"{_number(name)}: {_ordering(results, name)}", item=True)
        yield Text(f"Rows (0.4, 0.4): {_last_rows(results, tables)}", item=True)
    if "figure1" in results.experiments:
        yield Text(f"Figure 1: {_figure_ordering(results)}", item=True)


def _choices() -> Iterator[Block]:
    low, high = FEATURE_RANGE
    yield Text(
        "The paper leaves these open. They are made once, for all methods of a table; the first "
        "two so that the plain rows at (0.2, 0.2) and (0.3, 0.1) come near the paper's."
    )
    for text in (
        f"Scaling: classifiers see every feature scaled to [{low:g}, {high:g}] on the training "
        f"rows. The paper's Gaussian kernel of width {KERNEL_WIDTH:g} would be far too narrow on "
        "standardised columns. KLIEP sees the columns as they come (standardised).",
        f"Regularisation: alpha = {ALPHA:g} beside the mean loss, C = 1 / (alpha n) in other "
        "notations, for every learner and StPMKL.",
        f"Rates by cross-validation: {CROSS_VALIDATION_FOLDS} folds, accuracy on noisy labels, "
        f"rates 0, {RATE_GRID[1]:g}, ..., {RATE_GRID[-1]:g} for either class (tables 3 to 6), "
        f"0, {FINE_RATE_GRID[1]:g}, ..., {FINE_RATE_GRID[-1]:g} with the unbiased logistic loss "
        "(tables 1 and 2). StPMKL takes one rate for both classes.",
        "Scott's method: ROC curve of a logistic regression on the training rows, confidence "
        f"limits at {SCOTT_CONFIDENCE:g}, P(true=+1) given, as the paper gives it.",
        f"Synthetic data: {SYNTHETIC_ROWS} rows, drawn anew for every split.",
        "StPMKL is a reconstruction: its paper's text was not available. Its digits are not to be "
        "compared with the printed ones as if it were its authors' code.",
    ):
        yield Text(text, item=True)


def _rates_section(results: Results, name: str) -> Iterator[Block]:
    experiment, methods = EXPERIMENTS[name], results.methods(name)

    def cells(dataset: str, pair: Pair) -> list[Cell]:
        found = results.of(name, dataset=dataset, rho_pos=pair[0], rho_neg=pair[1])
        return [_rates_cell([each for each in found if each.method == m]) for m in methods]

    def mean(method: str, quantity: Callable[[Measurement], float]) -> float:
        return float(np.mean([quantity(entry) for entry in results.of(name, method=method)]))

    rows = [
        (Cell(dataset), Cell(_pair(pair)), *cells(dataset, pair))
        for dataset in experiment.datasets
        for pair in experiment.pairs
    ]
    head = ("data", "true rates", *(METHOD_NAMES[method] for method in methods))
    yield Table(head, tuple(rows), "Estimated (rho_pos, rho_neg); the paper's below.", n_labels=2)
    yield Text(_sentence(_minimum_agreement(results, name)))
    yield Table(
        ("method", "error of the mean", "standard deviation", "seconds per fit"),
        tuple(
            (
                Cell(METHOD_NAMES[method]),
                Cell(f"{mean(method, lambda entry: abs(entry.mean - entry.true_rate)):.3f}"),
                Cell(f"{mean(method, lambda entry: entry.sd):.3f}"),
                Cell(_seconds(mean(method, lambda entry: entry.seconds))),
            )
            for method in methods
        ),
        "Mean over the table, both rates.",
    )


def _rates_cell(measurements: list[Measurement]) -> Cell:
    """Return a cell of table 1 or 2: our rates and the paper's."""
    if not measurements:
        return Cell("-")
    ours = "(" + ", ".join(f"{entry.mean:.3f} ± {entry.sd:.3f}" for entry in measurements) + ")"
    bold = all(abs(entry.mean - entry.true_rate) < 0.1 for entry in measurements)
    printed = [(entry, entry.paper) for entry in measurements if entry.paper is not None]
    if not printed:
        return Cell(ours, bold=bold)
    below = ", ".join(f"{paper.mean:.3f} ± {paper.sd:.3f}" for _, paper in printed)
    furthest = max((entry.mean - paper.mean for entry, paper in printed), key=abs)
    return Cell(
        ours,
        f"({below})",
        bold=bold,
        below_bold=all(abs(paper.mean - entry.true_rate) < 0.1 for entry, paper in printed),
        shade=_shade(furthest / RATES_STEP),
    )


def _minimum_agreement(results: Results, name: str) -> str:
    found = results.of(name, method="liu-tao")
    gaps = [abs(entry.mean - entry.paper.mean) for entry in found if entry.paper is not None]
    spread = {
        method: np.mean([entry.sd for entry in results.of(name, method=method)])
        for method in ("cross-validation", "liu-tao")
    }
    wide = spread["cross-validation"] > spread["liu-tao"]
    verdict = "as the paper says" if wide else "which the paper found the other way round"
    return (
        f"the minimum's means lie within {max(gaps):.3f} of the paper's (mean difference "
        f"{np.mean(gaps):.3f}); {sum(gap <= 0.06 for gap in gaps)} of {len(gaps)} within 0.06. "
        f"Cross-validation spreads {'more' if wide else 'less'}, {verdict}: standard deviation "
        f"{spread['cross-validation']:.3f} against {spread['liu-tao']:.3f}."
    )


def _accuracy_section(results: Results, name: str) -> Iterator[Block]:
    summaries = results.compare_methods(name)
    yield _accuracy_table(results, name, summaries)
    yield _method_table(summaries, len(results.accuracy_rows(name)))
    within, total = results.plain_agreement(name)
    yield Text(
        f"Plain, rows (0.2, 0.2) and (0.3, 0.1): {within} of {total} means within two of the "
        f"paper's standard deviations. Ordering: {_ordering(results, name)}"
    )


def _accuracy_table(results: Results, name: str, summaries: list[MethodSummary]) -> Table:
    """Return the accuracy of every method by data set and noise, and on average."""
    methods = results.methods(name)
    rows = []
    for (dataset, pair), row in results.accuracy_rows(name).items():
        ours = {method: row[method].mean for method in methods}
        printed = {m: entry.paper for m, entry in row.items() if entry.paper is not None}
        theirs = {method: paper.mean for method, paper in printed.items()}
        texts = {m: f"{paper.mean:.2f} ± {paper.sd:.2f}" for m, paper in printed.items()}
        cells = [
            Cell(
                f"{row[method].mean:.2f} ± {row[method].sd:.2f}",
                texts.get(method, ""),
                bold=_among_two_highest(method, ours),
                below_bold=method in theirs and _among_two_highest(method, theirs),
                shade=_shade(row[method].deviations),
            )
            for method in methods
        ]
        rows.append((Cell(dataset), Cell(_pair(pair)), *cells))
    ours = {summary.method: summary.average for summary in summaries}
    theirs = {s.method: s.paper_average for s in summaries if s.paper_average is not None}
    averages = [
        Cell(
            f"{average:.2f}",
            f"{theirs[method]:.2f}" if method in theirs else "",
            bold=_among_two_highest(method, ours),
            below_bold=method in theirs and _among_two_highest(method, theirs),
        )
        for method, average in ours.items()
    ]
    rows.append((Cell("average"), Cell(""), *averages))
    head = ("data", "noise", *(METHOD_NAMES[method] for method in methods))
    return Table(head, tuple(rows), "Accuracy in percent; the paper's below.", n_labels=2)


def _method_table(summaries: list[MethodSummary], n_rows: int) -> Table:
    """Return the summary of every method over all rows of an accuracy table."""
    return Table(
        (
            "method",
            "average rank",
            "above plain",
            "Wilcoxon p",
            "average without (0.4, 0.4)",
            "error of its rates",
            "seconds per fit",
        ),
        tuple(
            (
                Cell(METHOD_NAMES[summary.method]),
                Cell(f"{summary.rank:.2f}"),
                Cell("" if summary.p_value is None else f"{summary.above_plain} of {n_rows}"),
                Cell("" if summary.p_value is None else _p_value(summary.p_value)),
                Cell(
                    f"{summary.checked_average:.2f}",
                    ""
                    if summary.paper_checked_average is None
                    else f"{summary.paper_checked_average:.2f}",
                ),
                Cell("" if summary.rates_error is None else f"{summary.rates_error:.3f}"),
                Cell(_seconds(summary.seconds)),
            )
            for summary in summaries
        ),
        "Over all rows: rank 1 is the best; Wilcoxon's paired test is against plain, two-sided.",
    )


def _ordering(results: Results, name: str) -> str:
    """Check the paper's claim that eIW and IW are above all others on the table's average."""
    average = {s.method: s.average for s in results.compare_methods(name)}
    rivals = [other for other in COMPARED if other in average]
    parts, holds = [], True
    for method in OURS:
        beaten = [other for other in rivals if average[method] > average[other]]
        missed = [other for other in rivals if other not in beaten]
        verdicts = [f"above {_listed(beaten, average)}"] if beaten else []
        verdicts += [f"not above {_listed(missed, average)}"] if missed else []
        parts.append(f"{METHOD_NAMES[method]} ({average[method]:.2f}) is {', and '.join(verdicts)}")
        holds = holds and not missed
    verdict = "The paper's ordering holds. " if holds else "The paper's ordering does not hold. "
    return verdict + "; ".join(parts) + "."


def _last_rows(results: Results, tables: Sequence[str]) -> str:
    gaps = {
        name: [
            entry.mean - entry.paper.mean
            for entry in results.of(name, method="plain", rho_pos=0.4, rho_neg=0.4)
            if entry.paper is not None
        ]
        for name in tables
    }
    every = np.concatenate([np.array(gap) for gap in gaps.values()])
    parts = ", ".join(
        f"{np.mean(gap):+.1f} in {_number(name).lower()}" for name, gap in gaps.items()
    )
    text = (
        f"our plain accuracies differ from the paper's by {np.mean(every):+.1f} points ({parts})."
    )
    levels = [point.level for point in results.explaining_levels()]
    if levels:
        text += (
            f" Symmetric noise of {np.median(levels):.2f} (median; {min(levels):.2f} to "
            f"{max(levels):.2f}) would give what the paper prints: see the last section."
        )
    return text


def _figure_section(results: Results) -> Iterator[Block]:
    experiment = EXPERIMENTS["figure1"]
    yield Picture(
        "figure1.svg",
        figure_1(results),
        "Box plots and mean accuracies of the methods with known rates for six pairs of noise "
        "rates, hinge loss left, logistic loss right",
    )
    rows = []
    for learner, pair in product(experiment.learners, experiment.pairs):
        found = results.of("figure1", learner=learner, rho_pos=pair[0], rho_neg=pair[1])
        means = {entry.method: entry.mean for entry in found}
        texts = {entry.method: f"{entry.mean:.2f} ± {entry.sd:.2f}" for entry in found}
        cells = [
            Cell(texts[method], bold=_among_two_highest(method, means))
            if method in texts
            else Cell("-")
            for method in experiment.methods
        ]
        rows.append((Cell(LEARNERS[learner]), Cell(_pair(pair)), *cells))
    head = ("learner", "noise", *(METHOD_NAMES[method] for method in experiment.methods))
    yield Table(
        head,
        tuple(rows),
        "Accuracy in percent; every method is told the true rates. The paper prints no figures.",
        n_labels=2,
    )
    yield Text(_sentence(_figure_ordering(results)))


def _figure_ordering(results: Results) -> str:
    """Check IW >= UB, LD >= plain where the rates differ."""
    gains: dict[tuple[str, str], list[float]] = {}
    for learner in EXPERIMENTS["figure1"].learners:
        for positive, negative in EXPERIMENTS["figure1"].pairs:
            found = results.of("figure1", learner=learner, rho_pos=positive, rho_neg=negative)
            mean = {entry.method: entry.mean for entry in found}
            for upper, lower in (("iw", "ub"), ("iw", "ld"), ("ub", "plain"), ("ld", "plain")):
                if positive != negative and {upper, lower} <= set(mean):
                    gains.setdefault((upper, lower), []).append(mean[upper] - mean[lower])
    parts = [
        f"{METHOD_NAMES[upper]} is above {METHOD_NAMES[lower]} in "
        f"{sum(gain > 1e-9 for gain in differences)} of {len(differences)} "
        f"({np.mean(differences):+.1f} points on average)"
        for (upper, lower), differences in gains.items()
    ]
    return f"where the two rates differ, {', '.join(parts)}."


def _levels_section(results: Results) -> Iterator[Block]:
    yield Text(
        "Do the paper's rows at (0.4, 0.4) show what labels flipped at that rate allow? The "
        "curves show what our plain methods reach at any rate, the same for both classes; a "
        "cross is the paper's plain figure at (0.4, 0.4), and the dotted line leads to the rate "
        "that would explain it."
    )
    yield Picture(
        "noise-levels.svg",
        noise_levels(results),
        "Accuracy of the plain methods against the symmetric noise rate, one panel per learner",
    )
    explained = results.explaining_levels()
    datasets = EXPERIMENTS["levels"].datasets
    by_cell = {(point.learner, point.dataset): point for point in explained}
    rows = []
    for learner, title in LEARNERS.items():
        cells = [Cell(title)]
        for dataset in datasets:
            point = by_cell.get((learner, dataset))
            cells.append(
                Cell("-")
                if point is None
                else Cell(_level(point.level), f"{_level(point.low)} to {_level(point.high)}")
            )
        rows.append(tuple(cells))
    yield Table(
        ("learner", *datasets),
        tuple(rows),
        "Symmetric noise rate at which our plain accuracy equals the paper's at (0.4, 0.4); below, "
        "from one standard error above the paper's mean to one below.",
    )
    levels = np.array([point.level for point in explained])
    lower = int((levels < 0.4).sum())
    yield Text(
        f"The rate is below 0.40 in {lower} of {levels.size} cells; its median is "
        f"{np.median(levels):.2f}. The paper does not say how its labels were flipped. Flipping a "
        "share 0.4 of rows that are drawn with replacement, for example, would flip 1 - exp(-0.4) "
        f"= {1 - np.exp(-0.4):.2f} of the labels."
    )


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _level(level: float) -> str:
    lowest, highest = (EXPERIMENTS["levels"].pairs[k][0] for k in (0, -1))
    if level <= lowest:
        return f"≤ {lowest:.2f}"
    return f"≥ {highest:.2f}" if level >= highest else f"{level:.2f}"


def _listed(methods: Sequence[str], average: Record) -> str:
    return ", ".join(f"{METHOD_NAMES[method]} ({average[method]:.2f})" for method in methods)


def _among_two_highest(method: str, values: Record) -> bool:
    """Whether the value, as printed, is one of the row's two highest."""
    printed = sorted((round(value, 2) for value in values.values()), reverse=True)
    return round(values[method], 2) >= printed[min(1, len(printed) - 1)]


def _shade(deviations: float | None) -> int:
    """Return 0 within one step, 1 within two, else 2, with the sign."""
    if deviations is None or abs(deviations) <= 1:
        return 0
    return int(np.sign(deviations)) * (1 if abs(deviations) <= 2 else 2)


def _number(name: str) -> str:
    return EXPERIMENTS[name].title.split(":")[0]


def _pair(pair: tuple[float, float]) -> str:
    return f"({pair[0]:g}, {pair[1]:g})"


def _p_value(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 0.1 else f"{seconds:.2f}"
