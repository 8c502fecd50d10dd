"""
Any loss
========

Which loss functions can be used on noisy labels? All of them: the weights do not depend on the
loss. This example trains eleven surrogate losses on clean, noisy and reweighted labels.
"""

# %%
# The data follow a logistic model in five dimensions. Noise rates and P(observed | x) are the true
# ones, so that only the weights have an effect. The 200 000 test samples have clean labels.

import matplotlib.pyplot as plt
import numpy as np

from unflip import NoiseRates, flip_labels, importance_weights
from unflip.learners import LinearClassifier
from unflip.losses import LOSSES

COEF = np.array([2.0, -1.5, 1.0, -0.5, 0.0])


def sample(n_rows, seed):
    """Draw rows, P(true=+1 | x) and labels of a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    posterior = 1 / (1 + np.exp(-(X @ COEF + 0.5)))
    return X, posterior, np.where(rng.uniform(size=n_rows) < posterior, 1, -1)


X, clean_posterior, y = sample(20_000, seed=0)
X_test, _, y_test = sample(200_000, seed=1)


def accuracy(loss, labels, weight=None):
    """Per cent of the clean test labels that are predicted."""
    clf = LinearClassifier(loss).fit(X, labels, sample_weight=weight)
    return 100 * clf.score(X_test, y_test)


# %%
# Each loss is trained on clean labels, on noisy labels, and on noisy labels with weights. The last
# column is the accuracy that noise still costs after reweighting.

PAIRS = [NoiseRates(positive=0.3, negative=0.1), NoiseRates(positive=0.0, negative=0.4)]
clean = {loss: accuracy(loss, y) for loss in LOSSES}
results = []
for rates in PAIRS:
    y_noisy = flip_labels(y, rates, random_state=0)
    noisy_posterior = rates.noisy_posterior(clean_posterior)
    given = np.where(y_noisy == 1, noisy_posterior, 1 - noisy_posterior)
    beta = importance_weights(given, y_noisy, rates)
    print(f"rates ({rates.positive}, {rates.negative})")
    print(f"{'loss':24}{'clean':>8}{'noisy':>13}{'reweighted':>12}{'difference':>12}")
    as_they_are = {loss: accuracy(loss, y_noisy) for loss in LOSSES}
    reweighted = {loss: accuracy(loss, y_noisy, beta) for loss in LOSSES}
    for loss in LOSSES:
        difference = round(reweighted[loss] - clean[loss], 2) + 0.0  # no -0.00
        print(
            f"{loss:24}{clean[loss]:8.2f}{as_they_are[loss]:13.2f}{reweighted[loss]:12.2f}"
            f"{difference:+12.2f}"
        )
    print()
    results.append((as_they_are, reweighted))

# %%
# Without weights, noise costs every loss some accuracy, including losses that are known as robust:
# at the rates (0, 0.4), Cauchy's and Welsch's lose most. With weights, each loss reaches its
# accuracy on clean labels.

fig, axes = plt.subplots(1, 2, figsize=(10, 5), sharex=True, sharey=True, layout="constrained")
names = [loss.replace("_", " ") for loss in LOSSES]
for ax, rates, (as_they_are, reweighted) in zip(axes, PAIRS, results, strict=True):
    ax.hlines(names, as_they_are.values(), reweighted.values(), color="0.8", linewidth=2, zorder=0)
    ax.plot(as_they_are.values(), names, "s", color="#D55E00", markersize=8, label="noisy labels")
    ax.plot(
        clean.values(),
        names,
        "o",
        color="black",
        markerfacecolor="none",
        markersize=13,
        label="clean labels",
    )
    ax.plot(reweighted.values(), names, "o", color="#0072B2", markersize=7, label="reweighted")
    ax.set(
        title=f"rates ({rates.positive}, {rates.negative})",
        xlabel="clean test labels predicted, %",
    )
    ax.grid(axis="x", color="0.92")
    ax.set_axisbelow(True)
axes[0].invert_yaxis()
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %%
# **What to see:** in both panels every blue dot lies within its black circle, whatever the loss.
