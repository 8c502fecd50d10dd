"""
Train on asymmetric noise
=========================

What does asymmetric noise do to a classifier, and how is it corrected? 40 % of the positive class
are labelled negative, and hardly any of the negative class is labelled positive. A classifier moves
its boundary into the positive class; reweighting moves it back.
"""

# %%
# Two Gaussian classes. In the training labels 40 % of the positives and 5 % of the negatives are
# flipped.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels


def sample(n_rows, seed):
    """Draw rows of two Gaussian classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    return rng.normal(2.4 * y[:, None], 1.0, (n_rows, 2)), y


X, y = sample(2000, seed=0)
X_test, y_test = sample(20_000, seed=1)
rates = NoiseRates(positive=0.4, negative=0.05)
y_noisy = flip_labels(y, rates, random_state=0)

# %%
# Four classifiers. The rates of the second are estimated from the noisy labels; the third knows
# them. The last is trained on clean labels for comparison.

as_they_are = LogisticRegression().fit(X, y_noisy)
reweighted = ImportanceReweightingClassifier(LogisticRegression()).fit(X, y_noisy)
known = ImportanceReweightingClassifier(LogisticRegression(), noise_rates=rates).fit(X, y_noisy)
clean = LogisticRegression().fit(X, y)

print(f"estimated {reweighted.noise_rates_}")
print(f"between   {reweighted.rate_estimator_.interval_}")
models = {
    "noisy labels": as_they_are,
    "reweighted, rates estimated": reweighted,
    "reweighted, rates known": known,
    "clean labels": clean,
}
for name, model in models.items():
    print(f"{name:30s}{model.score(X_test, y_test):.1%} of clean test labels right")

# %%
# The four boundaries, and the samples shaded by P(mislabelled). The dark circles among the
# triangles are positives that were labelled negative.

BLUE, SKY, ORANGE, GREEN = "#0072B2", "#56B4E9", "#D55E00", "#009E73"
STYLES = {
    "noisy labels": (ORANGE, ":"),
    "reweighted, rates estimated": (BLUE, "-"),
    "reweighted, rates known": (SKY, "-."),
    "clean labels": (GREEN, "--"),
}

fig, ax = plt.subplots(figsize=(8, 6), layout="constrained")
for label, marker, text in [(0, "o", "negative"), (1, "^", "positive")]:
    rows = y_noisy == label
    points = ax.scatter(
        *X[rows].T,
        c=reweighted.mislabel_proba_[rows],
        marker=marker,
        s=28,
        cmap="Greys",
        vmin=-0.15,
        vmax=1,
        edgecolors="0.35",
        linewidths=0.4,
        label=f"labelled {text}",
    )
bar = fig.colorbar(points, label="P(label is wrong | x, label)")
bar.ax.set_ylim(0, 1)

x1 = np.array([-3.5, 6.0])
for name, model in models.items():
    linear = getattr(model, "estimator_", model)
    (w1, w2), b = linear.coef_[0], linear.intercept_[0]
    colour, line = STYLES[name]
    ax.plot(x1, -(w1 * x1 + b) / w2, line, color=colour, linewidth=3, label=name)
ax.set(xlim=(-3.5, 6), ylim=(-3.5, 6), xlabel="first feature", ylabel="second feature")
ax.set_title("Where the classes are cut, and which labels look wrong")
fig.legend(loc="outside lower center", ncols=3, frameon=False, handlelength=3)
plt.show()

# %%
# **What to see:** the dotted line has moved into the triangles, while the other three lines agree.
# The dark circles are the flipped labels.
