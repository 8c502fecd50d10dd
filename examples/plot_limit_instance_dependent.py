"""
It cannot work: errors at hard samples
======================================

When does unflip miss label errors? The method assumes that all samples of a class are flipped
equally often. Here borderline samples are mislabelled and clear ones never. No pair of rates
describes this noise, and nothing in the data reveals it.
"""

# %%
# P(true=1 | x) increases at x = 0. A positive sample is labelled negative with a probability that
# decreases from 0.8 at the boundary to 0 far from it.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from unflip import ImportanceReweightingClassifier


def clean_posterior(x):
    """Return P(true=1 | x)."""
    return expit(5 * x)


def flip_rate(x):
    """Return how often a positive row at x is labelled negative."""
    return 0.8 * np.exp(-(np.maximum(x, 0) ** 2) / 0.8)


rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, 2000)
y = (rng.uniform(size=x.size) < clean_posterior(x)).astype(int)
y_noisy = np.where(rng.uniform(size=x.size) < flip_rate(x), 0, y)

# %%
# The clear samples, which determine the rates, are all labelled correctly. unflip finds no noise
# and does not warn, although one label in nine is wrong. All weights are 1, and the classifier is
# that of the noisy labels.

clf = ImportanceReweightingClassifier(LogisticRegression(), random_state=0).fit(x[:, None], y_noisy)
print(f"{np.mean(y_noisy != y):.0%} of the labels are wrong")
print(
    f"found {clf.noise_rates_}, p-value of no noise {clf.rate_estimator_.noise_test_.p_value:.2f}"
)
print(f"warnings: {clf.diagnostics_}")
print(f"accuracy on true labels    {clf.score(x[:, None], y):.2f}")
clean = LogisticRegression().fit(x[:, None], y)
print(f"trained on true labels     {clean.score(x[:, None], y):.2f}")

# %%
# The noisy curve looks like that of clean labels with a boundary further to the right.

grid = np.linspace(-3, 3, 301)
noisy = clean_posterior(grid) * (1 - flip_rate(grid))
borders = {"noisy labels": clf.estimator_, "true labels": clean}

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.plot(grid, clean_posterior(grid), "--", color="#009E73", linewidth=2.5, label="P(true=1 | x)")
ax.plot(grid, noisy, color="#D55E00", linewidth=2.5, label="P(observed=1 | x)")
ax.plot(
    grid,
    flip_rate(grid) * (grid > 0),
    ":",
    color="0.5",
    linewidth=2,
    label="flip rate of positives",
)
for (name, model), colour, place in zip(
    borders.items(), ["#D55E00", "#009E73"], [(1.6, 0.45), (-1.5, 0.45)], strict=True
):
    at = -model.intercept_[0] / model.coef_[0, 0]
    ax.axvline(at, color=colour, linewidth=1)
    ax.annotate(
        f"boundary of\n{name}",
        (at, place[1]),
        place,
        color=colour,
        ha="center",
        va="center",
        arrowprops={"arrowstyle": "-", "color": colour},
    )
ax.set(xlabel="x", ylabel="probability", title="The boundary moves, and the data do not show it")
ax.legend(loc="upper left")
plt.show()

# %%
# **What to see:** P(observed=1 | x) reaches 0 and 1 like that of clean labels, only further to the
# right. Only checked samples near the boundary can show the errors.
