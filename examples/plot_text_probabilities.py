"""
Texts: combine two models
=========================

How are several models combined in an audit? Messages were sorted into topics, and some have the
wrong one. Two models give held-out probabilities; the audit selects the combination that predicts
the labels best.
"""

# %%
# Messages consist of words that their topic prefers and of words that all topics share. A seventh
# of them gets the label of another topic, most often billing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import MultinomialNB

from unflip import LabelAudit, TransitionMatrix, flip_labels

liked = {
    "billing": "invoice refund card charge price receipt tax account",
    "delivery": "parcel courier late address track depot van door",
    "returns": "broken refund label box size exchange return wrong",
    "website": "login page error password click browser account basket",
}
shared = ["hello", "please", "thanks", "order", "help", "today", "week", "again", "number", "call"]
topics = np.array(list(liked))
rng = np.random.default_rng(0)
true = rng.choice(topics, 1500)
texts = [" ".join(rng.choice(liked[t].split() * 2 + shared, rng.integers(4, 12))) for t in true]
noise = TransitionMatrix(
    [[0.7, 0.0, 0.2, 0.1], [0.05, 0.9, 0.05, 0.0], [0.1, 0.0, 0.9, 0.0], [0.1, 0.0, 0.0, 0.9]]
)
labels = pd.Series(
    flip_labels(true, noise, random_state=0), index=[f"msg {k}" for k in range(1500)]
)
wrong = labels.to_numpy() != true

# %%
# Held-out probabilities of both models. From a list, the audit uses the model, product or mean
# under which held-out labels are likeliest.

words = CountVectorizer().fit_transform(texts)
models = [LogisticRegression(max_iter=300), MultinomialNB()]
pred_probs = [cross_val_predict(m, words, labels, cv=5, method="predict_proba") for m in models]
audits = {
    "logistic regression": LabelAudit().fit_posterior(pred_probs[0], labels),
    "naive Bayes": LabelAudit().fit_posterior(pred_probs[1], labels),
    "both": LabelAudit().fit_posterior(pred_probs, labels),
}
table = audits["both"].to_frame().assign(text=texts)
columns = ["given_label", "suggested_label", "mislabel_proba", "text"]
print(table.sort_values("mislabel_proba", ascending=False)[columns].head(5).to_string())

# %%
# Which topics are confused: the true T and the estimate.

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
pairs = (("as it is", noise.matrix), ("as found", audits["both"].transition_matrix_))
for ax, (title, matrix) in zip(axes, pairs, strict=True):
    ax.imshow(matrix * (1 - np.eye(4)), cmap="Oranges", vmin=0, vmax=0.25)
    ax.set_xticks(range(4), topics, rotation=30)
    ax.set_yticks(range(4), topics)
    ax.set_title(f"mistakes, {title}")
    for i, j in np.ndindex(4, 4):
        ax.text(j, i, f"{matrix[i, j]:.2f}", ha="center", va="center")
plt.show()
for name, audit in audits.items():
    print(f"{name}: average precision {average_precision_score(wrong, audit.mislabel_proba_):.2f}")

# %%
# **What to see:** a row is a true topic, a column the observed label. Both pictures agree: messages
# on billing are labelled as returns, and hardly any on delivery is mislabelled.
