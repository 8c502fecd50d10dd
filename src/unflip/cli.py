"""The command `unflip`: parse, call, print."""

import json
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    import typer
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn
    from rich.table import Table
else:
    try:
        import typer
        from rich.console import Console
        from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn
        from rich.table import Table
    except ImportError as error:
        raise ImportError(
            f"the command line needs {error.name}: pip install 'unflip[cli]'"
        ) from error

from unflip import __version__
from unflip._validation import check_choice
from unflip.datasets import load_benchmark
from unflip.demo import DemoResult, run_demo
from unflip.experiments import (
    EXPERIMENTS,
    JOURNAL,
    METHOD_NAMES,
    REPEATS,
    Figure,
    Journal,
    Results,
    planned_runs,
    require_matplotlib,
    run_all,
    save_results,
    summarise,
)
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


@app.command()
def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"Any of {', '.join(EXPERIMENTS)}, or all, which is the default. table1 and "
            "figure1 need no data.",
            autocompletion=lambda: [*EXPERIMENTS, "all"],
            show_default=False,
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Random splits of each data set.")] = REPEATS,
    jobs: Annotated[int, typer.Option(help="Processes; -1: one per core.")] = -1,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("reproduction"),
    peers: Annotated[
        bool, typer.Option("--peers", help="Also run cleanlab in tables 4 and 6.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Discard the runs that the folder holds.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures as JSON instead of tables.")
    ] = False,
) -> None:
    """Run the paper's experiments again, and set ours beside its figures.

    Finished runs are kept in the folder: interrupted, the same command goes on where it was.
    """
    asked = what or ["all"]
    names = [name for name in EXPERIMENTS if name in asked or "all" in asked]
    try:
        if jobs == 0:
            raise ValueError("--jobs 0: expected a number of processes, or -1 for one per core.")
        for name in asked:
            check_choice(name, (*EXPERIMENTS, "all"), "experiment")
        _check_parts(names, peers)
        if force:
            (out / JOURNAL).unlink(missing_ok=True)
        journal = Journal(out)
    except (ImportError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(2) from None
    runs = list(planned_runs(names, repeats, peers=peers))
    done = sum(run in journal.outcomes for run in runs)
    console = Console(stderr=as_json)
    try:
        with Progress(
            *Progress.get_default_columns(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        ) as progress:
            bar = progress.add_task(" ".join(asked), total=len(runs), completed=done)
            for _ in run_all(runs, journal, n_jobs=jobs):
                progress.advance(bar)
    except KeyboardInterrupt:
        kept = sum(run in journal.outcomes for run in runs)
        print(
            f"interrupted: {kept} of {len(runs)} runs are kept in {out}. The same command goes on.",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    wanted = set(runs)
    outcomes = {run: outcome for run, outcome in journal.outcomes.items() if run in wanted}
    results = summarise(outcomes, repeats)
    files = save_results(results, repeats, out)
    if as_json:
        print((out / "results.json").read_text(encoding="utf-8"), end="")
        return
    _print_reproduction(console, results)
    console.print(f"Written: {', '.join(path.name for path in files)} in {out}")


def _check_parts(names: list[str], peers: bool) -> None:
    """Raise before any work is done where data or a library is missing."""
    tables = {
        d for name in names if EXPERIMENTS[name].needs_data() for d in EXPERIMENTS[name].datasets
    }
    for dataset in sorted(tables):
        load_benchmark(dataset)
    if {"figure1", "levels"} & set(names):
        require_matplotlib()
    if peers and find_spec("cleanlab") is None:
        raise ImportError("--peers needs cleanlab: pip install cleanlab")


def _print_reproduction(console: Console, results: Results) -> None:
    """Print ours, and the paper's in brackets."""
    for name in results.experiments:
        if name == "levels":
            continue
        experiment, methods = EXPERIMENTS[name], results.methods(name)
        table = Table(title=experiment.title, title_justify="left")
        for heading in ("data", "noise", *(METHOD_NAMES[method] for method in methods)):
            table.add_column(heading, justify="left" if heading in ("data", "noise") else "right")
        for learner in experiment.learners:
            for dataset in experiment.datasets:
                for pair in experiment.pairs:
                    cells = []
                    for method in methods:
                        found = results.of(
                            name,
                            learner=learner,
                            dataset=dataset,
                            rho_pos=pair[0],
                            rho_neg=pair[1],
                            method=method,
                        )
                        cells.append(_beside_the_paper(found))
                    label = learner if len(experiment.learners) > 1 else dataset
                    table.add_row(label, f"{pair[0]:g}, {pair[1]:g}", *cells)
        console.print(table)
        if results.compares_methods(name):
            summaries = results.compare_methods(name)
            console.print(
                "  average rank: "
                + ", ".join(f"{METHOD_NAMES[s.method]} {s.rank:.2f}" for s in summaries)
                + "\n  Wilcoxon p against plain: "
                + ", ".join(
                    f"{METHOD_NAMES[s.method]} {s.p_value:.3f}"
                    for s in summaries
                    if s.p_value is not None
                )
                + "\n  seconds per fit: "
                + ", ".join(f"{METHOD_NAMES[s.method]} {s.seconds:.2f}" for s in summaries)
            )


def _beside_the_paper(figures: list[Figure]) -> str:
    """Return one or two means, and the paper's in brackets."""
    digits = 3 if len(figures) == 2 else 1
    ours = ", ".join(f"{figure.mean:.{digits}f}" for figure in figures)
    papers = ", ".join(f"{f.paper.mean:.{digits}f}" for f in figures if f.paper is not None)
    between = "\n" if len(figures) == 2 else " "
    return f"{ours}{between}({papers})" if papers else ours or "-"


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
