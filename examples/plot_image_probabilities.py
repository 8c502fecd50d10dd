"""
Images: audit a network's probabilities
=======================================

How are wrong image labels found with a network that is already trained? Its held-out probabilities
and the labels are enough; no features are needed.
"""

# %%
# As a small stand-in, handwritten digits of which people confuse those that look alike, and a small
# network. ``cross_val_predict`` predicts each digit with networks that were not trained on its
# label.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_predict
from sklearn.neural_network import MLPClassifier

from unflip import LabelAudit

digits = load_digits()
X, y = digits.data / 16, digits.target
rng = np.random.default_rng(0)
mistaken_for = {1: 8, 8: 1, 3: 9, 9: 3, 4: 7, 7: 4, 5: 6, 6: 5}
is_mistake = rng.random(y.size) < 0.12
labels = np.where(is_mistake, [mistaken_for.get(digit, digit) for digit in y], y)
wrong = labels != y

network = MLPClassifier((40,), early_stopping=True, learning_rate_init=0.01, random_state=0)
pred_probs = cross_val_predict(network, X, labels, cv=3, method="predict_proba")

# %%
# One line audits them. The label error rate has an interval, and a range that allows for errors
# that depend on the sample.

audit = LabelAudit().fit_posterior(pred_probs, labels)
low, high = audit.label_error_range_
print(f"{wrong.mean():.1%} are wrong, {audit.n_errors_ / y.size:.1%} are estimated to be")
print(f"at most {high:.1%}, if mistakes depend on the image")

suspects = audit.issues()
print(f"of {suspects.size} suspects {wrong[suspects].mean():.0%} are wrong")

# %%
# The twenty-four likeliest errors, with the observed and the suggested label.

fig, axes = plt.subplots(3, 8, figsize=(11, 5), layout="constrained")
for ax, row in zip(axes.flat, suspects, strict=False):
    ax.imshow(digits.images[row], cmap="gray_r")
    ax.set_title(f"{labels[row]} → {audit.suggested_label_[row]}", color="#D55E00")
    ax.set_axis_off()
plt.show()

# %%
# **What to see:** read the picture, then its title. The first number is the observed label.
