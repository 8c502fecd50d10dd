"""
Samples of no class
===================

What if some samples belong to no class? Scans of digits contain smudges that are no digit, and
somebody labelled them all the same. ``none_proba_`` estimates the probability that a sample belongs
to no class.
"""

# %%
# The pixels of a tenth of the images are shuffled and their labels are random. The model was
# trained with them, as in practice.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict

from unflip import LabelAudit

digits = load_digits()
rng = np.random.default_rng(0)
picked = rng.integers(0, len(digits.data), 200)
X = np.r_[digits.data, rng.permuted(digits.data[picked], axis=1)]
labels = np.r_[digits.target, rng.integers(0, 10, 200)]
junk = np.arange(len(X)) >= len(digits.data)

forest = RandomForestClassifier(100, min_samples_leaf=2, random_state=0)
pred_probs = cross_val_predict(forest, X, labels, cv=3, method="predict_proba")
audit = LabelAudit().fit_posterior(pred_probs, labels)

# %%
# A sample between two classes excludes the others. A smudge excludes none, and its label is
# independent of its probabilities. Together these two signs distinguish it from a digit that is
# hard to read.

own = pred_probs[np.arange(len(X)), labels]
print(f"{junk.sum()} rows are junk, {audit.none_proba_.sum():.0f} are expected to be")
for name, score in (("self-confidence", -own), ("P(mislabelled)", audit.mislabel_proba_)):
    print(f"{name}: average precision {average_precision_score(junk, score):.3f}")

# %%
# The likeliest samples of no class, with their observed labels.

most = np.argsort(-audit.none_proba_)[:16]
fig, axes = plt.subplots(2, 8, figsize=(11, 3.4), layout="constrained")
for ax, row in zip(axes.flat, most, strict=True):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{labels[row]} → none", color="#D55E00")
    ax.set_axis_off()
plt.show()

# %%
# **What to see:** none of them is a digit, whatever its label says.
