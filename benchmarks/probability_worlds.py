"""Made-up networks and labellers: what the audit of probabilities is chosen on.

`python -m benchmarks.probability_worlds` draws logits of rows that are easy or hard, lets a network
see them (too sure, too timid, blurred, taught by the noisy labels or not), spoils the labels
(alike, by class, more at hard rows, at rows that are of no class) and prints what the audit and
cleanlab's scores make of it: area under the ROC curve and average precision, errors said / there,
calibration error, and whether the truth lies in the printed range. `--gaussian` prints the reported
error rate and its interval beside the truth for logistic regression on two overlapping classes.
No label of a real set is used.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from benchmarks.real import DETERMINED, Array, audited, measured
from unflip import NoiseRates, TransitionMatrix, flip_labels

N_ROWS = 6000


@dataclass(frozen=True)
class World:
    """How rows, network and labels are made.

    Parameters
    ----------
    n_classes : int
        Classes.
    noise : {"none", "alike", "by class", "hard rows", "people"}
        Which mistakes are made; by people, half towards what a class is taken for, half towards
        what the row looks like, the likelier the harder it is to them, if not always to the model.
    rate : float
        How many labels are wrong, about.
    junk : float
        The share of rows that are of no class, labelled at random.
    sure_junk : float
        The share of the junk that looks like some class to the network.
    follows : float
        The share of the junk that is labelled as what it looks like.
    sharpness : float
        How far classes are apart.
    temperature : float
        What the network's logits are divided by.
    blur : float
        Standard deviation of the network's own errors in the logits.
    taught : float
        How far the network has learnt the noise: 0, the truth, to 1, P(noisy | x).
    """

    n_classes: int = 10
    noise: str = "alike"
    rate: float = 0.1
    junk: float = 0.0
    sure_junk: float = 0.0
    follows: float = 0.0
    sharpness: float = 4.0
    temperature: float = 1.0
    blur: float = 1.0
    taught: float = 1.0


WORLDS = {
    "clean": World(noise="none"),
    "clean, weak model": World(noise="none", sharpness=2.0),
    "alike 10 %": World(),
    "alike 40 %": World(rate=0.4),
    "by class 20 %": World(noise="by class", rate=0.2),
    "by class 20 %, untaught": World(noise="by class", rate=0.2, taught=0.2),
    "by class 40 %": World(noise="by class", rate=0.4, sharpness=5.0),
    "hard rows 10 %": World(noise="hard rows"),
    "hard rows 10 %, untaught": World(noise="hard rows", taught=0.0),
    "hard rows 40 %": World(noise="hard rows", rate=0.4),
    "hard rows, sharp": World(noise="hard rows", sharpness=6.0),
    "hard rows, too sure": World(noise="hard rows", temperature=0.5),
    "hard rows, timid": World(noise="hard rows", temperature=2.0),
    "alike, too sure": World(temperature=0.5),
    "alike, timid": World(temperature=2.0),
    "junk, flat": World(noise="none", junk=0.1),
    "junk, sure": World(noise="none", junk=0.1, sure_junk=1.0),
    "junk, half sure": World(noise="hard rows", rate=0.05, junk=0.1, sure_junk=0.5),
    "junk, 5 classes": World(n_classes=5, noise="none", junk=0.1, sure_junk=0.3),
    "junk, timid": World(noise="none", junk=0.1, temperature=2.0, sure_junk=0.2),
    "junk and flips": World(rate=0.1, junk=0.1, sure_junk=0.3),
    "numerals": World(noise="hard rows", rate=0.03, junk=0.1, sure_junk=0.5, follows=0.5),
    "numerals, sharp": World(
        noise="by class", rate=0.03, junk=0.1, sure_junk=0.7, follows=0.6, sharpness=6.0
    ),
    "numerals, too sure": World(
        noise="hard rows", rate=0.03, junk=0.1, sure_junk=0.7, follows=0.6, temperature=0.5
    ),
    "numerals, weak": World(
        noise="hard rows", rate=0.03, junk=0.1, sure_junk=0.6, follows=0.7, sharpness=2.5
    ),
    "people 40 %": World(noise="people", rate=0.4, sharpness=6.0, taught=0.7),
    "people 40 %, taught": World(noise="people", rate=0.4),
    "people 17 %": World(noise="people", rate=0.17, sharpness=6.0, taught=0.7),
    "2 classes, alike": World(n_classes=2, sharpness=3.0),
    "2 classes, by class": World(n_classes=2, noise="by class", rate=0.2, sharpness=3.0),
    "2 classes, hard rows": World(n_classes=2, noise="hard rows", sharpness=3.0),
    "2 classes, hard rows 40 %": World(n_classes=2, noise="hard rows", rate=0.4),
    "3 classes, hard rows 40 %": World(n_classes=3, noise="hard rows", rate=0.4),
    "2 classes, clean, weak": World(n_classes=2, noise="none", sharpness=1.0),
    "3 classes, by class": World(n_classes=3, noise="by class", rate=0.2),
    "30 classes, alike": World(n_classes=30, rate=0.2, sharpness=6.0),
    "30 classes, hard rows": World(n_classes=30, noise="hard rows", sharpness=5.0),
    "100 classes, by class": World(n_classes=100, noise="by class", rate=0.2, sharpness=7.0),
    "100 classes, hard, junk": World(n_classes=100, noise="hard rows", junk=0.05, sharpness=6.0),
}


def drawn(world: World, seed: int) -> tuple[Array, Array, Array, Array]:
    """Return the network's probabilities, the given labels, whether they are wrong, and junk."""
    rng = np.random.default_rng(seed)
    n, k = N_ROWS, world.n_classes
    true = rng.choice(k, n, p=rng.dirichlet(np.full(k, 20.0)))
    # hard rows are many: the distance of a row's class from the others is drawn for each
    distance = world.sharpness * rng.gamma(4.0, 0.25, n)
    junk = rng.random(n) < world.junk
    looks = np.where(rng.random(n) < world.sure_junk, 1.0, 0.0)
    distance[junk] *= looks[junk]
    seen = rng.normal(size=(n, k)) + distance[:, None] * np.eye(k)[true]
    clean = softmax(distance[:, None] * seen, axis=1)
    given, noisy = mistaken(world, rng, true, clean)
    at_random = junk & (rng.random(n) >= world.follows)
    given[at_random] = rng.integers(0, k, int(at_random.sum()))
    learnt = world.taught * noisy + (1 - world.taught) * clean
    logits = np.log(np.maximum(learnt, 1e-8)) + world.blur * rng.normal(size=(n, k))
    proba = softmax(logits / world.temperature, axis=1)
    return proba, given, (given != true) | junk, junk


