"""
Who labels carelessly?
======================

Labels come from somewhere: people, sources, months. Where the noise differs between them, the whole
table's rates describe nobody, and the remedy is not a better model but a word with somebody.
"""

# %%
# Four people label 2000 rows. Three of them err in 4 % of the rows, and one, who labels fewer, in
# 30 %; he also gets more of the positive rows. Who labelled a row is known.

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
# The channel learns from all rows which class a row likely is of. Given that, each person's labels
# have their own rates, by maximum likelihood, and are tested against one pair of rates for all.

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
# Numbers are cut into slices of about equal size. The temperature of the day is no cause of errors,
# and the intervals overlap.

temperature = pd.Series(rng.normal(15, 8, 2000), name="temperature")
NoiseBySliceDisplay.from_data(X, y_noisy, by=temperature, random_state=0)
plt.show()

# %%
# **What to see:** in the first picture one interval lies far from the others, and in the second all
# of them cross the band of one rate for all. How likely such differences are by chance is said by
# p, for a column that was chosen before looking.
