"""
Images: audit a network's probabilities
=======================================

A network was trained on images whose labels people gave, and it left its held-out probabilities. No
features are needed any more: probabilities and labels are enough to say which labels are wrong.
"""

# %%
# Stand-ins that run in a moment: handwritten digits, of which people mistake those that look
# alike, and a small network. ``cross_val_predict`` gives each digit's probabilities by networks
# that did not see its label.

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
# One line audits them. The share of wrong labels comes with an interval, and with a range of what
# else labels alone leave possible.

audit = LabelAudit().fit_posterior(pred_probs, labels)
low, high = audit.label_error_range_
print(f"{wrong.mean():.1%} are wrong, {audit.n_errors_ / y.size:.1%} are said to be")
print(f"at most {high:.1%}, if mistakes depend on the image")

suspects = audit.issues()
print(f"of {suspects.size} suspects {wrong[suspects].mean():.0%} are wrong")

# %%
# The surest twenty-four: the label they came with, and the one they should have.

fig, axes = plt.subplots(3, 8, figsize=(11, 5), layout="constrained")
for ax, row in zip(axes.flat, suspects, strict=False):
    ax.imshow(digits.images[row], cmap="gray_r")
    ax.set_title(f"{labels[row]} → {audit.suggested_label_[row]}", color="#D55E00")
    ax.set_axis_off()
plt.show()

# %%
# **What to see:** read the picture, then its title: the first number is the label it came with.
