"""`unflip demo`: the method on a bundled table."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer

from unflip._app.demo import DemoResult, run_demo
from unflip._app.table_files import check_ending, write_table
from unflip._app.workflow import parse_rates
from unflip._utils.files import check_outputs
from unflip.cli import _options as options
from unflip.cli._session import session
from unflip.noise import NoiseRates


def demo(
    rates: Annotated[
        str, typer.Option(help="Flip rates of the positive and the negative class.")
    ] = "0.3,0.1",
    out: Annotated[
        Path | None,
        typer.Option(help="Also write the table, with its true labels, to try commands on."),
    ] = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Flip the labels of a bundled table, then learn from them with and without reweighting."""
    with session(as_json=as_json, quiet=quiet) as shell:
        check_outputs({"--out": out}, force=force)
        if out is not None:
            check_ending(out)
        true_rates = parse_rates(rates)
        if not isinstance(true_rates, NoiseRates) or not true_rates.known:
            raise ValueError(
                f"--rates {rates!r}: to flip labels, give two numbers such as 0.4,0.1."
            )
        if out is not None:
            write_table(_bundled_table(), out)
            if quiet and not as_json:  # the table is all that is asked for
                return
        shell.step("flipping labels and learning from them")
        result = run_demo(true_rates, random_state=seed)
        shell.result(asdict(result))
        _print_demo(shell.console, result)
        shell.written(out)


def _bundled_table() -> pl.DataFrame:
    """Return the demonstration's rows and true labels."""
    bunch = load_breast_cancer()
    names = [name.replace(" ", "_") for name in bunch.feature_names.tolist()]
    table = pl.DataFrame(bunch.data, schema=names)
    return table.with_columns(pl.Series("diagnosis", bunch.target_names[bunch.target].tolist()))


def _print_demo(console: Console, result: DemoResult) -> None:
    true, estimated = result.true_rates.both(), result.estimated_rates.both()
    rates = Table(title="How often labels are flipped", title_justify="left")
    for heading in ("class", "true", "estimated"):
        rates.add_column(heading, justify="left" if heading == "class" else "right")
    rates.add_row("positive (malignant)", f"{true[0]:.2f}", f"{estimated[0]:.2f}")
    rates.add_row("negative (benign)", f"{true[1]:.2f}", f"{estimated[1]:.2f}")
    accuracy = Table(title="Accuracy on clean test labels", title_justify="left")
    accuracy.add_column("trained on")
    accuracy.add_column("accuracy", justify="right")
    accuracy.add_row("noisy labels, as they are", f"{result.labels_as_they_are:.1%}")
    accuracy.add_row("noisy labels, reweighted", f"[bold]{result.reweighted:.1%}[/bold]")
    accuracy.add_row("clean labels", f"{result.clean_labels:.1%}")
    console.print(
        f"\nBreast-cancer table ({result.n_rows} rows), training labels flipped. Logistic "
        f"regression,\nmean of {result.n_splits} random 75/25 splits; rates estimated from the "
        "noisy labels alone.\n"
    )
    console.print(rates)
    console.print()
    console.print(accuracy)
    console.print()
