"""The command `unflip`: parse, call, print."""

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    import typer
    from rich.console import Console
    from rich.table import Table
else:
    try:
        import typer
        from rich.console import Console
        from rich.table import Table
    except ImportError as error:
        raise ImportError(
            f"the command line needs {error.name}: pip install 'unflip[cli]'"
        ) from error

from unflip import __version__
from unflip.demo import DemoResult, run_demo
from unflip.noise import NoiseRates

app = typer.Typer(
    help="Train classifiers on mislabelled data.", no_args_is_help=True, add_completion=True
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"unflip {__version__}")
        raise typer.Exit


@app.callback()
def unflip(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Train classifiers on mislabelled data."""


@app.command()
def demo(
    rates: Annotated[
        str, typer.Option(help="Flip rates of the positive and the negative class.")
    ] = "0.3,0.1",
    seed: Annotated[int, typer.Option(help="Seed of splits and flips.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Flip the labels of a bundled table, then learn from them with and without reweighting."""
    true_rates = _parse_rates(rates)
    if as_json:
        print(json.dumps(asdict(run_demo(true_rates, random_state=seed)), indent=2))
        return
    console = Console()
    with console.status("flipping labels and learning from them ..."):
        result = run_demo(true_rates, random_state=seed)
    _print_demo(console, result)


def _parse_rates(text: str) -> NoiseRates:
    """Read "0.3,0.1" as the positive and the negative rate; exit with 2 where it is not that."""
    try:
        positive, negative = (float(part) for part in text.split(","))
        return NoiseRates(positive=positive, negative=negative)
    except ValueError as error:
        print(f"--rates {text!r}: expected two numbers such as 0.3,0.1 ({error})", file=sys.stderr)
        raise typer.Exit(2) from None


def _print_demo(console: Console, result: DemoResult) -> None:
    true, estimated = result.true_rates.both(), result.estimated_rates.both()
    rates = Table(title="How often labels are flipped", title_justify="left")
    for heading in ("class", "true", "estimated"):
        rates.add_column(heading, justify="left" if heading == "class" else "right")
    rates.add_row("positive (benign)", f"{true[0]:.2f}", f"{estimated[0]:.2f}")
    rates.add_row("negative (malignant)", f"{true[1]:.2f}", f"{estimated[1]:.2f}")
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
