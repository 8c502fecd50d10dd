"""Draw the picture of the start page and the README: `python docs/_start_picture.py`.

Two moons with true labels, with 45 % of one class relabelled, and with these noisy labels
reweighted. The SVG files in docs/_static are its output, for light and dark pages and
for phones.
"""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels

STATIC = Path(__file__).parent / "_static"
NOISE = 0.22
RATES = NoiseRates(positive=0.45, negative=0.05)
THEMES = {  # ink, circles, triangles
    "light": ("#222222", "#0072B2", "#D55E00"),
    "dark": ("#dddddd", "#56B4E9", "#F08A4B"),
}
X_RANGE, Y_RANGE = (-1.8, 2.8), (-1.3, 1.8)


def main() -> None:
    X, y = make_moons(500, noise=NOISE, random_state=0)
    X_test, y_test = make_moons(20_000, noise=NOISE, random_state=1)
    y_noisy = np.asarray(flip_labels(y, RATES, random_state=0))
    clean = SVC(gamma=1.0).fit(X, y)
    as_they_are = SVC(gamma=1.0).fit(X, y_noisy)
    reweighted = ImportanceReweightingClassifier(SVC(gamma=1.0), random_state=0).fit(X, y_noisy)
    print(reweighted.noise_rates_)
    panels = [
        ("true labels", clean, y, np.ones(y.size)),
        ("45 % of the triangles relabelled", as_they_are, y_noisy, np.ones(y.size)),
        ("the same labels, reweighted by unflip", reweighted, y_noisy, reweighted.sample_weight_),
    ]
    scores = [model.score(X_test, y_test) for _, model, _, _ in panels]
    print(scores)
    for theme, colours in THEMES.items():
        draw(panels, scores, X, clean, colours, STATIC / f"start-{theme}.svg")
        draw(panels, scores, X, clean, colours, STATIC / f"start-phone-{theme}.svg", phone=True)


def draw(panels, scores, X, clean, colours, path, *, phone=False) -> None:
    """Draw the panels in a row or a column; the boundary from true labels is dashed in each."""
    ink, circles, triangles = colours
    mpl.rcParams.update(
        {
            "svg.hashsalt": "unflip",
            "font.size": 12,
            "text.color": ink,
            "axes.edgecolor": ink,
            "axes.titlesize": 13,
        }
    )
    grid = np.stack(np.meshgrid(np.linspace(*X_RANGE, 120), np.linspace(*Y_RANGE, 120)), axis=-1)
    shape, size = ((3, 1), (5.2, 11.4)) if phone else ((1, 3), (13, 3.9))
    fig, axes = plt.subplots(*shape, figsize=size, layout="constrained")
    for ax, (title, model, labels, weight), score in zip(axes, panels, scores, strict=True):
        side = model.decision_function(grid.reshape(-1, 2)).reshape(120, 120)
        wanted = clean.decision_function(grid.reshape(-1, 2)).reshape(120, 120)
        sizes = np.round(5 * np.sqrt(weight), 0)  # the area is the weight
        ax.contourf(
            *grid.T.swapaxes(1, 2), side, [-99, 0, 99], colors=[circles, triangles], alpha=0.13
        )
        for label, marker, colour in [(0, "o", circles), (1, "^", triangles)]:
            for size in np.unique(sizes):  # one marker each, which keeps the file small
                rows = (labels == label) & (sizes == size)
                ax.plot(*X[rows].T, marker, markersize=size, color=colour, markeredgewidth=0)
        ax.contour(*grid.T.swapaxes(1, 2), wanted, [0], colors=ink, linewidths=1.2, linestyles="--")
        ax.contour(*grid.T.swapaxes(1, 2), side, [0], colors=ink, linewidths=2.4)
        ax.set(title=title, xticks=[], yticks=[], xlim=X_RANGE, ylim=Y_RANGE)
        words = f"accuracy {score:.0%}"
        ax.text(0.5, -0.09, words, transform=ax.transAxes, ha="center", va="center")
    fig.savefig(path, transparent=True, metadata={"Date": None})
    plt.close(fig)


if __name__ == "__main__":
    main()
