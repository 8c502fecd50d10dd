"""
Three classes
=============

More than two classes are flipped by a matrix, T[i, j] = P(noisy=j | true=i). It is estimated row by
row, and the weights go through its inverse.
"""

# %%
# Of the first class 45 % are called the second, of the third 30 % the first.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.linear_model import LogisticRegression

from unflip import ImportanceReweightingClassifier, TransitionMatrix, flip_labels

CENTERS = np.array([[0.0, 0.0], [3.0, 0.0], [1.5, 2.6]])


def sample(n_rows, seed):
    """Draw rows of three Gaussian classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n_rows)
    return CENTERS[y] + rng.normal(size=(n_rows, 2)), y


noise = TransitionMatrix([[0.55, 0.45, 0.0], [0.0, 0.9, 0.1], [0.3, 0.0, 0.7]])
X, y = sample(2000, seed=0)
X_test, y_test = sample(20_000, seed=1)
y_noisy = flip_labels(y, noise, random_state=0)

# %%
# ``"auto"`` takes logistic regression or boosted trees for P(noisy y | x), whichever predicts
# held-out noisy labels better, and reads T off the surest rows of each class.

reweighted = ImportanceReweightingClassifier(random_state=0).fit(X, y_noisy)
print("T as estimated")
print(reweighted.transition_matrix_.round(2))
models = {
    "labels as they are": LogisticRegression().fit(X, y_noisy),
    "reweighted": reweighted,
    "true labels": LogisticRegression().fit(X, y),
}
for name, model in models.items():
    print(f"{name:19} {model.score(X_test, y_test):.1%} of the true test labels")

# %%
# What each of the three predicts, and the rows by their true class.

COLOURS = ["#0072B2", "#D55E00", "#009E73"]
fig, axes = plt.subplots(1, 3, figsize=(12, 4.2), sharex=True, sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    DecisionBoundaryDisplay.from_estimator(
        model,
        X,
        response_method="predict",
        plot_method="pcolormesh",
        multiclass_colors=COLOURS,
        alpha=0.25,
        ax=ax,
    )
    for label, marker in enumerate("os^"):
        rows = y[:400] == label
        ax.scatter(*X[:400][rows].T, marker=marker, s=14, color=COLOURS[label])
    ax.set_title(f"{name}: {model.score(X_test, y_test):.0%} right")
plt.show()

# %%
# **What to see:** with the labels as they are the second class takes most of the first; with the
# weights the regions are nearly those of the true labels.
