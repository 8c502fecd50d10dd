"""
Known noise rates
=================

What is a known noise rate worth? It can be passed completely, partly, or as bounds; what is unknown
is estimated within what is known.
"""

# %%
# Six hundred samples of two overlapping classes, with 30 % of the positive and 10 % of the negative
# labels flipped. Four states of knowledge are compared: for example, fifty labels were checked, or
# a rule can only fail in one direction.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels


def sample(n_rows, seed):
    """Draw rows of two Gaussian classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    return rng.normal(1.6 * y[:, None], 1.0, (n_rows, 2)), y


X, y = sample(600, seed=0)
X_test, y_test = sample(20_000, seed=1)
y_noisy = flip_labels(y, NoiseRates(positive=0.3, negative=0.1), random_state=0)

KNOWN = {
    "nothing": "auto",
    "bounds": NoiseRates(positive=(0.2, 0.4), negative=(0.0, 0.15)),
    "one of them": NoiseRates(positive=None, negative=0.1),
    "both": NoiseRates(positive=0.3, negative=0.1),
}

# %%
# Neither the estimate nor its interval leaves the bounds.

fitted = {}
for name, known in KNOWN.items():
    clf = ImportanceReweightingClassifier(noise_rates=known, random_state=0).fit(X, y_noisy)
    fitted[name] = clf
    print(
        f"{name:12} {clf.noise_rates_}   {clf.score(X_test, y_test):.1%} of the test labels right"
    )
naive = LogisticRegression().fit(X, y_noisy).score(X_test, y_test)
best = LogisticRegression().fit(X, y).score(X_test, y_test)
print(f"noisy labels {naive:.1%}, true labels {best:.1%}")

# %%
# The estimates with 95 % intervals, and the accuracy on clean test labels.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for shift, which, colour, marker in [
    (-0.12, "positive", "#D55E00", "^"),
    (0.12, "negative", "#0072B2", "o"),
]:
    for k, clf in enumerate(fitted.values()):
        label = f"rho_{which[:3]}" if k == 0 else None
        rate = getattr(clf.noise_rates_, which)
        left.plot(rate, k + shift, marker, color=colour, markersize=9, label=label)
        if clf.rate_estimator_ is not None:
            bounds = getattr(clf.rate_estimator_.interval_, which)
            left.plot(bounds, [k + shift] * 2, color=colour, linewidth=3)
for truth in (0.1, 0.3):
    left.axvline(truth, color="0.6", linestyle="--", zorder=0)
left.set(xlabel="rate; dashed, the truth", xlim=(0, 0.5), yticks=range(4), yticklabels=list(KNOWN))
left.set_ylabel("known beforehand")
left.invert_yaxis()
left.legend()
scores = [clf.score(X_test, y_test) for clf in fitted.values()]
right.plot(scores, range(4), "s", color="black", markersize=8, label="reweighted")
right.axvline(naive, color="#D55E00", linestyle=":", linewidth=2.5, label="noisy labels")
right.axvline(best, color="#009E73", linestyle="--", linewidth=2.5, label="true labels")
right.set(xlabel="clean test labels predicted", xlim=(0.78, 0.9))
right.legend(loc="lower center")
plt.show()

# %%
# **What to see:** bounds cut the bars, and a known rate has none. Here the data alone were enough
# to train the classifier well.
