"""
Positive and unlabelled samples
===============================

How is a model trained if only some positives are labelled? Confirmed fraud is fraud; unconfirmed
cases may be either. No negative is labelled positive, and many positives are labelled negative. One
rate is known to be 0 and the other is estimated.
"""

# %%
# Four samples in ten are positive, and 70 % of these were never found. ``NoiseRates(positive=None,
# negative=0)`` states that the first rate is unknown; it may be anything below 1.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels

rng = np.random.default_rng(0)
y = (rng.uniform(size=1500) < 0.4).astype(int)
X = rng.normal(size=(1500, 2)) + y[:, None] * [2.4, 1.0]
labelled = flip_labels(y, NoiseRates(positive=0.7, negative=0.0), random_state=0)

one_sided = NoiseRates(positive=None, negative=0.0)
clf = ImportanceReweightingClassifier(
    LogisticRegression(), noise_rates=one_sided, random_state=0
).fit(X, labelled)
print(f"found   {clf.noise_rates_}")
print(f"between {clf.rate_estimator_.interval_}")

# %%
# The rate determines the share of true positives. The classifier predicts fraud instead of
# *confirmed* fraud.

share = clf.noise_rates_.clean_prior(labelled.mean())
print(
    f"labelled positive {labelled.mean():.0%}, truly positive {share:.0%} (in fact {y.mean():.0%})"
)
naive = LogisticRegression().fit(X, labelled)
print(f"accuracy: noisy labels {naive.score(X, y):.0%}, reweighted {clf.score(X, y):.0%}")

# %%
# The unlabelled samples, shaded by their probability of being positive. The dotted line is the
# decision boundary from the noisy labels, with hardly a sample beyond it. The solid line is that of
# the reweighted classifier.

fig, ax = plt.subplots(figsize=(8, 5.5), layout="constrained")
unlabelled = labelled == 0
points = ax.scatter(
    *X[unlabelled].T,
    c=clf.predict_proba(X[unlabelled])[:, 1],
    cmap="Blues",
    vmin=-0.2,
    vmax=1,
    s=22,
    edgecolors="0.5",
    linewidths=0.4,
    label="unlabelled",
)
ax.scatter(*X[~unlabelled].T, marker="^", s=26, color="#D55E00", label="confirmed")
bar = fig.colorbar(points, label="P(true=1 | x) of the unlabelled")
bar.ax.set_ylim(0, 1)
x1 = np.array([-4.0, 7.0])
for name, model, line in [("noisy labels", naive, ":"), ("reweighted", clf.estimator_, "-")]:
    (w1, w2), b = model.coef_[0], model.intercept_[0]
    ax.plot(x1, -(w1 * x1 + b) / w2, line, color="black", linewidth=2.5, label=name)
ax.set(xlim=(-3.5, 6), ylim=(-3.5, 4.5), xlabel="first feature", ylabel="second feature")
fig.legend(loc="outside lower center", ncols=4, frameon=False)
plt.show()

# %%
# **What to see:** the dark circles among the triangles are positives that nobody confirmed. The
# boundary separates the classes, not the labels.
