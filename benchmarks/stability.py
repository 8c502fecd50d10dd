"""How far the rates move when nothing that matters has changed.

`python -m benchmarks.stability` fits the channel to simulated tables, and again with another seed,
with rows shuffled, columns reversed, in single precision and with five copies of each row. Moves
are in units of the interval's width (of 0.02, where it is narrower).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.world_families import World
from unflip import NoiseRates
from unflip.posterior import ChannelPosterior

Array = NDArray[Any]

FAMILIES = (
    "linear", "steep linear", "bumps", "clusters", "waves", "product of two", "tree", "categories",
    "heavy tails", "rare class", "separated", "overlap 12", "checkerboard", "gate", "counts",
)  # fmt: skip
NOISES = ("none", "(.3, .1)")
LEAST_WIDTH = 0.02

CHANGES: dict[str, Callable[[Array, Array], tuple[Array, Array, int | None]]] = {
    "another seed": lambda X, y: (X, y, 1),
    "rows shuffled": lambda X, y: (*_shuffled(X, y), None),
    "columns reversed": lambda X, y: (X[:, ::-1], y, None),
    "single precision": lambda X, y: (X.astype(np.float32), y, None),
    "five copies": lambda X, y: (X.repeat(5, axis=0), y.repeat(5), None),
}


def _shuffled(X: Array, y: Array) -> tuple[Array, Array]:
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def rates_of(channel: ChannelPosterior) -> tuple[float, float]:
    assert isinstance(channel.rates_, NoiseRates)
    return channel.rates_.both()


def main() -> None:
    moves: dict[str, list[float]] = {name: [] for name in CHANGES}
    for family in FAMILIES:
        for noise in NOISES:
            X, _, given = World(family, noise, rows=2000, seed=3).draw()
            before = ChannelPosterior().fit(X, given)
            width = np.maximum(np.diff(before.interval_.both(), axis=1)[:, 0], LEAST_WIDTH)
            for name, change in CHANGES.items():
                rows, labels, seed = change(X, given)
                after = ChannelPosterior(random_state=seed).fit(rows, labels)
                move = np.abs(np.subtract(rates_of(after), rates_of(before))) / width
                moves[name].append(float(move.max()))
            print(f"{family}, {noise} done", flush=True)
    print("\n| change | mean move | largest | above a third |\n|---|---|---|---|")
    for name, found in moves.items():
        above = sum(move > 1 / 3 for move in found)
        print(f"| {name} | {np.mean(found):.2f} | {max(found):.2f} | {above} of {len(found)} |")


if __name__ == "__main__":
    main()
