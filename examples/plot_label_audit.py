"""
Find wrong labels
=================

Which labels of the handwritten digits are wrong? Ten per cent of them were changed at random. The
audit gives every digit the probability that its label is wrong, and the label that it should have.
"""

# %%
# Any classifier with ``predict_proba`` can estimate P(observed | x); here it is nearest neighbours,
# without the digit's own label. The transition matrix is given, because ten classes of 180 samples
# are too few to estimate ninety rates.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from unflip import TransitionMatrix, flip_labels
from unflip.audit import LabelAudit

digits = load_digits()
X, y = digits.data, digits.target
noise = TransitionMatrix.uniform(10, 0.1)
y_noisy = flip_labels(y, noise, random_state=0)

audit = LabelAudit(KNeighborsClassifier(20), noise, random_state=0).fit(X, y_noisy)

# %%
# ``issues()`` returns as many samples as expected errors, the likeliest first.

suspects = audit.issues()
wrong = y_noisy != y
print(f"{wrong.sum()} labels are wrong, {audit.n_errors_:.0f} are expected to be")
print(f"of the {suspects.size} suspects {wrong[suspects].mean():.0%} are wrong")
right = audit.suggested_label_[suspects] == y[suspects]
print(f"the suggested label is right for {right.mean():.0%} of them")

# %%
# The twenty-four likeliest errors, with the observed and the suggested label.

fig, axes = plt.subplots(3, 8, figsize=(11, 5), layout="constrained")
for ax, row in zip(axes.flat, suspects, strict=False):
    ax.imshow(digits.images[row], cmap="gray_r")
    ax.set_title(f"{y_noisy[row]} → {audit.suggested_label_[row]}", color="#D55E00")
    ax.set_axis_off()
plt.show()

# %%
# **What to see:** read the picture, then its title. The first number is the observed label.