def mistaken(
    world: World, rng: np.random.Generator, true: Array, clean: Array
) -> tuple[Array, Array]:
    """Return given labels, and P(noisy | x)."""
    n, k = clean.shape
    if world.noise == "none":
        return true.copy(), clean
    if world.noise == "hard rows":
        # the harder, the likelier a mistake, towards what the row looks like
        doubt = 1 - clean[np.arange(n), true]
        chance = np.minimum(world.rate * (0.1 + doubt) / np.mean(0.1 + doubt), 0.95)
        others = clean + 0.02
        others[np.arange(n), true] = 0.0
        others /= others.sum(axis=1, keepdims=True)
        given = np.where(rng.random(n) < chance, chosen(rng, others), true)
        expected = chance.mean()
        return given, (1 - expected) * clean + expected * (clean + 0.02) / (1 + 0.02 * k)
    if world.noise == "alike":
        matrix = TransitionMatrix.uniform(k, world.rate).matrix
        return chosen(rng, matrix[true]), clean @ matrix
    rates = np.minimum(world.rate * 2 * rng.random(k), 0.6)
    others = rng.dirichlet(np.full(k, 0.3), k) * (1 - np.eye(k)) + 1e-9 * (1 - np.eye(k))
    others /= others.sum(axis=1, keepdims=True)
    if world.noise == "people":
        looks = clean + 0.02
        looks[np.arange(n), true] = 0.0
        looks /= looks.sum(axis=1, keepdims=True)
        hard = rng.permutation(n) + 1.5 * (-clean[np.arange(n), true]).argsort().argsort()
        chance = np.minimum(world.rate * (n + hard) / np.mean(n + hard), 0.9)[:, None]
        given = np.where(
            rng.random(n) < chance[:, 0], chosen(rng, (others[true] + looks) / 2), true
        )
        return given, (1 - chance) * clean + chance * (clean @ others + looks) / 2
    matrix = (1 - rates)[:, None] * np.eye(k) + rates[:, None] * others
    return chosen(rng, matrix[true]), clean @ matrix


