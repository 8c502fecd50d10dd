"""
Density ratios from two samples
===============================

How do the density ratio estimators compare? This example estimates r(x) = p_num(x) / p_den(x) of
two Gaussians from a sample of each.
"""

# %%
# The numerator is narrower, so the ratio has a maximum and goes to zero on both sides.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from unflip.density_ratio import KLIEP, KMM, ULSIF, RuLSIF

numerator, denominator = norm(0.5, 0.6), norm(0.0, 1.0)
X_num = numerator.rvs((500, 1), random_state=0)
X_den = denominator.rvs((2000, 1), random_state=1)
x = np.linspace(-3, 3, 301)
truth = numerator.pdf(x) / denominator.pdf(x)

# %%
# Each estimator selects its own kernel width. ``solver="projected_gradient"`` is the published
# KLIEP, which stops before the optimum; ``solver="newton"`` finds it. The printed errors are root
# mean squares under the density of the denominator.

ESTIMATORS = {
    "KLIEP, newton": KLIEP(random_state=0),
    "KLIEP, projected gradient": KLIEP(solver="projected_gradient", random_state=0),
    "uLSIF": ULSIF(random_state=0),
    "RuLSIF, alpha=0.1": RuLSIF(alpha=0.1, random_state=0),
    "KMM": KMM(random_state=0),
}
estimates = {}
for name, ratio in ESTIMATORS.items():
    estimates[name] = ratio.fit(X_num, X_den).predict(x[:, None])
    squared_error = np.average((estimates[name] - truth) ** 2, weights=denominator.pdf(x))
    print(f"{name:28s}width {ratio.bandwidth_:.2f}, error {squared_error**0.5:.2f}")

# %%
# One panel per estimator, with the truth in black. The ticks at the bottom are denominator samples;
# an estimate is unreliable where there are none. KMM estimates weights of the denominator samples
# and interpolates between them.

ORANGE, BLUE = "#D55E00", "#0072B2"
fig, axes = plt.subplots(2, 3, figsize=(11, 6.5), sharex=True, sharey=True)
fig.set_layout_engine("constrained")
axes = axes.ravel()
axes[0].plot(x, numerator.pdf(x), color=ORANGE, linewidth=2.5, label="numerator")
axes[0].plot(x, denominator.pdf(x), "--", color=BLUE, linewidth=2.5, label="denominator")
axes[0].plot(x, truth, color="black", linewidth=2, label="their ratio")
axes[0].set_title("the densities")
axes[0].legend(loc="upper left", fontsize="small")
for ax, (name, estimate) in zip(axes[1:], estimates.items(), strict=True):
    ax.plot(x, truth, color="black", linewidth=2, label="truth")
    ax.plot(x, estimate, color=ORANGE, linewidth=2.5, label="estimate")
    ax.plot(X_den, np.full(len(X_den), -0.1), "|", color=BLUE, markersize=8, alpha=0.3)
    ax.set_title(name)
axes[1].legend(loc="upper left", fontsize="small")
axes[0].set(xlim=(-3, 3), ylim=(-0.25, None))
for ax in axes[3:]:
    ax.set_xlabel("x")
for ax in axes[::3]:
    ax.set_ylabel("density, or ratio")
plt.show()

# %%
# **What to see:** all estimators find the maximum. They differ where the blue ticks become rare.
