"""
Importance weights
==================

How much does a label count? The weight of a positive label, beta = P(true=+1 | x) / P(observed=+1 |
x), depends on how likely the label is.
"""

# %%
# At the rates (rho_pos, rho_neg) the probability of a positive label lies between rho_neg and 1 -
# rho_pos. At the lower end all positive labels are noise, and the weight is 0. At the upper end the
# sample is certainly positive, and the weight 1 / (1 - rho_pos) compensates for the labels that
# were flipped away.

import matplotlib.pyplot as plt
import numpy as np

from unflip import NoiseRates, importance_weights
from unflip.weights import printed_lemma_2_weights

CLASSES = [-1, 1]


def possible(rates):
    """Return the values that P(observed=+1 | x) can take."""
    return np.linspace(max(rates.negative, 1e-6), 1 - rates.positive, 200)


PAIRS = [
    (NoiseRates(positive=0.0, negative=0.0), "#000000", "-"),
    (NoiseRates(positive=0.2, negative=0.2), "#0072B2", "--"),
    (NoiseRates(positive=0.3, negative=0.1), "#D55E00", "-"),
    (NoiseRates(positive=0.4, negative=0.4), "#009E73", "-."),
]

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for rates, colour, line in PAIRS:
    noisy = possible(rates)
    beta = importance_weights(noisy, np.ones(noisy.size), rates, classes=CLASSES)
    label = f"({rates.positive}, {rates.negative})"
    ax.plot(noisy, beta, line, color=colour, linewidth=2.5, label=label)
ax.set(
    xlim=(0, 1),
    ylim=(0, 1.8),
    xlabel="P(observed=+1 | x)",
    ylabel="weight of a positive label",
    title="Lemma 1: the more likely the label, the more it counts",
)
ax.legend(title="(rho_pos, rho_neg)", loc="lower right")
plt.show()

# %%
# The paper's second formula uses the inverse rates, P(true | observed). As printed it is wrong for
# class-conditional noise: where the weight should be 0, it is largest. Here the rates are (0.3,
# 0.1) and 30 % of the samples are positive. The black dots are the ratio itself, from P(true=+1 |
# x) and P(observed=+1 | x).

rates = NoiseRates(positive=0.3, negative=0.1)
inverse = rates.inverse(clean_prior=0.3)
noisy = possible(rates)
label = np.ones(noisy.size)
right = importance_weights(noisy, label, rates, classes=CLASSES)
printed = printed_lemma_2_weights(noisy, label, inverse, classes=CLASSES)
true_class = np.linspace(0, 1, 11)

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.plot(noisy, right, "-", color="#D55E00", label="Lemma 1 (right)")
ax.plot(noisy, printed, "--", color="#0072B2", label="Lemma 2 as printed (wrong)")
at = rates.noisy_posterior(true_class)
ax.plot(at, true_class / at, "ko", label="P(true=+1 | x) / P(observed=+1 | x)")
for line in ax.lines:
    line.set_linewidth(2.5)
ax.set(
    xlim=(0.08, 0.72),
    ylim=(-0.05, 2),
    xlabel="P(observed=+1 | x), from certainly negative to certainly positive x",
    ylabel="weight of a positive label",
    title="Two formulas for one weight, rates (0.3, 0.1)",
)
ax.legend(loc="lower right")
plt.show()

# %%
# **What to see:** the dots lie on the line of Lemma 1, and the dashed line runs the other way.
