"""Checked rows: whether intervals hold, how many rows they need, and what a model learns from them.

`python -m benchmarks.checked counting` simulates reviewing sessions on people's labels, on flipped
ones and on comments labelled by rules (`people.npz`, `simulated.npz` and `comments.csv` in the
folder `UNFLIP_REAL`, default `../shared/real`) and on tables made here: how often the fixed-n
interval covers the share of wrong labels and the rates of the classes at 200 and 400 rows, how
often the confidence sequence does when a person stops as soon as it is narrow, and how many rows a
half-width of .02 needs.

`python -m benchmarks.checked training` trains on labels made by rules and on flipped ones, with 100
and 300 checked rows, beside what else can be done with them. `python -m benchmarks.checked splits`
trains on each table split in twenty other ways, 100 rows checked, to tell how far a difference on a
single table is one of its few test rows. `python -m benchmarks.checked finding`
counts the errors among the 150 most suspicious rows of made-up tables, where the model learns from
the answers as on the review page, and where it does not. `python -m benchmarks.checked sessions`
follows what a review reports while it learns: the smallest and the largest reported number of
errors at 0 to 300 answers, as shares of the truth, for rows that are picked as suspicious, as
informative and at random. Tables are read from `UNFLIP_DATA`
(default `../shared/data`).
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from unflip import (
    CheckedLabels,
    ImportanceReweightingClassifier,
    LabelAudit,
    NoiseRates,
    TransitionMatrix,
    flip_labels,
)
from unflip._utils.estimators import fit_soft_labels
from unflip._utils.validation import check_labels
from unflip.baselines import IRBLClassifier
from unflip.checked._betting import _game, _log_capital
from unflip.checked._counting import estimate
from unflip.checked._draws import Draws
from unflip.checked._error_model import MIN_CHECKED
from unflip.checked._ratios import Ratio, flip_rate, label_error_rate
from unflip.checked.internals import choose_rows, correct, recalibrate

Array = NDArray[Any]

REAL = Path(os.environ.get("UNFLIP_REAL", "../shared/real"))
DATA = Path(os.environ.get("UNFLIP_DATA", "../shared/data"))
TABLES = ("breast-cancer", "diabetis", "german", "heart", "image", "thyroid")
WAYS = ("as before", "put right", "alone", "rates", "IRBL", "checked=")
SPLITS = 20
SESSIONS, BATCH, MOST_ROWS = 1000, 25, 10_000
TARGET = 0.05
"""Half-width of the confidence sequence at which the simulated person stops."""


class World(NamedTuple):
    """A table with a model, and what is true of it."""

    name: str
    given: Array
    true: Array
    label_proba: Array  # the last column: none of the classes


def main() -> None:
    parts: dict[str, Callable[[], None]] = {
        "counting": counting,
        "training": training,
        "splits": splits,
        "finding": finding,
        "sessions": sessions,
    }
    for name in sys.argv[1:] or parts:
        parts[name]()


def counting() -> None:
    print(f"{'':28} share  fixed n=200    n=400  rate n=400  sequence  rows for .02: random  here")
    counted = set()
    for world in worlds():
        # a random sample does not ask the model
        table = world.name.split(",")[0]
        for goal in ("count",) if table in counted else ("random", "count"):
            measured(world, goal)
        counted.add(table)


def worlds() -> Iterator[World]:
    """Yield people's labels, flipped ones, and tables of models that know some, or nothing."""
    for name in ("people", "simulated"):
        if (REAL / f"{name}.npz").exists():
            for network in ("swin", "resnet18"):
                yield network_world(name, network)
    if (REAL / "comments.csv").exists():
        yield comments_world()
    rng = np.random.default_rng(0)
    n = MOST_ROWS
    true = rng.integers(0, 2, n)
    for name, wrong, said in (
        ("calibrated", None, rng.beta(0.3, 3, n)),
        ("knows nothing", rng.random(n) < 0.1, rng.beta(0.3, 3, n)),
        ("half wrong, knows nothing", rng.random(n) < 0.5, rng.beta(0.3, 3, n)),
    ):
        yield made_world(name, true, rng.random(n) < said if wrong is None else wrong, said)
    sharp, seen = rng.beta(0.006, 0.024, n), rng.random(n) < 0.1
    missed = rng.random(n) < 0.01
    yield made_world("sharp", true, rng.random(n) < sharp, sharp)
    yield made_world("rare, knows nothing", true, missed, rng.beta(0.3, 3, n))
    yield made_world("misses one in a hundred", true, seen | missed, np.where(seen, 0.99, 0.0))


