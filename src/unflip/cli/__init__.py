"""The command `unflip`: here its commands and their options; beside it, what each one does.

What a command needs is imported when it runs, so that `unflip --help` is quick.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    import typer
else:
    try:
        import rich  # noqa: F401
        import typer
    except ImportError as error:
        raise ImportError(
            f"the command line needs {error.name}: pip install 'unflip[cli]'"
        ) from error

from unflip import __version__
from unflip.cli import _options as options

app = typer.Typer(no_args_is_help=True, add_completion=True)


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
    """Train classifiers on mislabelled data.

    Exit codes: 0 done; 1 the data do not tell what was asked; 2 bad usage or bad input; 3 a fault
    of unflip; 130 interrupted.
    """


@app.command()
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
    from unflip.cli._demo import demo

    demo(rates, seed, out, force=force, as_json=as_json, quiet=quiet)


@app.command()
def estimate(
    table: options.Table,
    label: options.Label,
    positive: options.Positive = None,
    drop: options.Drop = None,
    identifier: options.Id = None,
    separator: options.Separator = None,
    estimator: options.Estimator = "logistic",
    rates: options.Rates = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Say how often labels are wrong, in which class, and how sure that is."""
    from unflip.cli._estimate import estimate

    source = options.Source(table, label, positive, drop or (), identifier, separator)
    estimate(source, options.Method(estimator, rates, seed), as_json=as_json, quiet=quiet)


@app.command()
def fit(
    table: options.Table,
    label: options.Label,
    out: Annotated[Path, typer.Option(help="File of the model.")] = Path("model.skops"),
    weights: Annotated[
        Path | None, typer.Option(help="Also write what each row counted, as a table.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write the report: .html, .md or .json.")
    ] = None,
    reviewed: Annotated[
        Path | None,
        typer.Option(
            help="Table of labels that a person has checked, with the columns row (counted from "
            "0) and label. They are taken for the truth."
        ),
    ] = None,
    positive: options.Positive = None,
    drop: options.Drop = None,
    identifier: options.Id = None,
    separator: options.Separator = None,
    estimator: options.Estimator = "logistic",
    rates: options.Rates = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a model on noisy labels as if they were clean, and save it."""
    from unflip.cli._fit import fit

    source = options.Source(table, label, positive, drop or (), identifier, separator)
    fit(
        source,
        options.Method(estimator, rates, seed),
        out,
        weights=weights,
        report=report,
        reviewed=reviewed,
        force=force,
        as_json=as_json,
        quiet=quiet,
    )


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="File written by `unflip fit`.")],
    table: options.Table,
    out: Annotated[Path, typer.Option(help="The table with predictions; its ending tells how.")],
    separator: options.Separator = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(
            help="A type that the model may hold, besides those of logistic, boosting and svm: it "
            "may run code. Repeatable."
        ),
    ] = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Add the true label's prediction, and its probabilities, to a table."""
    from unflip.cli._predict import predict

    predict(
        model,
        table,
        out,
        separator=separator,
        trust=trust or (),
        force=force,
        as_json=as_json,
        quiet=quiet,
    )


@app.command()
def audit(
    table: options.Table,
    label: options.Label,
    out: Annotated[
        Path | None,
        typer.Option(help="Table of the suspicious rows, such as audit.csv or audit.parquet."),
    ] = None,
    top: Annotated[int | None, typer.Option(min=1, help="So many rows.")] = None,
    precision: Annotated[
        float | None,
        typer.Option(help="As many rows as there can be while this share of them is wrong."),
    ] = None,
    positive: options.Positive = None,
    drop: options.Drop = None,
    identifier: options.Id = None,
    separator: options.Separator = None,
    rates: options.Rates = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """List the rows whose labels are probably wrong, the surest first, and what they should be.

    With neither --top nor --precision, as many rows as there are expected errors.
    """
    from unflip.cli._audit import audit

    source = options.Source(table, label, positive, drop or (), identifier, separator)
    audit(
        source,
        options.Method("logistic", rates, seed),
        out,
        top=top,
        precision=precision,
        force=force,
        as_json=as_json,
        quiet=quiet,
    )


@app.command()
def review(
    table: options.Table,
    label: options.Label,
    decisions: Annotated[
        Path | None,
        typer.Option(help="File of the decisions.", show_default="TABLE.review.sqlite"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of what is exported.", show_default="TABLE.review-export"),
    ] = None,
    export: Annotated[
        bool, typer.Option("--export", help="Write what was decided, and show no page.")
    ] = False,
    sample: Annotated[
        int, typer.Option(min=1, help="Rows of the random sample that checks the model.")
    ] = 200,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: a free one.")] = 0,
    positive: options.Positive = None,
    drop: options.Drop = None,
    identifier: options.Id = None,
    separator: options.Separator = None,
    rates: options.Rates = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Check labels by hand, on a page on this machine; Ctrl+C ends it, and loses nothing."""
    from unflip.cli._review import review

    source = options.Source(table, label, positive, drop or (), identifier, separator)
    review(
        source,
        options.Method("logistic", rates, seed),
        decisions,
        out,
        only_export=export,
        sample=sample,
        port=port,
        as_json=as_json,
        quiet=quiet,
    )


@app.command()
def flip(
    table: options.Table,
    label: options.Label,
    rates: Annotated[
        str, typer.Option(help="How often to flip the positive and the negative class: 0.3,0.1")
    ],
    out: Annotated[Path, typer.Option(help="The table with flipped labels.")],
    truth: Annotated[
        str | None, typer.Option(help="Keep the true labels in a column of this name.")
    ] = None,
    positive: options.Positive = None,
    separator: options.Separator = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Flip labels of a table at given rates, to try things out where the truth is known."""
    from unflip.cli._flip import flip

    source = options.Source(table, label, positive, (), None, separator)
    flip(source, rates, out, truth=truth, seed=seed, force=force, as_json=as_json, quiet=quiet)


@app.command()
def report(
    table: options.Table,
    label: options.Label,
    out: Annotated[
        Path, typer.Option(help="The page; its ending tells how: .html, .md or .json.")
    ] = Path("report.html"),
    positive: options.Positive = None,
    drop: options.Drop = None,
    identifier: options.Id = None,
    separator: options.Separator = None,
    estimator: options.Estimator = "logistic",
    rates: options.Rates = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Write one page on the labels: how noisy, how sure, which rows, what a model gains."""
    from unflip.cli._report import report

    source = options.Source(table, label, positive, drop or (), identifier, separator)
    method = options.Method(estimator, rates, seed)
    report(source, method, out, force=force, as_json=as_json, quiet=quiet)


@app.command()
def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="Any of table1 to table6, figure1 and levels, or all, which is the default. "
            "table1 and figure1 need no data.",
            autocompletion=options.experiment_names,
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
    force: Annotated[
        bool, typer.Option("--force", help="Discard the runs that the folder holds.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run the paper's experiments again, and set ours beside its figures.

    Finished runs are kept in the folder: interrupted, the same command goes on where it was.
    """
    from unflip.cli._reproduce import reproduce

    reproduce(what or ["all"], repeats, jobs, out, peers=peers, force=force, as_json=as_json)
