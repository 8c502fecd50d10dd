"""
Check an estimate with pictures
===============================

Can rates, weights and P(mislabelled) be trusted? Four pictures show it.
"""

# %%
# Two overlapping classes; 30 % of the positive and 10 % of the negative labels are flipped. Boosted
# trees estimate P(observed | x), because they can level off at the noise rates. Each sample is
# predicted by trees that have not seen its label.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
from unflip.audit import LabelAudit
from unflip.inspection import (
    MislabelCalibrationDisplay,
    NoiseRatesDisplay,
    SensitivityDisplay,
    WeightsDisplay,
    summary,
)
from unflip.noise import RatesInterval


def sample(n_rows, seed):
    """Draw rows of two Gaussian classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    return rng.normal(2.4 * y[:, None], 1.0, (n_rows, 2)), y


rates = NoiseRates(positive=0.3, negative=0.1)
X, y = sample(3000, seed=0)
X_test, y_test = sample(3000, seed=1)
y_noisy = flip_labels(y, rates, random_state=0)
y_test_noisy = flip_labels(y_test, rates, random_state=1)

trees = HistGradientBoostingClassifier(
    learning_rate=0.2, max_iter=20, min_samples_leaf=100, random_state=0
)
clf = ImportanceReweightingClassifier(posterior=trees, noise_rates=rates, cv=3, random_state=0)
clf.fit(X, y_noisy)

# %%
# The rates
# ---------
#
# Where a sample is certainly negative, its label is positive with probability rho_neg; where it is
# certainly positive, with 1 - rho_pos. The histogram of P(observed=1 | x), here on samples that the
# trees have not seen, should have its modes there. Rates and intervals are given in this example;
# estimated intervals are drawn in the same way.

NoiseRatesDisplay.from_estimator(
    clf,
    X_test,
    y_test_noisy,
    interval=RatesInterval.from_pairs(positive=(0.26, 0.34), negative=(0.07, 0.13)),
)
plt.show()

# %%
# The weights
# -----------
#
# Most labels have nearly the largest weight of their class; the few near 0 are those that look
# flipped. The positive class has 40 % of the labels and half of the weight, which compensates for
# the flips. The title shows the effective sample size.

WeightsDisplay.from_estimator(clf, y_noisy)
plt.show()

# %%
# P(mislabelled)
# --------------
#
# If true labels are known, from a simulation or from checks, P(mislabelled) can be compared with
# the observed share. Most labels are certain; between 0.4 and 0.8 there are few samples, and more
# of them are wrong than estimated.

audit = LabelAudit(trees, rates, random_state=0).fit(X, y_noisy)
MislabelCalibrationDisplay.from_estimator(audit, y_noisy, y)
plt.show()

# %%
# In numbers
# ----------

found = summary(clf)
print(f"{found['expected_errors']:.0f} errors expected, {np.sum(y != y_noisy)} made")
print(f"effective sample size {found['weights']['effective_sample_size']:.0f}")
for row in found["per_class"]:
    given, true = row["label_share"], row["true_share"]
    print(f"class {row['label']}: {given:.0%} of the labels, {true:.0%} without the flips")
print(found["warnings"] or "nothing to warn about")

# %%
# What if the rates are wrong?
# ----------------------------
#
# The classifier is trained again with one rate at a time set lower and higher. Here an
# overestimated rho_pos costs little and an underestimated one much. The mean weight is near 1 up to
# the true rates and departs from 1 above them.

SensitivityDisplay.from_estimator(clf, X, y_noisy, X_test, y_test, grid=[-0.2, -0.1, 0.1, 0.2])
plt.show()

# %%
# **What to see:** the scores hardly change to the right of the rates used, and decrease to their
# left.
