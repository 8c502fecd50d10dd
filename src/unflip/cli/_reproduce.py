"""`unflip reproduce`: the paper's experiments, with its results beside ours."""

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from unflip._utils.validation import check_choice
from unflip.cli import _options as options
from unflip.cli._session import complain, visible
from unflip.datasets import load_benchmark
from unflip.paper.experiments import (
    EXPERIMENTS,
    JOURNAL,
    METHOD_NAMES,
    REPEATS,
    Journal,
    Measurement,
    Results,
    Run,
    planned_runs,
    require_matplotlib,
    run_all,
    save_results,
    summarise,
)


def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="table1 to table6, figure1, levels, or all (default). table1 and figure1 need no "
            "data.",
            autocompletion=lambda: [*EXPERIMENTS, "all"],
            show_default=False,
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="Random splits of each data set.", show_default="the paper's 10"),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1: one per core.")] = -1,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("reproduction"),
    peers: Annotated[
        bool, typer.Option("--peers", help="Also run cleanlab in tables 4 and 6.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Discard the runs in the folder.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run the paper's experiments and compare the results.

    Finished runs are stored in the folder, so that the same command continues after an
    interruption.
    """
    asked, repeats = what or ["all"], REPEATS if repeats is None else repeats
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
        complain(str(error))
        raise typer.Exit(2) from None
    runs = list(planned_runs(names, repeats, peers=peers))
    console = Console(stderr=as_json)
    _run_with_progress(runs, journal, jobs, " ".join(asked), console)
    wanted = set(runs)
    outcomes = {run: outcome for run, outcome in journal.outcomes.items() if run in wanted}
    results = summarise(outcomes, repeats)
    files = save_results(results, repeats, out)
    if as_json:
        print((out / "results.json").read_text(encoding="utf-8"), end="")
        return
    _print_reproduction(console, results)
    written = f"Written: {', '.join(path.name for path in files)} in {out}"
    console.print(Text(visible(written)))


def _run_with_progress(
    runs: Sequence[Run], journal: Journal, jobs: int, title: str, console: Console
) -> None:
    """Perform the runs that are not in the journal."""
    done = sum(run in journal.outcomes for run in runs)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console) as progress:
            bar = progress.add_task(title, total=len(runs), completed=done)
            for _ in run_all(runs, journal, n_jobs=jobs):
                progress.advance(bar)
    except KeyboardInterrupt:
        kept = sum(run in journal.outcomes for run in runs)
        complain(
            f"interrupted: {journal.path.parent} holds {kept} of {len(runs)} runs. Run the same "
            "command to continue."
        )
        raise typer.Exit(130) from None


def _check_parts(names: list[str], peers: bool) -> None:
    """Raise an error, before any work, if data or a library is missing."""
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
    """Print our results, with the paper's in brackets."""
    for name in results.experiments:
        if name == "levels":
            continue
        experiment, methods = EXPERIMENTS[name], results.methods(name)
        table = Table(title=experiment.title, title_justify="left")
        for heading in ("data", "noise", *(METHOD_NAMES[method] for method in methods)):
            table.add_column(heading, justify="left" if heading in ("data", "noise") else "right")
        for learner, dataset, pair in product(
            experiment.learners, experiment.datasets, experiment.pairs
        ):
            run = {"learner": learner, "dataset": dataset, "rho_pos": pair[0], "rho_neg": pair[1]}
            cells = [_beside_the_paper(results.of(name, **run, method=each)) for each in methods]
            label = learner if len(experiment.learners) > 1 else dataset
            table.add_row(label, f"{pair[0]:g}, {pair[1]:g}", *cells)
        console.print(table)
        if results.compares_methods(name):
            found = {METHOD_NAMES[one.method]: one for one in results.compare_methods(name)}
            lines = {
                "average rank": [f"{each} {one.rank:.2f}" for each, one in found.items()],
                "Wilcoxon p against plain": [
                    f"{each} {one.p_value:.3f}"
                    for each, one in found.items()
                    if one.p_value is not None
                ],
                "seconds per fit": [f"{each} {one.seconds:.2f}" for each, one in found.items()],
            }
            for title, figures in lines.items():
                console.print(f"  {title}: {', '.join(figures)}")


def _beside_the_paper(measurements: list[Measurement]) -> str:
    """Return one or two means, with the paper's in brackets."""
    digits = 3 if len(measurements) == 2 else 1
    ours = ", ".join(f"{entry.mean:.{digits}f}" for entry in measurements)
    papers = ", ".join(
        f"{entry.paper.mean:.{digits}f}" for entry in measurements if entry.paper is not None
    )
    between = "\n" if len(measurements) == 2 else " "
    return f"{ours}{between}({papers})" if papers else ours or "-"
