"""Options that mean the same in every command."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from unflip._app.tables import LabelledTable
    from unflip._app.workflow import Audited, Learnt

TableFile = Annotated[
    Path,
    typer.Argument(
        help="A table: .csv, .tsv, .parquet, .arrow, .feather, .jsonl or .xlsx; .csv.gz too; "
        "- is CSV from standard input."
    ),
]
Label = Annotated[str, typer.Option(help="Column of the labels.")]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive", "--pos-label", help="Positive class of two; without it, the greater label."
    ),
]
Drop = Annotated[list[str] | None, typer.Option(help="Column that is not a feature. Repeatable.")]
Id = Annotated[
    str | None, typer.Option("--id", help="Column that identifies the rows; it is not a feature.")
]
Separator = Annotated[
    str | None, typer.Option(help="Column separator of a text file, if not a comma or tab.")
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a text file, such as latin-1; without it, UTF-8.")
]
SkipUnlabelled = Annotated[
    bool, typer.Option("--skip-unlabelled", help="Leave out rows without a label.")
]
MergeLabels = Annotated[
    bool,
    typer.Option(
        "--merge-labels", help="Take labels that differ in case, blanks and the like for one."
    ),
]
DropClasses = Annotated[
    list[str] | None, typer.Option(help="Class whose rows are left out. Repeatable.")
]
Estimator = Annotated[
    str,
    typer.Option(
        help="What to train: logistic, boosting, svm, or a class such as "
        "sklearn.ensemble.RandomForestClassifier. Rates do not depend on it: see --posterior.",
        autocompletion=lambda: ["logistic", "boosting", "svm"],
    ),
]
Posterior = Annotated[
    str,
    typer.Option(
        help="What tells which label to expect: auto (the noisy channel), selected, probabilistic, "
        "kde, boosting, or a class; the rates are read off it.",
        autocompletion=lambda: ["auto", "selected", "probabilistic", "kde", "boosting"],
    ),
]
Rates = Annotated[
    str | None,
    typer.Option(
        "--rates",
        "--noise-rates",
        help="Known flip rates of two classes: churned=0.3,stayed=0, or the positive one first: "
        "0.3,0.1. Each may be bounds (0.1:0.3) or unknown (?). Of more classes: a file with a "
        "column for each class, a row for each true class.",
        show_default="estimated",
    ),
]
Proba = Annotated[
    str | None,
    typer.Option(
        "--proba",
        "--pred-probs",
        help="Held-out probabilities of your own model: columns such as p_cat,p_dog, or a .npy or "
        ".parquet file of the same rows.",
    ),
]
Reviewed = Annotated[
    Path | None,
    typer.Option(
        "--reviewed",
        "--checked",
        help="Table of labels that a person has checked, with the columns row (counted from 0) and "
        "label, and probability for rows that were drawn at random. They are taken for the truth.",
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
    encoding: str | None = None
    skip_unlabelled: bool = False
    merge_labels: bool = False
    drop_classes: Sequence[str] | None = None
    proba: str | None = None

    def read(self) -> "LabelledTable":
        """Return the table, split into features and labels."""
        from unflip._app.table_files import read_file
        from unflip._app.tables import clean_labels, split_label

        table = read_file(self.table, separator=self.separator, encoding=self.encoding)
        n_rows = table.values.height
        table = clean_labels(
            table,
            self.label,
            skip_unlabelled=self.skip_unlabelled,
            merge_labels=self.merge_labels,
            drop_classes=self.drop_classes or (),
        )
        n_kept = table.values.height
        if n_kept < n_rows:
            warnings.warn(
                f"{n_rows - n_kept:,} of {n_rows:,} rows are left out, as asked for; rows "
                "are counted without them.",
                stacklevel=2,
            )
        return split_label(
            table,
            self.label,
            drop=self.drop or (),
            identifier=self.identifier,
            learnt_from=self.proba is None,
        )


class Method(NamedTuple):
    """The classifier, the known rates and the seed."""

    estimator: str = "logistic"
    rates: str | None = None
    seed: int = 0
    posterior: str = "auto"

    def learner(self, source: Source, say: Callable[[str], None]) -> "Callable[..., Learnt]":
        """Return :func:`~unflip._app.workflow.learn` with these settings."""
        from unflip._app.workflow import learn, make_estimator, parse_posterior, parse_rates

        return partial(
            learn,
            rates=None if self.rates is None else parse_rates(self.rates),
            estimator=make_estimator(self.estimator),
            posterior=parse_posterior(self.posterior),
            positive=source.positive,
            random_state=self.seed,
            say=say,
        )

    def auditor(self, source: Source, say: Callable[[str], None]) -> "Callable[..., Audited]":
        """Return what audits a table: by a model of its columns, or by the probabilities given."""
        if source.proba is None:
            return self.learner(source, say)
        from unflip._app.held_out import audit_probabilities
        from unflip._app.workflow import parse_rates

        return partial(
            audit_probabilities,
            proba=source.proba,
            rates=None if self.rates is None else parse_rates(self.rates),
            positive=source.positive,
            random_state=self.seed,
            say=say,
        )
