"""How the time on a Dask cluster grows with rows, columns and workers, and what more would take.

`python -m benchmarks.dask_scaling [--quick]`: Parquet files of 250 000 rows are read by a
`LocalCluster` of one and of two workers with a thread each, anew in every pass. Timed are
`DaskReweighting.fit`, and the sum of all weights; the fit to the drawn rows, which the client does
alone, is timed apart. At the largest size the rates and the weights are compared with those in
memory. A cost model, CPU seconds = fixed + rows x (a + b x columns), is fitted to what the workers
did, which does not depend on what else the machine does meanwhile; it says what a billion rows of
100 columns would take.
"""

import argparse
import os
import pickle
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from unflip import ImportanceReweightingClassifier, NoiseRates, flip_labels
from unflip.dask import DaskReweighting
from unflip.posterior import ChannelPosterior

Array = NDArray[Any]

BLOCK_ROWS = 250_000
CHANNEL = ChannelPosterior(random_state=0)
RATES = NoiseRates(positive=0.3, negative=0.1)


@dataclass(frozen=True)
class Run:
    """One size on one cluster."""

    n_rows: int
    n_columns: int
    n_workers: int
    fit_seconds: float
    weights_seconds: float
    channel_seconds: float
    cpu_seconds: float
    load: float

    @property
    def pass_seconds(self) -> float:
        """Seconds of all that is done by blocks."""
        return self.fit_seconds - self.channel_seconds + self.weights_seconds


def write_files(n_rows: int, n_columns: int, folder: Path) -> None:
    for block in range(n_rows // BLOCK_ROWS):
        X = np.random.default_rng(block).normal(size=(BLOCK_ROWS, n_columns))
        truth = X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.4
        columns = {f"x{k:03}": column for k, column in enumerate(X.T)}
        columns["label"] = flip_labels(truth, RATES, random_state=block)
        pq.write_table(pa.table(columns), folder / f"{block:05}.parquet", compression="none")


def run(n_rows: int, n_columns: int, n_workers: int, folder: Path) -> tuple[Run, Any, Array]:
    """Return the times, the fitted model and the weights."""
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, memory_limit=0, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        table = dd.read_parquet(folder)
        X, y = table.drop(columns="label"), table["label"]
        # imports and connections are not what is measured
        small = X.partitions[:n_workers], y.partitions[:n_workers]
        client.compute(
            DaskReweighting(noise_rates=RATES).fit(*small).sample_weight(*small)
        ).result()
        cpu = -sum(client.run(time.process_time).values())
        start = time.perf_counter()
        model = DaskReweighting(posterior=CHANNEL).fit(X, y)
        fitted = time.perf_counter()
        total = model.sample_weight(X, y).sum().compute()
        weighed = time.perf_counter()
        cpu += sum(client.run(time.process_time).values())
        weights = model.sample_weight(X, y).compute().to_numpy()
        some = table.partitions[0].compute().iloc[: CHANNEL.max_rows]
        begun = time.perf_counter()
        clone(CHANNEL).fit(some.drop(columns="label"), some["label"])
        channel_seconds = time.perf_counter() - begun
    assert np.isclose(weights.sum(), total)
    times = Run(
        n_rows,
        n_columns,
        n_workers,
        fitted - start,
        weighed - fitted,
        channel_seconds,
        cpu,
        os.getloadavg()[0],
    )
    return times, model, weights


def compare_with_memory(folder: Path, model: Any, weights: Array) -> str:
    table = pq.read_table(folder).to_pandas()
    X, y = table.drop(columns="label"), table["label"]
    expected = ImportanceReweightingClassifier(GaussianNB(), posterior=CHANNEL).fit(X, y)
    apart = float(np.abs(weights - expected.sample_weight_).max())
    return (
        f"rates in memory {expected.noise_rates_}, on the cluster "
        f"{model.noise_rates_}; largest difference of a weight {apart:.1e}"
    )


def cost_model(runs: list[Run]) -> tuple[float, float, float]:
    """Return the workers' CPU seconds: fixed ones, those per row and those per value."""
    design = np.array([[1.0, r.n_rows, r.n_rows * r.n_columns] for r in runs])
    seconds = np.array([r.cpu_seconds for r in runs])
    # relative errors: a long run is not to outvote the short ones
    coef, _ = nnls(design / seconds[:, None], np.ones(len(runs)))
    return float(coef[0]), float(coef[1]), float(coef[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smallest sizes: does it work?")
    arguments = parser.parse_args()
    sizes = [(500_000, 20), (1_000_000, 100), (5_000_000, 20)]
    if arguments.quick:
        sizes = [(500_000, 5), (1_000_000, 5)]
    runs: list[Run] = []
    print("rows x columns, workers: fit (channel), weights, seconds; workers' CPU seconds; load")
    for n_rows, n_columns in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_files(n_rows, n_columns, folder)
            for n_workers in (1, 2):
                times, model, weights = run(n_rows, n_columns, n_workers, folder)
                runs.append(times)
                print(
                    f"{n_rows:.0e} x {n_columns}, {n_workers}: {times.fit_seconds:.1f} "
                    f"({times.channel_seconds:.1f}), {times.weights_seconds:.1f}; "
                    f"{times.cpu_seconds:.1f}; {times.load:.1f}",
                    flush=True,
                )
            if (n_rows, n_columns) == sizes[-1]:
                print(compare_with_memory(folder, model, weights), flush=True)
    n_rows, n_columns = sizes[-1]
    one, two = runs[-2:]
    print(
        f"two workers over one at {n_rows:.0e} x {n_columns}: all "
        f"{(one.fit_seconds + one.weights_seconds) / (two.fit_seconds + two.weights_seconds):.2f} "
        f"times as fast, passes {one.pass_seconds / two.pass_seconds:.2f}"
    )
    print(f"shipped to the workers: {len(pickle.dumps(model.posterior_))} bytes of posterior")
    fixed, per_row, per_value = cost_model(runs)
    print(f"CPU: {fixed:.2f} s + rows x ({per_row:.2e} + {per_value:.2e} x columns) s")
    for times in runs:
        predicted = fixed + times.n_rows * (per_row + per_value * times.n_columns)
        print(f"  measured {times.cpu_seconds:6.1f}, model {predicted:6.1f}")
    for n_workers in (10, 100, 1000):
        seconds = 1e9 / n_workers * (per_row + 100 * per_value)
        print(f"1e9 x 100 on {n_workers} workers: {seconds / 60:.1f} minutes and the channel's fit")


if __name__ == "__main__":
    main()
