"""
It cannot work: no row surely is of its class
=============================================

Rates are read off rows that surely belong to a class. Where there are none, two worlds give the
same data: one with clean labels of classes that overlap, one with noisy labels of clear classes.
"""

# %%
# In the first world a customer churns with probability 0.1 to 0.6, depending on x, and the labels
# are right. In the second, customers of high x surely churn, others surely do not, and 40 % and
# 10 % of the labels were flipped. P(label=1 | x) is the same.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels

noise = NoiseRates(positive=0.4, negative=0.1)
rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, 2000)
clear = expit(4 * x)
overlapping = noise.noisy_posterior(clear)

right_labels = (rng.uniform(size=x.size) < overlapping).astype(int)
true_labels = (rng.uniform(size=x.size) < clear).astype(int)
wrong_labels = flip_labels(true_labels, noise, random_state=0)

# %%
# unflip finds noise in both, and in the first world it should not. There the best prediction is
# "no" up to x = 0.35; reweighted with rates that are not there, the border is lower. An audit would
# send hundreds of right labels to be checked.

models = {}
for name, labels in {"labels right": right_labels, "labels flipped": wrong_labels}.items():
    clf = models[name] = ImportanceReweightingClassifier(random_state=0).fit(x[:, None], labels)
    print(f"{name:15} {clf.noise_rates_}")
    border = x[clf.predict(x[:, None]) == 1].min()
    wrong = clf.mislabel_proba_.sum()
    print(f"{'':15} border at {border:.2f}, {wrong:.0f} labels said to be wrong")

# %%
# What tells the worlds apart is knowledge from outside. With bounds or a known rate the first
# comes out right:

known = ImportanceReweightingClassifier(noise_rates=NoiseRates(0.0, 0.0)).fit(
    x[:, None], right_labels
)
print(f"told that no label is flipped: {known.mislabel_proba_.sum():.0f} labels said to be wrong")

fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
grid = np.linspace(-3, 3, 301)
bins = np.linspace(-3, 3, 16)
worlds = [
    ("right labels, classes that overlap", right_labels, noise.noisy_posterior(expit(4 * grid))),
    ("clear classes, flipped labels", wrong_labels, expit(4 * grid)),
]
for ax, (title, labels, truth), clf in zip(axes, worlds, models.values(), strict=True):
    share = [labels[np.digitize(x, bins) == k].mean() for k in range(1, bins.size)]
    found = clf.noise_rates_.clean_posterior(clf.posterior_.predict_proba(grid[:, None])[:, 1])
    ax.plot((bins[1:] + bins[:-1]) / 2, share, "o", color="#D55E00", label="share of labels 1")
    ax.plot(grid, truth, "--", color="#009E73", linewidth=3, label="P(true=1 | x)")
    ax.plot(grid, found, color="#0072B2", linewidth=2, label="what unflip takes it for")
    ax.set(title=title, xlabel="x", ylim=(-0.03, 1.03))
axes[0].set_ylabel("probability")
axes[0].legend(loc="upper left")
plt.show()

# %%
# **What to see:** the dots are the same in both panels, and so is the answer, which can be right in
# one of them only.
