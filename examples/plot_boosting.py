"""
Boosted trees
=============

How are boosted trees trained on noisy labels? Any estimator whose ``fit`` takes ``sample_weight``
can be reweighted. Here it is gradient boosting, on a class inside a ring.
"""

# %%
# 45 % of the inner class are labelled as the outer one. Large trees memorise flipped labels even
# with weights, so this model uses few leaves and a low learning rate.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.inspection import DecisionBoundaryDisplay

from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels


def sample(n_rows, seed):
    """Draw rows, those near the origin positive."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2))
    y = rng.uniform(size=n_rows) < expit(4 * (1.4 - (X**2).sum(axis=1)))
    return X, y.astype(int)


X, y = sample(2000, seed=0)
X_test, y_test = sample(20_000, seed=1)
y_noisy = flip_labels(y, NoiseRates(positive=0.45, negative=0.05), random_state=0)

boosting = HistGradientBoostingClassifier(
    learning_rate=0.05, max_iter=60, max_leaf_nodes=8, min_samples_leaf=40, random_state=0
)
reweighted = ImportanceReweightingClassifier(boosting, random_state=0).fit(X, y_noisy)
print(reweighted.noise_rates_)
models = {
    "noisy labels": clone(boosting).fit(X, y_noisy),
    "reweighted": reweighted,
    "true labels": clone(boosting).fit(X, y),
}

# %%
# P(y=1 | x) of each model. The white line is its decision boundary, the dashed one that of the best
# classifier.

fig, axes = plt.subplots(1, 3, figsize=(12, 4.3), sharex=True, sharey=True, layout="constrained")
circle = np.linspace(0, 2 * np.pi, 200)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    grid = DecisionBoundaryDisplay.from_estimator(
        model,
        X,
        response_method="predict_proba",
        plot_method="pcolormesh",
        cmap="cividis",
        vmin=0,
        vmax=1,
        ax=ax,
    )
    ax.contour(grid.xx0, grid.xx1, grid.response, [0.5], colors="white", linewidths=2)
    ax.plot(*np.sqrt(1.4) * np.stack([np.cos(circle), np.sin(circle)]), "k--", linewidth=2)
    ax.set_title(f"{name}: {model.score(X_test, y_test):.0%} right")
    ax.set(xlim=(-2.5, 2.5), ylim=(-2.5, 2.5), aspect="equal")
fig.colorbar(grid.surface_, ax=axes, label="P(y=1 | x)")
plt.show()

# %%
# **What to see:** trained on noisy labels, the boundary shrinks into the inner class. With weights,
# it is close to the dashed circle.