def made_world(name: str, true: Array, wrong: Array, said: Array) -> World:
    """Return a table of two classes, some labels wrong, and what a model says of each."""
    given, rows = np.where(wrong, 1 - true, true), np.arange(true.size)
    proba = np.zeros((true.size, 3))
    proba[rows, given], proba[rows, 1 - given] = 1 - said, said
    return World(name, given, true, proba)


def network_world(name: str, network: str) -> World:
    data = np.load(REAL / f"{name}.npz")
    kept = np.random.default_rng(0).choice(len(data["given"]), MOST_ROWS, replace=False)
    proba = data[f"proba_{network}"][kept].astype(float)
    given, true = data["given"][kept].astype(int), data["true"][kept].astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        audit = LabelAudit().fit_posterior(proba / proba.sum(axis=1, keepdims=True), given)
    return World(
        f"{name}, {network}",
        given,
        true,
        np.column_stack([audit.label_proba_, np.zeros(len(kept))]),
    )


def comments_world() -> World:
    _, X, given, true, *_ = next(comments())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        audit = LabelAudit(random_state=0).fit(X, given)
    return World("comments", given, true, np.column_stack([audit.label_proba_, np.zeros(len(X))]))


def measured(world: World, goal: str) -> None:
    """Print coverage and rows needed over many sessions."""
    model = None if goal == "random" else world.label_proba
    share, rate = label_error_rate(world.given), flip_rate(world.given, 0)
    everyone = np.arange(world.given.size)
    truths = [a.sum() / b.sum() for a, b in (r.values(everyone, world.true) for r in (share, rate))]
    covered: dict[str, list[bool]] = {"200": [], "400": [], "rate": [], "sequence": []}
    for seed in range(SESSIONS):
        draws = session(world, goal, 400, seed)
        for n in (200, 400):
            found = estimate([share], first(draws, n), model, 0.95, sequence=False)
            covered[str(n)].append(found.interval[0] <= truths[0] <= found.interval[1])
        found = estimate([rate], draws, model, 0.95, sequence=False)
        covered["rate"].append(found.interval[0] <= truths[1] <= found.interval[1])
        low, high = stopped(share, draws, model)
        covered["sequence"].append(low <= truths[0] <= high)
    shown = {name: f"{100 * np.mean(each):5.1f}" for name, each in covered.items()}
    plain = (1.96 / 0.02) ** 2 * truths[0] * (1 - truths[0])
    plain /= 1 + plain / world.given.size  # drawn without replacement
    needed = needed_rows(world, goal, share, model)
    print(
        f"{world.name:20} {goal:7} {truths[0]:.3f}  {shown['200']:>11}  {shown['400']:>7}"
        f"  {shown['rate']:>10}  {shown['sequence']:>8}  {plain:19.0f}  {needed:4.0f}"
        f"  ({plain / needed:.1f}x)",
        flush=True,
    )


def needed_rows(world: World, goal: str, share: Ratio, model: Array | None) -> float:
    """Return the median number of rows at which the fixed-n interval has a half-width of .02."""
    found = []
    for seed in range(20):
        draws = session(world, goal, min(3000, world.given.size - 1), 10_000 + seed)
        low, high = 10, draws.rows.size
        while high - low > 5:
            middle = (low + high) // 2
            found_here = estimate([share], first(draws, middle), model, 0.95, sequence=False)
            half = found_here.half_width
            low, high = (low, middle) if half <= 0.02 else (middle, high)
        found.append(high)
    return float(np.median(found))


