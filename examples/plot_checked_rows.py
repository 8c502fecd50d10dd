"""
Check a hundred samples
=======================

What do a hundred checked labels show? If a rule computed the labels, a model reproduces them
perfectly and its errors stay invisible. A person who checks samples finds them. A simulated person
checks the samples that ``next_rows`` draws.
"""

# %%
# The rule uses one column; the truth depends on three. No estimate from the labels alone can show
# that a third of them are wrong.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from unflip import CheckedLabels, ImportanceReweightingClassifier, NoiseRates

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 5))
y_true = (X[:, :3].sum(axis=1) + 0.3 * rng.normal(size=4000) > 0).astype(int)
y = (X[:, 0] > 0.4).astype(int)
print(f"{np.mean(y != y_true):.1%} of the labels are wrong")

# %%
# Before any sample is checked, the only information is that labels near the boundary of the rule
# are less certain.

score = LogisticRegression().fit(X[:, :1], y).predict_proba(X[:, :1])
suspicion = 0.5 * score.min(axis=1)

checked = CheckedLabels([], [])
sizes, fixed, anytime = [], [], []
for seed in range(15):
    picks = checked.next_rows(y, suspicion, goal="count", n=20, random_state=seed)
    answers = y_true[picks.rows]  # here a person would look at the rows
    checked += CheckedLabels(picks.rows, answers, picks.probability)
    found = checked.label_error_rate(y, suspicion)
    sizes.append(len(checked))
    fixed.append(found.interval)
    anytime.append(found.anytime)
print(f"by {len(checked)} checked rows: {found}")
print(f"plus or minus 2 points need {checked.rows_needed(y, suspicion)} more samples")

# %%
# A classifier learns from the same samples how labels go wrong.

accuracy = []
for n in (0, 100, 300):
    some = CheckedLabels(checked.rows[:n], checked.labels[:n], checked.probability[:n])
    clf = ImportanceReweightingClassifier(
        posterior="probabilistic", noise_rates=NoiseRates(0, 0), random_state=0
    ).fit(X, y, checked=some)
    accuracy.append(clf.score(X, y_true))
    print(f"{n:3} checked rows: accuracy {accuracy[-1]:.3f}")

# %%
# The interval is valid for a number of samples fixed in advance. The confidence sequence is valid
# at every moment, so the person may stop when it is narrow enough.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ends, name, shade in ((anytime, "at every moment", 0.2), (fixed, "at a fixed number", 0.4)):
    left.fill_between(sizes, *np.transpose(ends), alpha=shade, color="C0", label=name, lw=0)
left.axhline(np.mean(y != y_true), color="C3", label="true share")
left.set(xlabel="checked samples", ylabel="label error rate", ylim=(0, 0.6))
left.legend(frameon=False)
right.bar(["none", "100", "300"], accuracy, color="C0")
right.set(xlabel="checked samples", ylabel="accuracy on true labels", ylim=(0.5, 1))
plt.show()

# %%
# Both bands narrow around the true error rate, the confidence sequence more slowly. For the
# classifier, a hundred checked labels are worth more than all four thousand labels of the rule.