def chosen(rng: np.random.Generator, rows: Array) -> Array:
    """Draw a class from each row of probabilities."""
    picked = (rows.cumsum(axis=1) > rng.random(len(rows))[:, None]).argmax(axis=1)
    return np.asarray(picked)


def cases(names: list[str], seeds: int) -> Iterator[tuple[str, Array, Array, Array]]:
    for name in names:
        for seed in range(seeds):
            yield (name, *drawn(WORLDS[name], seed)[:3])


GAUSSIAN_RATES = (0.0, 0.0), (0.1, 0.1), (0.2, 0.1), (0.3, 0.1)
GAUSSIAN_SIZES = 1500, 3000, 5000


def gaussian(
    distance: float, rates: tuple[float, float], n_samples: int, seed: int
) -> tuple[Array, Array, float]:
    """Return logistic regression's held-out probabilities, the labels and their true error rate.

    Parameters
    ----------
    distance : float
        Between the means of two Gaussian classes with unit variance, in two features.
    rates : (positive, negative)
        Flip rates.
    n_samples, seed : int
        Size and seed of the dataset.
    """
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 2, n_samples)
    X = rng.normal(size=(n_samples, 2))
    X[:, 0] += distance * true
    given = np.asarray(flip_labels(true, NoiseRates(*rates), random_state=seed))
    proba = cross_val_predict(LogisticRegression(), X, given, cv=5, method="predict_proba")
    return proba, given, float(np.mean(given != true))


def gaussian_classes(seeds: int = 20) -> None:
    """Print how far the reported error rate is from the truth, and its interval's coverage."""
    print("distance  rates       determined  bias    mean error  beyond 1.5 truth + .02  interval")
    for distance in (2.0, 4.0):
        for rates in GAUSSIAN_RATES:
            cases = [
                gaussian(distance, rates, GAUSSIAN_SIZES[seed % 3], seed) for seed in range(seeds)
            ]
            truth = np.array([case[2] for case in cases])
            for determined in ("auto", False):
                fits = [audited(*case[:2], determined=determined) for case in cases]
                found = np.array([fit.label_error_rate_ for fit in fits])
                low, high = np.array([fit.label_error_interval_ for fit in fits]).T
                print(
                    f"{distance:8.0f}  {rates!s:10}  {determined!s:10}  "
                    f"{np.mean(found - truth):+.3f}  {np.abs(found - truth).mean():10.3f}  "
                    f"{np.sum(found > 1.5 * truth + 0.02):16} of {seeds}   "
                    f"{np.mean((low <= truth) & (truth <= high)):8.2f}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="", help="Worlds whose name has this in it.")
    parser.add_argument("--gaussian", action="store_true", help="Two overlapping classes instead.")
    parser.add_argument("--determined", default="auto", choices=["auto", "True", "False"])
    arguments = parser.parse_args()
    if arguments.gaussian:
        gaussian_classes(max(arguments.seeds, 20))
        return
    names = [name for name in WORLDS if arguments.only in name]
    determined = DETERMINED[arguments.determined]
    measured("made", cases(names, arguments.seeds), determined=determined)


if __name__ == "__main__":
    main()
