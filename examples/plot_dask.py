"""
Data in blocks, with Dask
=========================

How is the method applied to data in blocks? The rates are estimated from samples drawn from all
blocks, the weights are computed block by block, and a classifier with ``partial_fit`` is trained on
them. On a cluster the code is the same, with a client.
"""

# %%
# Two hundred thousand samples in twenty blocks. 40 % of the positives are labelled negative and 5 %
# of the negatives positive.

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDClassifier

from unflip import NoiseRates, flip_labels
from unflip.dask import DaskReweighting

rng = np.random.default_rng(0)
X = rng.normal(size=(200_000, 5))
y = rng.uniform(size=200_000) < 1 / (1 + np.exp(-3 * X[:, 0]))
y_noisy = flip_labels(y, NoiseRates(positive=0.4, negative=0.05), random_state=0)
rows, labels = da.from_array(X, chunks=(10_000, 5)), da.from_array(y_noisy, chunks=10_000)

learner = SGDClassifier(loss="log_loss", alpha=1e-4, random_state=0)
model = DaskReweighting(learner, random_state=0).fit(rows, labels)
print(model.noise_rates_)

# %%
# The weights are lazy: each block computes its own when they are needed.

weights = model.sample_weight(rows, labels)
print(weights)

plain = SGDClassifier(loss="log_loss", alpha=1e-4, random_state=0).fit(X, y_noisy)
print(f"accuracy on the true labels: {plain.score(X, y):.3f} trained on noisy labels")
print(f"                             {model.estimator_.score(X, y):.3f} reweighted")

# %%
# The weight of a label against the feature that separates the classes. Negative labels have a low
# weight where positives are, and positive labels where negatives are.

some = slice(0, 4000)
beta = weights[some].compute()
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
for label, colour in ((False, "C0"), (True, "C1")):
    of_label = y_noisy[some] == label
    ax.plot(
        X[some, 0][of_label], beta[of_label], ".", color=colour, markersize=3,
        label="labelled positive" if label else "labelled negative",
    )  # fmt: skip
ax.set(xlabel="first feature", ylabel="weight")
ax.legend(markerscale=4)
plt.show()
