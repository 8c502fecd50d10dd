"""
Tune parameters on noisy labels
===============================

Which score should a grid search use on noisy labels? Plain accuracy prefers the model that has
learnt the noise. ``make_clean_scorer`` corrects the score for the noise rates.
"""

# %%
# Half of the positive class is labelled negative. The parameter to choose is the class weight of
# the positive class, which moves the decision boundary.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from unflip import NoiseRates, flip_labels
from unflip.metrics import make_clean_scorer


def sample(n_rows, seed):
    """Draw rows of two Gaussian classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    return rng.normal(1.8 * y[:, None], 1.0, (n_rows, 2)), y


rates = NoiseRates(positive=0.5, negative=0.05)
X, y = sample(4000, seed=0)
X_test, y_test = sample(20_000, seed=1)
y_noisy = flip_labels(y, rates, random_state=0)

# %%
# The same search by accuracy and by corrected accuracy. Both use noisy labels only.

WEIGHTS = np.array([0.3, 0.5, 0.8, 1.2, 2.0, 3.0, 5.0])
grid = {"class_weight": [{1: weight} for weight in WEIGHTS]}
searches = {}
for name, scoring in {
    "accuracy": "accuracy",
    "corrected accuracy": make_clean_scorer("accuracy", rates),
}.items():
    search = GridSearchCV(LogisticRegression(), grid, scoring=scoring).fit(X, y_noisy)
    searches[name] = search
    right = np.mean(search.predict(X_test) == y_test)
    chosen = search.best_params_["class_weight"][1]
    print(f"{name:19} chooses {chosen:.1f}, and {right:.1%} of the true test labels are right")
truth = [
    LogisticRegression(class_weight=weight).fit(X, y_noisy).score(X_test, y_test)
    for weight in grid["class_weight"]
]

# %%
# The scores of both searches, and the accuracy on true test labels, which neither has seen.

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
styles = {"accuracy": ("#D55E00", "s:"), "corrected accuracy": ("#0072B2", "o-")}
for name, search in searches.items():
    colour, line = styles[name]
    score = search.cv_results_["mean_test_score"]
    ax.plot(WEIGHTS, score, line, color=colour, linewidth=2, label=f"{name}, noisy folds")
    ax.plot(WEIGHTS[search.best_index_], score.max(), "*", color=colour, markersize=20)
ax.plot(WEIGHTS, truth, "--", color="#009E73", linewidth=2.5, label="accuracy, true test labels")
ax.set(xscale="log", xlabel="weight of the positive class", ylabel="score")
ax.set_xticks(WEIGHTS, [f"{weight:g}" for weight in WEIGHTS])
ax.minorticks_off()
ax.legend(loc="lower right")
plt.show()

# %%
# **What to see:** the corrected curve follows that of the true labels, and its star is near the
# top. Plain accuracy selects a weight that suits the flipped labels.
