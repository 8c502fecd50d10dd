"""
Three classes
=============

How are more than two classes handled? Labels are flipped by a matrix, T[i, j] = P(observed=j |
true=i), which unflip estimates together with P(true | x).
"""

# %%
# 45 % of the first class are labelled as the second, and 30 % of the third as the first.

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
# ``"auto"`` estimates T with the noise model, for any number of classes.

reweighted = ImportanceReweightingClassifier(random_state=0).fit(X, y_noisy)
print("T as estimated")
print(reweighted.transition_matrix_.round(2))
models = {
    "noisy labels": LogisticRegression().fit(X, y_noisy),
    "reweighted": reweighted,
    "true labels": LogisticRegression().fit(X, y),
}
for name, model in models.items():
    print(f"{name:19} {model.score(X_test, y_test):.1%} of the true test labels")

# %%
# The predictions of the three classifiers, and the samples by their true class.

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
# **What to see:** trained on noisy labels, the second class takes most of the first. With the
# correction the regions are nearly those of the true labels.