def session(world: World, goal: str, n: int, seed: int) -> Draws:
    """Return the rows that a person checks in one session, drawn in small batches."""
    rng = np.random.RandomState(seed)
    n_rows, n_classes = world.given.size, world.label_proba.shape[1] - 1
    if goal == "random":
        rows = rng.choice(n_rows, n, replace=False)
        return Draws(rows, world.true[rows], np.ones(n), True, n_rows, n_classes)
    nobody = np.empty(0, dtype=np.intp)
    draws = Draws(nobody, nobody, np.empty(0), True, n_rows, n_classes)
    while draws.rows.size < n:
        # small batches at first, where the answers change most
        size = min(n - draws.rows.size, max(BATCH, draws.rows.size // 2))
        picks = choose_rows(goal, size, draws, draws.rows, world.given, world.label_proba, rng)
        rows = np.r_[draws.rows, picks.rows]
        left = n_rows - np.arange(draws.rows.size, rows.size)
        relative = np.r_[draws.relative, picks.probability * left]
        draws = Draws(rows, world.true[rows], relative, True, n_rows, n_classes)
    return draws


def first(draws: Draws, n: int) -> Draws:
    return draws._replace(rows=draws.rows[:n], truth=draws.truth[:n], relative=draws.relative[:n])


def stopped(share: Ratio, draws: Draws, model: Array | None) -> Array:
    """Return the confidence sequence when it is narrow for the first time, or at the end."""
    predicted = np.column_stack(share.expected(model, draws.n_rows))
    values = np.column_stack(share.values(draws.rows, draws.truth))
    game = _game(values, predicted[draws.rows], predicted.mean(axis=0), draws, 1.0)
    grid = np.linspace(0, 1, 201)
    capital = np.maximum.accumulate(_log_capital(grid, game), axis=1).max(axis=0)
    is_open, step = capital < np.log(2 / 0.05), grid[1]
    first = grid[is_open.argmax(axis=1)] - step
    last = grid[grid.size - 1 - is_open[:, ::-1].argmax(axis=1)] + step
    ends = np.clip(np.column_stack([first, last]), 0, 1)
    narrow = np.flatnonzero(ends[:, 1] - ends[:, 0] <= 2 * TARGET)
    return ends[narrow[0] if narrow.size else -1]


def training() -> None:
    print(f"{'':28}" + "".join(f"{name:>11}" for name in WAYS))
    for kind, tables in (("comments", comments), ("rules", by_rules), ("flips", flipped)):
        for n in (100, 300):
            figures = []
            for name, *table in tables():
                figures.append(trained(n, *table).mean(axis=0))
                print(f"{kind + ', ' + name:22} {n:4} " + shown(figures[-1]), flush=True)
            print(f"{kind + ', mean':22} {n:4} " + shown(np.mean(figures, axis=0)), flush=True)


def splits() -> None:
    """Print how far checked= is ahead of the others, with the standard error over the splits."""
    print(f"{'ahead of':28}" + "".join(f"{name:>15}" for name in WAYS[:-1]))
    for kind, tables in (("flips", flipped), ("rules", by_rules)):
        ahead: dict[str, list[Array]] = {}
        for split in range(1, SPLITS + 1):
            for name, *table in tables(split):
                figures = trained(100, *table, n_draws=2).mean(axis=0)
                ahead.setdefault(name, []).append(100 * (figures[-1] - figures[:-1]))
        for name, each in ahead.items():
            error = np.std(each, axis=0, ddof=1) / np.sqrt(SPLITS)
            pairs = zip(np.mean(each, axis=0), error, strict=True)
            line = "".join(f"{mean:+9.1f} ± {wide:3.1f}" for mean, wide in pairs)
            print(f"{kind + ', ' + name:22}  100 {line}", flush=True)


def shown(figures: Array) -> str:
    return "".join(f"{100 * figure:11.1f}" for figure in figures)


def comments() -> Iterator[tuple[Any, ...]]:
    """Yield the comments: 50 components of their words, labels by rules."""
    import pandas as pd

    table = pd.read_csv(REAL / "comments.csv", keep_default_na=False)
    train = table[(table.part == "train") & (table.rules != "")]
    test = table[table.part == "test"]
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2)
    parts = TruncatedSVD(50, random_state=0)
    scaler = StandardScaler()
    X = scaler.fit_transform(parts.fit_transform(words.fit_transform(train.text)))
    X_test = scaler.transform(parts.transform(words.transform(test.text)))
    yield (
        "spam",
        X,
        (train.rules == "spam").to_numpy().astype(int),
        (train.gold == "spam").to_numpy().astype(int),
        X_test,
        (test.gold == "spam").to_numpy().astype(int),
    )


def by_rules(split: int = 0, seed: int = 1) -> Iterator[tuple[Any, ...]]:
    """Yield the tables, labelled by a small tree of three columns, which the seed draws."""
    for name, X, y, X_test, y_test in benchmark_tables(split):
        columns = np.random.default_rng(seed).choice(X.shape[1], min(3, X.shape[1]), replace=False)
        rule = DecisionTreeClassifier(max_depth=2, class_weight="balanced", random_state=0)
        yield name, X, rule.fit(X[:, columns], y).predict(X[:, columns]), y, X_test, y_test


def flipped(split: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield the tables with labels flipped at random."""
    for name, X, y, X_test, y_test in benchmark_tables(split):
        noisy = np.asarray(flip_labels(y, NoiseRates(0.3, 0.1), random_state=split))
        yield name, X, noisy, y, X_test, y_test


def benchmark_tables(split: int = 0) -> Iterator[tuple[Any, ...]]:
    for name in TABLES:
        table = np.genfromtxt(DATA / f"{name}.csv", delimiter=",", skip_header=1)
        y = (table[:, -1] == table[:, -1].max()).astype(int)
        X, X_test, y, y_test = train_test_split(
            table[:, :-1], y, test_size=0.3, random_state=split, stratify=y
        )
        scaler = StandardScaler().fit(X)
        yield name, scaler.transform(X), y, scaler.transform(X_test), y_test


def trained(
    n: int, X: Array, y: Array, true: Array, X_test: Array, y_test: Array, *, n_draws: int = 10
) -> Array:
    """Return test accuracies of each way, for each draw of the checked rows."""
    plain = ImportanceReweightingClassifier(LogisticRegression(max_iter=1000), random_state=0)
    labels = check_labels(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        plain.fit(X, y)
        before = plain.score(X_test, y_test)
        n_checked = min(n, y.size)
        figures = []
        for seed in range(n_draws):
            rows = np.random.default_rng(seed).choice(y.size, n_checked, replace=False)
            checked = CheckedLabels(rows, true[rows], probability=n_checked / y.size)
            right = y.copy()
            right[rows] = true[rows]
            # what fit(X, y, checked=checked) does after the stages, which are the same every time
            corrected = correct(plain.noise_, checked, X)
            here = fit_soft_labels(model(), X, corrected.soft_labels[0], labels.classes)
            rates = checked.rates(y)
            figures.append(
                [
                    before,
                    model().fit(X, right).score(X_test, y_test),
                    model().fit(X[rows], true[rows]).score(X_test, y_test),
                    by_rates(rates).fit(X, y).score(X_test, y_test),
                    IRBLClassifier(model()).fit(X, y, checked=checked).score(X_test, y_test),
                    here.score(X_test, y_test),
                ]
            )
    return np.array(figures)


def finding() -> None:
    for kind in ("flips", "rule", "region"):
        found = np.zeros(2)
        for seed in range(4):
            X, given, true = suspicious_world(kind, seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                audit = LabelAudit(random_state=0).fit(X, given)
            for k, learns in enumerate((False, True)):
                rows = looked_at(audit, X, given, true, learns)
                found[k] += (given != true)[rows].sum()
        print(f"{kind:8} errors in 4 x 150 rows: {found[0]:.0f}, learning {found[1]:.0f}")


def suspicious_world(kind: str, seed: int) -> tuple[Array, Array, Array]:
    """Return rows, given labels and true ones: flipped, partly by a rule, or wrong in a region."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(1500, 20)), rng.normal(size=20) * 3 / np.sqrt(20)
    true = (rng.random(1500) < 1 / (1 + np.exp(-X @ w))).astype(int)
    if kind == "flips":
        return X, np.asarray(flip_labels(true, NoiseRates(0.2, 0.1), random_state=seed)), true
    if kind == "rule":
        by_rule = (X[:, :3] @ w[:3] > 0).astype(int)
        return X, np.where(rng.random(1500) < 0.7, true, by_rule), true
    return X, np.where((X[:, 0] > 0.8) & (rng.random(1500) < 0.7), 1 - true, true), true


def looked_at(audit: LabelAudit, X: Array, given: Array, true: Array, learns: bool) -> list[int]:
    """Return 150 rows, five at a time, the most suspicious first."""
    proba, rows = audit.label_proba_, list[int]()
    while len(rows) < 150:
        suspicion = 1 - proba[np.arange(given.size), given]
        suspicion[rows] = -1
        rows += np.argsort(-suspicion)[:5].tolist()
        if learns and len(rows) >= MIN_CHECKED:
            answers = CheckedLabels(rows, true[rows])
            own, noisy = audit.label_proba_, audit.noisy_proba_
            error_rate = audit.noise_.error_rate
            proba = recalibrate(answers, X, check_labels(given), own, noisy, error_rate)
    return rows


def sessions() -> None:
    print("reported errors / true ones, at 0 to 300 answers")
    for kind in ("separated", "overlapping", "four classes", "flips", "rule", "region"):
        for queue in ("suspicious", "informative", "random"):
            ratios = np.array([reported(kind, queue, seed) for seed in range(2)])
            low, high = ratios[:, 1:].min(), ratios[:, 1:].max()
            print(f"{kind:13} {queue:12} at first {ratios[:, 0]}, then {low:.2f} to {high:.2f}")


def session_world(kind: str, seed: int) -> tuple[Array, Array, Array]:
    """Return rows, given labels and true ones."""
    if kind == "separated":
        X, true = make_classification(
            5000, 15, n_informative=8, class_sep=1.2, flip_y=0, weights=[0.7], random_state=seed
        )
        return X, np.asarray(flip_labels(true, NoiseRates(0.08, 0.02), random_state=seed)), true
    if kind == "overlapping":
        rng = np.random.default_rng(seed)
        X, w = rng.normal(size=(3000, 10)), rng.normal(size=10)
        chance = 1 / (1 + np.exp(-2 * X @ w / np.linalg.norm(w)))
        true = (rng.random(3000) < chance).astype(int)
        return X, np.asarray(flip_labels(true, NoiseRates(0.1, 0.05), random_state=seed)), true
    if kind == "four classes":
        shape = {"n_classes": 4, "n_clusters_per_class": 1, "n_informative": 8, "n_redundant": 0}
        X, true = make_classification(3000, 12, class_sep=1.2, flip_y=0, random_state=seed, **shape)
        noise = TransitionMatrix.uniform(4, 0.09)
        return X, np.asarray(flip_labels(true, noise, random_state=seed)), true
    return suspicious_world(kind, seed)


def reported(kind: str, queue: str, seed: int) -> list[float]:
    """Return the reported number of errors, as a share of the true one, every 30 answers."""
    X, given, true = session_world(kind, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        audit = LabelAudit(random_state=0).fit(X, given)
    own, noisy, all_rows = audit.label_proba_, audit.noisy_proba_, np.arange(given.size)
    chance, wrong = np.random.default_rng(seed).random(given.size), given != true
    proba, rows, ratios = own, list[int](), list[float]()
    for _ in range(11):
        suspicion = 1 - proba[all_rows, given]
        left = np.setdiff1d(all_rows, rows)
        ratios.append((wrong[rows].sum() + suspicion[left].sum()) / wrong.sum())
        information = -(proba * np.log(np.maximum(proba, 1e-12))).sum(axis=1)
        value = {"suspicious": suspicion, "informative": information, "random": chance}[queue]
        rows += left[np.argsort(-value[left], kind="stable")[:30]].tolist()
        answers = CheckedLabels(rows, true[rows])
        proba = recalibrate(
            answers, X, check_labels(given, binary=False), own, noisy, audit.noise_.error_rate
        )
    return np.round(ratios, 2).tolist()


def model() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def by_rates(rates: NoiseRates) -> ImportanceReweightingClassifier:
    return ImportanceReweightingClassifier(model(), posterior="probabilistic", noise_rates=rates)


if __name__ == "__main__":
    main()
