"""
Find the wrong labels
=====================

Ten per cent of the labels of scikit-learn's handwritten digits are changed at random. The audit
gives every digit the probability that its label is wrong, and the label that it should have.
"""

# %%
# Any classifier with ``predict_proba`` will do for P(noisy y | x). Each digit's comes from its
# neighbours, never from its own label. The matrix is given here: ten classes of 180 rows are few to
# estimate ninety kinds of error from.

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
# ``issues()`` returns as many rows as there are expected errors, the surest first.

suspects = audit.issues()
wrong = y_noisy != y
print(f"{wrong.sum()} labels are wrong, {audit.n_errors_:.0f} are expected to be")
print(f"of the {suspects.size} suspects {wrong[suspects].mean():.0%} are wrong")
right = audit.suggested_label_[suspects] == y[suspects]
print(f"the suggested label is right for {right.mean():.0%} of them")

# %%
# The twenty-four most suspicious, with the label that they came with and the one that they should
# have.

fig, axes = plt.subplots(3, 8, figsize=(11, 5), layout="constrained")
for ax, row in zip(axes.flat, suspects, strict=False):
    ax.imshow(digits.images[row], cmap="gray_r")
    ax.set_title(f"{y_noisy[row]} → {audit.suggested_label_[row]}", color="#D55E00")
    ax.set_axis_off()
plt.show()

# %%
# **What to see:** read the picture, then its title: the first number is the label it came with.
