"""Options that mean the same in every command, and groups of those that go together."""

import warnings
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import partial, wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from unflip._app.tables import LabelledTable
    from unflip._app.workflow import Audited, Trained

TableFile = Annotated[
    Path,
    typer.Argument(
        help="Table to read: .csv, .tsv, .parquet, .arrow, .feather, .jsonl or .xlsx, text also as "
        ".csv.gz; - reads CSV from standard input."
    ),
]
Label = Annotated[str, typer.Option(help="Name of the label column.")]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive",
        "--pos-label",
        help="Positive class, if there are two classes.",
        show_default="the last in sorted order",
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option(help="Column to leave out of the features. Repeatable.")
]
Id = Annotated[
    str | None, typer.Option("--id", help="Column that identifies the rows; it is not a feature.")
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="Column separator of a text file.", show_default="comma or tab, by the extension"
    ),
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a text file, such as latin-1.", show_default="UTF-8")
]
SkipUnlabelled = Annotated[
    bool, typer.Option("--skip-unlabelled", help="Skip rows without a label.")
]
MergeLabels = Annotated[
    bool,
    typer.Option("--merge-labels", help="Merge labels that differ only in case or whitespace."),
]
DropClasses = Annotated[
    list[str] | None, typer.Option(help="Class whose rows are skipped. Repeatable.")
]
Estimator = Annotated[
    str,
    typer.Option(
        help="Classifier to train: logistic, boosting, svm, or the path of a class such as "
        "sklearn.ensemble.RandomForestClassifier. The noise rates depend on --posterior instead.",
        autocompletion=lambda: ["logistic", "boosting", "svm"],
    ),
]
Posterior = Annotated[
    str,
    typer.Option(
        help="Model of P(observed label | features), from which the noise rates are estimated: "
        "auto (the noise model), selected, probabilistic, kde, boosting, or the path of a class.",
        autocompletion=lambda: ["auto", "selected", "probabilistic", "kde", "boosting"],
    ),
]
Rates = Annotated[
    str | None,
    typer.Option(
        "--rates",
        "--noise-rates",
        help="Known noise rates of two classes, by name (churned=0.3,stayed=0) or the positive "
        "class first (0.3,0.1). A rate may be bounds (0.1:0.3) or unknown (?). For more classes: a "
        "file with a column for each class and a row for each true class.",
        show_default="estimated",
    ),
]
Proba = Annotated[
    str | None,
    typer.Option(
        "--proba",
        "--pred-probs",
        help="Held-out probabilities of your own model: columns of the table such as p_cat,p_dog, "
        "or a .npy or .parquet file with the same rows.",
    ),
]
Reviewed = Annotated[
    Path | None,
    typer.Option(
        "--reviewed",
        "--checked",
        help="Table of checked labels with the columns row (counted from 0), label and, for rows "
        "drawn at random, probability. unflip takes these labels as true.",
    ),
]
Seed = Annotated[int, typer.Option(help="Random seed.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="Print errors only, and the output of --json.")
]


@dataclass(frozen=True)
class Source:
    """The table, and which of its columns are labels and features."""

    table: TableFile
    label: Label
    positive: Positive = None
    drop: Drop = None
    identifier: Id = None
    separator: Separator = None
    encoding: Encoding = None
    skip_unlabelled: SkipUnlabelled = False
    merge_labels: MergeLabels = False
    drop_classes: DropClasses = None

    def read(self, *, check_columns: bool = True) -> "LabelledTable":
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
                f"{n_rows - n_kept:,} of {n_rows:,} rows are skipped, as requested; row numbers "
                "count the remaining rows.",
                stacklevel=2,
            )
        return split_label(
            table,
            self.label,
            drop=self.drop or (),
            identifier=self.identifier,
            check_columns=check_columns,
        )


@dataclass(frozen=True)
class Method:
    """How the noise rates are estimated."""

    posterior: Posterior = "auto"
    rates: Rates = None
    seed: Seed = 0

    def learner(
        self, source: Source, say: Callable[[str], None], estimator: str = "logistic"
    ) -> "Callable[..., Trained]":
        """Return :func:`~unflip._app.workflow.learn` with these settings."""
        from unflip._app.workflow import learn, make_estimator, parse_posterior, parse_rates

        return partial(
            learn,
            rates=None if self.rates is None else parse_rates(self.rates),
            estimator=make_estimator(estimator),
            posterior=parse_posterior(self.posterior),
            positive=source.positive,
            random_state=self.seed,
            say=say,
        )

    def auditor(
        self,
        source: Source,
        say: Callable[[str], None],
        proba: str | None = None,
        estimator: str = "logistic",
    ) -> "Callable[..., Audited]":
        """Return the function that audits a table: by its columns or by held-out probabilities."""
        if proba is None:
            return self.learner(source, say, estimator)
        from unflip._app.held_out import audit_probabilities
        from unflip._app.workflow import parse_rates

        return partial(
            audit_probabilities,
            proba=proba,
            rates=None if self.rates is None else parse_rates(self.rates),
            positive=source.positive,
            random_state=self.seed,
            say=say,
        )


PANELS = {Source: "Table", Method: "Estimate"}
"""Groups of options, and the heading of each in `--help`."""


def with_single_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters are single options, which it passes on in groups."""
    parameters: list[Parameter] = []
    groups: dict[str, Any] = {}
    for name, parameter in signature(function).parameters.items():
        if parameter.annotation not in PANELS:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        group = groups[name] = parameter.annotation
        hints = get_type_hints(group, include_extras=True)
        for field in fields(group):
            default = Parameter.empty if field.default is MISSING else field.default
            single = Parameter(field.name, Parameter.KEYWORD_ONLY, default=default)
            parameters.append(single.replace(annotation=hints[field.name]))

    @wraps(function)
    def command(**values: Any) -> None:
        made = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        function(**made, **values)

    command.__signature__ = signature(function).replace(parameters=parameters)  # type: ignore[attr-defined]
    return command


def panel_of(function: Callable[..., None], option: str) -> str | None:
    """Return the heading under which `--help` shows an option; None: that of the command's own."""
    for parameter in signature(function).parameters.values():
        group = parameter.annotation
        if group in PANELS and option in {field.name for field in fields(group)}:
            return PANELS[group]
    return None
