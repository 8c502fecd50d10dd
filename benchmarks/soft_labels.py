"""A network on noisy digits, trained with what `LabelAudit` computes.

`python -m benchmarks.soft_labels` needs PyTorch. The audit takes its evidence from held-out
probabilities of a weak and a good logistic regression, of the network itself with and without
dropout, or from the features. The network with dropout is then trained with soft labels,
importance weights, or a loss that sends its predictions through T. Printed are means over the
seeds of the accuracy on clean test labels, in per cent, with standard errors.
"""

import argparse
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split

from unflip import LabelAudit, TransitionMatrix, flip_labels

N_CLASSES, HIDDEN, EPOCHS, BATCH, LEARNING_RATE = 10, 256, 30, 32, 2e-3
KINDS = {
    "40 % to any class": TransitionMatrix.uniform(N_CLASSES, 0.4),
    "20 % to any class": TransitionMatrix.uniform(N_CLASSES, 0.2),
    "20 % to the next class": TransitionMatrix.pair_flip(N_CLASSES, 0.2),
}


def trained(
    X: Any, target: Any, weight: Any = None, T: Any = None, *, seed: int, dropout: float = 0.5
) -> Any:
    """Return a network of one hidden layer, trained with soft targets, weights and the matrix T."""
    if weight is None:
        weight = np.ones(len(X))
    if T is None:
        T = np.eye(N_CLASSES)
    X, target, weight, T = (torch.as_tensor(each).float() for each in (X, target, weight, T))
    torch.manual_seed(seed)
    network = torch.nn.Sequential(
        torch.nn.Linear(X.shape[1], HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Dropout(dropout),
        torch.nn.Linear(HIDDEN, N_CLASSES),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(X)).split(BATCH):
            observed = torch.softmax(network(X[rows]), dim=1) @ T  # P(observed label | x)
            log_likelihood = (target[rows] * torch.log(observed + 1e-12)).sum(dim=1)
            loss = -(weight[rows] * log_likelihood).sum() / weight[rows].sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network.eval()


def probabilities(network: Any, X: Any) -> Any:
    with torch.no_grad():
        return torch.softmax(network(torch.as_tensor(X).float()), dim=1).double().numpy()


def held_out(X: Any, y: Any, *, seed: int, dropout: float) -> Any:
    """Return the network's probabilities of samples that it was not trained on."""
    found, unit = np.empty((y.size, N_CLASSES)), np.eye(N_CLASSES)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
        network = trained(X[train], unit[y[train]], seed=seed, dropout=dropout)
        found[test] = probabilities(network, X[test])
    return found


def measure(noise: TransitionMatrix, seed: int) -> dict[str, list[float]]:
    """Return the accuracies of one draw of the noise: a list for each source of evidence."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.3, random_state=seed)
    labels, unit = np.asarray(flip_labels(y, noise, random_state=seed)), np.eye(N_CLASSES)

    def accuracy(*arguments: Any) -> float:
        network = trained(X, *arguments, seed=seed)
        return float(np.mean(probabilities(network, X_test).argmax(axis=1) == y_test))

    def regression(C: float) -> Any:
        model = LogisticRegression(C=C, max_iter=1000)
        return cross_val_predict(model, X, labels, cv=5, method="predict_proba")

    sources = {
        "logistic regression, C=0.01": regression(0.01),
        "logistic regression, C=1": regression(1.0),
        "network without dropout": held_out(X, labels, seed=seed, dropout=0.0),
        "network": held_out(X, labels, seed=seed, dropout=0.5),
    }
    audits = {name: LabelAudit().fit_posterior(p, labels) for name, p in sources.items()}
    audits["features"] = LabelAudit(random_state=seed).fit(X, labels)
    found = {"clean labels": [accuracy(unit[y])], "noisy labels": [accuracy(unit[labels])]}
    for name, audit in audits.items():
        proba, T = sources.get(name, audit.clean_proba_), audit.transition_matrix_
        found[name] = [
            float(np.mean(proba.argmax(axis=1) == y)),
            audit.label_error_rate_,
            accuracy(audit.label_proba_),
            accuracy(unit[labels], (1 - audit.mislabel_proba_) / np.diag(T)[labels]),
            accuracy(unit[labels], None, T),
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for kind, noise in KINDS.items():
        draws = [measure(noise, seed) for seed in range(options.seeds)]
        print(f"{kind}: accuracy of the model, error rate, soft labels, weights, corrected loss")
        for name in draws[0]:
            values = 100 * np.array([draw[name] for draw in draws])
            errors = values.std(axis=0) / np.sqrt(max(len(values) - 1, 1))
            cells = [
                f"{a:5.1f} ± {b:.1f}" for a, b in zip(values.mean(axis=0), errors, strict=True)
            ]
            print(f"  {name:28}", *cells)


if __name__ == "__main__":
    main()
