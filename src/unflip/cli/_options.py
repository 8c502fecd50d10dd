"""Options that mean the same in every command."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from unflip._app.tables import LabelledTable
    from unflip._app.workflow import Learnt

TableFile = Annotated[
    Path, typer.Argument(help="A table: .csv, .tsv, .parquet, .arrow, .feather or .jsonl.")
]
Label = Annotated[str, typer.Option(help="Column of the labels.")]
Positive = Annotated[
    str | None, typer.Option(help="Positive class of two; without it, the greater label.")
]
Drop = Annotated[list[str] | None, typer.Option(help="Column that is not a feature. Repeatable.")]
Id = Annotated[
    str | None, typer.Option("--id", help="Column that identifies the rows; it is not a feature.")
]
Separator = Annotated[
    str | None, typer.Option(help="Column separator of a text file, if not a comma or tab.")
]
Estimator = Annotated[
    str,
    typer.Option(
        help="logistic, boosting, svm, or a class such as sklearn.ensemble.RandomForestClassifier.",
        autocompletion=lambda: ["logistic", "boosting", "svm"],
    ),
]
Rates = Annotated[
    str | None,
    typer.Option(
        help="Known flip rates of the positive and the negative class: 0.3,0.1. Each may "
        "be bounds (0.1:0.3) or unknown (?).",
        show_default="estimated",
    ),
]
Reviewed = Annotated[
    Path | None,
    typer.Option(
        help="Table of labels that a person has checked, with the columns row (counted from 0) and "
        "label, and probability for rows that were drawn at random. They are taken for the truth."
    ),
]
Seed = Annotated[int, typer.Option(help="Random seed.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors (and --json).")]


class Source(NamedTuple):
    """The table, and which of its columns are labels and features."""

    table: Path
    label: str
    positive: str | None = None
    drop: Sequence[str] | None = None
    identifier: str | None = None
    separator: str | None = None

    def read(self) -> "LabelledTable":
        """Return the table, split into features and labels."""
        from unflip._app.tables import read_table, split_label

        table = read_table(self.table, separator=self.separator)
        return split_label(table, self.label, drop=self.drop or (), identifier=self.identifier)


class Method(NamedTuple):
    """The classifier, the known rates and the seed."""

    estimator: str = "logistic"
    rates: str | None = None
    seed: int = 0

    def learner(self, source: Source, say: Callable[[str], None]) -> "Callable[..., Learnt]":
        """Return :func:`~unflip._app.workflow.learn` with these settings."""
        from unflip._app.workflow import learn, make_estimator, parse_rates

        return partial(
            learn,
            rates=None if self.rates is None else parse_rates(self.rates),
            estimator=make_estimator(self.estimator),
            positive=source.positive,
            random_state=self.seed,
            say=say,
        )
