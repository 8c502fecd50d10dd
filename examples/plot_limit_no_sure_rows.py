"""
It cannot work: no clear samples
================================

When does unflip find noise that is not there? Rates are estimated from samples that clearly belong
to a class. Without such samples, clean labels of overlapping classes and noisy labels of separated
classes give the same data.
"""

# %%
# In the first scenario a customer churns with probability 0.1 to 0.6, depending on x, and the
# labels are correct. In the second, customers with high x churn, the others do not, and 40 % and 10
# % of the labels are flipped. P(observed=1 | x) is the same.

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
# unflip finds noise in both, which is wrong in the first. There the best prediction is "no" up to x
# = 0.35; reweighting at rates that are not there moves the boundary, and an audit would list
# hundreds of correct labels.

models = {}
for name, labels in {"labels right": right_labels, "labels flipped": wrong_labels}.items():
    clf = models[name] = ImportanceReweightingClassifier(random_state=0).fit(x[:, None], labels)
    print(f"{name:15} {clf.noise_rates_}")
    border = x[clf.predict(x[:, None]) == 1].min()
    wrong = clf.mislabel_proba_.sum()
    print(f"{'':15} boundary at {border:.2f}, {wrong:.0f} labels reported as wrong")

# %%
# Only knowledge from outside distinguishes the scenarios. With bounds or a known rate, the first is
# estimated correctly. unflip warns that the labels are likelier under other rates; this warning
# depends on the assumption that some samples are clear.

known = ImportanceReweightingClassifier(noise_rates=NoiseRates(0.0, 0.0)).fit(
    x[:, None], right_labels
)
print(f"with known rates of 0: {known.mislabel_proba_.sum():.0f} labels reported as wrong")

fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
grid = np.linspace(-3, 3, 301)
bins = np.linspace(-3, 3, 16)
scenarios = [
    ("right labels, classes that overlap", right_labels, noise.noisy_posterior(expit(4 * grid))),
    ("clear classes, flipped labels", wrong_labels, expit(4 * grid)),
]
for ax, (title, labels, truth), clf in zip(axes, scenarios, models.values(), strict=True):
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
# **What to see:** the dots are the same in both panels, and so is the estimate, which is correct in
# one of them only.
