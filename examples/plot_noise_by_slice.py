"""
Is one annotator noisier than another?
======================================

Does the noise differ between people, sources or months? ``noise_by_slice`` estimates the noise of
each and tests the difference.
"""

# %%
# Four people label 2000 samples. Three of them err in 4 % of the samples and one, who labels fewer,
# in 30 %; this person also gets more positive samples. The annotator of each sample is known.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from unflip.inspection import NoiseBySliceDisplay, noise_by_slice

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 4))
y = X @ [1.0, -1.0, 0.5, 0.0] > 0
share = np.where(y[:, None], [0.3, 0.3, 0.2, 0.2], [0.35, 0.35, 0.2, 0.1]).cumsum(axis=1)
annotator = np.array(["anna", "ben", "carla", "dan"])[(rng.random((2000, 1)) > share).sum(axis=1)]
wrong = rng.random(2000) < np.where(annotator == "dan", 0.3, 0.04)
y_noisy = y ^ wrong
table = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(annotator=annotator)

# %%
# The noise of each of them
# -------------------------
#
# The noise model estimates from all samples which class each likely belongs to. Given that, the
# rates of each person maximise the likelihood, and a test compares them with one pair of rates for
# all.

found = noise_by_slice(table, y_noisy, by="annotator", random_state=0)
print(found)
for name in found.slices:
    print(f"{name}: {wrong[annotator == name].mean():.0%} are wrong")

# %%
NoiseBySliceDisplay(found).plot()
plt.show()

# %%
# A column that has nothing to do with it
# ---------------------------------------
#
# Numbers are cut into slices of about equal size. The temperature of the day does not cause errors,
# and the intervals overlap.

temperature = pd.Series(rng.normal(15, 8, 2000), name="temperature")
NoiseBySliceDisplay.from_data(X, y_noisy, by=temperature, random_state=0)
plt.show()

# %%
# **What to see:** in the first picture one interval is far from the others; in the second all
# contain the common rate. p is the probability of such differences by chance, for a column that was
# chosen in advance.
