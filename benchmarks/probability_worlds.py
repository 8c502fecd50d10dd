"""Made-up networks and labellers: what the audit of probabilities is chosen on.

`python -m benchmarks.probability_worlds` draws logits of rows that are easy or hard, lets a network
see them (too sure, too timid, blurred, taught by the noisy labels or not), spoils the labels
(alike, by class, more at hard rows, at rows that are of no class) and prints what the audit and
cleanlab's scores make of it: area under the ROC curve and average precision, errors said / there,
calibration error, and whether the truth lies in the printed range. `--blame` prints what
disagreement with the model is made of. No label of a real set is used.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from benchmarks.real import Array, measured
from unflip import TransitionMatrix
from unflip._probabilities.hypotheses import FittedRows, fit_alike

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


def blame(n_worlds: int = 300, seed: int = 5) -> None:
    """Print which part of the labels that differ from the model's guess is wrong.

    By how much rarer they are among the surest sixth of the rows, and among the middle third, in
    worlds drawn at random: labels are right in two fifths of them. Where the middle third differs
    about as often as all, by the rate of wrong labels that is fitted as one for all rows.
    """
    rng = np.random.default_rng(seed)
    found = np.array([_drawn_blame(rng) for _ in range(n_worlds)])
    found = found[found[:, 2] > 0.005]
    surest, middle = found[:, 0] / found[:, 2], found[:, 1] / found[:, 2]
    print("surest sixth / all   middle third / all   worlds  wrong / disagreeing (10, 50, 90 %)")
    for low, high in ((-1, 0.01), (0.01, 0.05), (0.05, 0.12), (0.12, 0.25), (0.25, 9)):
        for least, most in ((-1, 0.6), (0.6, 0.9), (0.9, 9)):
            here = (surest > low) & (surest <= high) & (middle > least) & (middle <= most)
            if here.sum() > 2:
                ends = np.quantile(found[here, 3] / found[here, 2], [0.1, 0.5, 0.9])
                part = f"{max(low, 0):.2f} to {high:4.2f}         {max(least, 0):.1f} to {most:.1f}"
                print(f"{part}   {here.sum():12}   {ends.round(2)}")
    print("middle third / all above 0.8: rate of one for all / all   worlds")
    for low, high in ((-1, 0.01), (0.01, 0.06), (0.06, 0.2), (0.2, 9)):
        rate = found[:, 4] / found[:, 2]
        here = (middle > 0.8) & (rate > low) & (rate <= high)
        if here.sum() > 2:
            ends = np.quantile(found[here, 3] / found[here, 2], [0.1, 0.5, 0.9])
            print(f"{max(low, 0):.2f} to {high:4.2f}   {here.sum():12}   {ends.round(2)}")


def _drawn_blame(rng: np.random.Generator) -> tuple[float, float, float, float, float]:
    """Return disagreement of the surest, middle, all rows; share of wrong labels, and one rate."""
    n, k = 4000, int(rng.choice([2, 3, 5, 10, 20]))
    rate = 0.0 if rng.random() < 0.4 else rng.uniform(0.02, 0.4)
    blur, taught, floor = rng.uniform(0.1, 1.2), rng.random(), 10 ** rng.uniform(-2.5, 0)
    if rng.random() < 0.5:
        true = rng.integers(0, k, n)
        distance = rng.uniform(1.0, 8.0) * rng.gamma(4.0, 0.25, (n, 1))
        seen = rng.normal(size=(n, k)) + distance * np.eye(k)[true]
        clean = softmax(distance * seen, axis=1)
    else:
        clean = np.maximum(rng.dirichlet(np.full(k, 10 ** rng.uniform(-2, 0)), n), 1e-9)
        clean /= clean.sum(axis=1, keepdims=True)
        true = chosen(rng, clean)
    doubt = 1 - clean[np.arange(n), true]
    chance = np.minimum(rate * (floor + doubt) / np.mean(floor + doubt), 0.8)[:, None]
    others = clean + 0.02
    others[np.arange(n), true] = 0.0
    others /= others.sum(axis=1, keepdims=True)
    given = np.where(rng.random(n) < chance[:, 0], chosen(rng, others), true)
    learnt = taught * ((1 - chance) * clean + chance * others) + (1 - taught) * clean
    logits = np.log(np.maximum(learnt, 1e-8)) + blur * rng.normal(size=(n, k))
    sample = FittedRows(logits - logits.mean(axis=1, keepdims=True), given, np.ones(n))
    alike = fit_alike(sample)
    noisy = alike.beliefs(sample.logs, sample.shares)[0] @ alike.matrix
    disagrees = (noisy.argmax(axis=1) != given)[np.argsort(-noisy.max(axis=1))]
    third = n // 3
    return (
        float(disagrees[: n // 6].mean()),
        float(disagrees[third : 2 * third].mean()),
        float(disagrees.mean()),
        float(np.mean(given != true)),
        float(1 - alike.matrix[0, 0]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="", help="Worlds whose name has this in it.")
    parser.add_argument("--blame", action="store_true", help="What disagreement is made of.")
    arguments = parser.parse_args()
    if arguments.blame:
        blame()
        return
    names = [name for name in WORLDS if arguments.only in name]
    measured("made", cases(names, arguments.seeds))


if __name__ == "__main__":
    main()
