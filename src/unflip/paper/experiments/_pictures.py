"""Figure 1 and the curves of the plain methods, as SVG."""

import io
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


import numpy as np

from unflip.inspection import COLOURS, HATCHES, MARKERS
from unflip.paper.experiments._compare import Results
from unflip.paper.experiments._config import EXPERIMENTS, LEARNERS, METHOD_NAMES


def require_matplotlib() -> None:
    """Raise an ImportError that says what to install if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'unflip[plot]'") from error


def figure_1(results: Results) -> str:
    """Return figure 1 as SVG: box plots above, mean accuracies below, a column per loss."""
    plt = _pyplot()
    experiment = EXPERIMENTS["figure1"]
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), sharey="row", layout="constrained")
    for column, learner in enumerate(experiment.learners):
        measurements = results.of("figure1", learner=learner)
        methods = [
            m for m in experiment.methods if any(entry.method == m for entry in measurements)
        ]
        boxes, bars = axes[:, column]
        width = 0.8 / len(methods)
        for k, method in enumerate(methods):
            of_method = [entry for entry in measurements if entry.method == method]
            style = experiment.methods.index(method)  # the same style in both columns
            colour, hatch = COLOURS[style], HATCHES[style]
            positions = np.arange(len(of_method)) + (k - (len(methods) - 1) / 2) * width
            drawn = boxes.boxplot(
                [entry.values for entry in of_method],
                positions=positions,
                widths=0.85 * width,
                patch_artist=True,
                manage_ticks=False,
                medianprops={"color": "black"},
                flierprops={"markersize": 3},
            )
            for box in drawn["boxes"]:
                box.set(facecolor=colour, hatch=hatch)
            bars.bar(
                positions,
                [entry.mean for entry in of_method],
                0.9 * width,
                yerr=[entry.sd for entry in of_method],
                color=colour,
                hatch=hatch,
                edgecolor="black",
                linewidth=0.5,
                error_kw={"linewidth": 0.8},
                label=METHOD_NAMES[method],
            )
        for axis in (boxes, bars):
            pairs = [f"({a:g}, {b:g})" for a, b in experiment.pairs]
            axis.set_xticks(range(len(pairs)), pairs)
            axis.grid(axis="y", linewidth=0.4)
            axis.set_axisbelow(True)
        boxes.set_title(LEARNERS[learner])
        bars.set_xlabel("noise rates (positive, negative)")
        lowest = min(min(entry.values) for entry in results.of("figure1"))
        bars.set_ylim(max(0.0, np.floor(lowest / 10) * 10), 100)
        bars.legend(ncols=len(methods), loc="lower left", fontsize="small")
    axes[0, 0].set_ylabel("accuracy over the splits (%)")
    axes[1, 0].set_ylabel("mean accuracy ± sd (%)")
    return _as_svg(plt, figure)


def noise_levels(results: Results) -> str:
    """Return the accuracy of the plain methods by symmetric noise, the paper's rows as crosses."""
    plt = _pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), sharex=True, layout="constrained")
    explained = results.explaining_levels()
    for axis, (learner, title) in zip(axes.flat, LEARNERS.items(), strict=True):
        for k, dataset in enumerate(EXPERIMENTS["levels"].datasets):
            curve = results.of("levels", learner=learner, dataset=dataset)
            if not curve:
                continue
            levels, means = [entry.rho_pos for entry in curve], [entry.mean for entry in curve]
            axis.plot(levels, means, color=COLOURS[k], marker=MARKERS[k], ms=4, label=dataset)
            for point in explained:
                if (point.learner, point.dataset) == (learner, dataset):
                    error = point.paper.sd / np.sqrt(10)
                    axis.errorbar(
                        0.4, point.paper.mean, error, color=COLOURS[k], marker="x", ms=8, mew=2
                    )
                    axis.hlines(
                        point.paper.mean, point.level, 0.4, COLOURS[k], "dotted", linewidth=1
                    )
        axis.axvline(0.4, color="0.6", linewidth=0.8, zorder=0)
        axis.set_title(title)
        axis.grid(linewidth=0.4)
    for axis in axes[1]:
        axis.set_xlabel("symmetric noise rate")
    for axis in axes[:, 0]:
        axis.set_ylabel("accuracy (%)")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False
    )
    return _as_svg(plt, figure)


def _pyplot() -> ModuleType:
    require_matplotlib()
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    # a fixed salt makes the SVG reproducible
    mpl.rcParams["svg.hashsalt"] = "unflip"
    return plt


def _as_svg(plt: ModuleType, figure: "Figure") -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"
