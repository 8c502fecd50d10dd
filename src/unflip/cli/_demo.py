"""`unflip demo`: the method on a bundled table."""

from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unflip._app.table_files import check_ending, write_table
from unflip._app.workflow import known_rates
from unflip._utils.files import check_outputs
from unflip._utils.progress import tick, work
from unflip._utils.typing import Array, Record
from unflip._utils.warning import silenced
from unflip.cli import _options as options
from unflip.cli._session import session
from unflip.noise import NoiseRates, as_transition_matrix, flip_labels
from unflip.reweighting import ImportanceReweightingClassifier

N_SPLITS = 10
"""Number of random 75/25 splits that the demonstration averages."""


def demo(
    rates: Annotated[
        str, typer.Option(help="Noise rates of the positive and the negative class.")
    ] = "0.3,0.1",
    out: Annotated[
        Path | None,
        typer.Option(help="Also write the table with its true labels, to try other commands."),
    ] = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Flip labels in a bundled table, then train on them with and without reweighting."""
    with session(as_json=as_json, quiet=quiet) as shell:
        check_outputs({"--out": out}, force=force)
        if out is not None:
            check_ending(out)
        bunch = load_breast_cancer()
        y = bunch.target_names[bunch.target]
        noise, _ = known_rates(rates, np.unique(y), None)
        if out is not None:
            names = [name.replace(" ", "_") for name in bunch.feature_names.tolist()]
            table = pl.DataFrame(bunch.data, schema=names)
            write_table(table.with_columns(pl.Series("diagnosis", y.tolist())), out)
            if quiet and not as_json:  # nothing but the table is asked for
                return
        shell.step("flipping labels and training models")
        result = _train(bunch.data, y, as_transition_matrix(noise).rates, seed)
        shell.result(result)
        _print(shell.console, result)
        shell.written(out)


def _train(X: Array, y: Array, rates: NoiseRates, seed: int) -> Record:
    """Return noise rates and accuracies on clean test labels, averaged over the splits."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    reweighted = ImportanceReweightingClassifier(model)
    generator = np.random.RandomState(seed)
    estimates, scores = [], []
    with work(N_SPLITS):
        for _ in range(N_SPLITS):
            X_train, X_test, y_train, y_test = train_test_split(
                X, y, stratify=y, random_state=generator
            )
            y_noisy = flip_labels(y_train, rates, random_state=generator)
            with silenced():  # only the mean over the splits is shown
                reweighted.fit(X_train, y_noisy)
            estimates.append(as_transition_matrix(reweighted.noise_rates_).rates.both())
            scores.append(
                (
                    model.fit(X_train, y_noisy).score(X_test, y_test),
                    reweighted.score(X_test, y_test),
                    model.fit(X_train, y_train).score(X_test, y_test),
                )
            )
            tick()
    names = ("labels_as_they_are", "reweighted", "clean_labels")
    return {
        "true_rates": dict(zip(("positive", "negative"), rates.both(), strict=True)),
        "estimated_rates": dict(
            zip(("positive", "negative"), np.mean(estimates, axis=0).tolist(), strict=True)
        ),
        **dict(zip(names, np.mean(scores, axis=0).tolist(), strict=True)),
        "n_rows": len(y),
        "n_splits": N_SPLITS,
    }


def _print(console: Console, result: Record) -> None:
    true, estimated = result["true_rates"], result["estimated_rates"]
    rates = Table(title="Noise rates", title_justify="left")
    for heading in ("class", "true", "estimated"):
        rates.add_column(heading, justify="left" if heading == "class" else "right")
    for name, label in (("positive", "malignant"), ("negative", "benign")):
        rates.add_row(f"{name} ({label})", f"{true[name]:.2f}", f"{estimated[name]:.2f}")
    accuracy = Table(title="Accuracy on clean test labels", title_justify="left")
    accuracy.add_column("trained on")
    accuracy.add_column("accuracy", justify="right")
    accuracy.add_row("noisy labels as they are", f"{result['labels_as_they_are']:.1%}")
    accuracy.add_row("noisy labels, reweighted", f"[bold]{result['reweighted']:.1%}[/bold]")
    accuracy.add_row("clean labels", f"{result['clean_labels']:.1%}")
    console.print(
        f"\nBreast-cancer table ({result['n_rows']} rows) with flipped training labels. Logistic "
        f"regression, mean of {result['n_splits']} random 75/25 splits; the noise rates are "
        "estimated from the noisy labels alone.\n"
    )
    console.print(rates, "", accuracy, "", sep="\n")
