"""`unflip flip`: add label noise to a table with known labels."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from unflip._app.markup import plain
from unflip._app.table_files import check_ending, check_writable, write_table
from unflip._app.tables import add_columns
from unflip._app.workflow import known_rates
from unflip._utils.files import check_outputs
from unflip._utils.typing import Record
from unflip.cli import _options as options
from unflip.cli._session import session
from unflip.diagnostics import percent
from unflip.noise import NoiseRates, as_transition_matrix, flip_labels


def flip(
    table: options.TableFile,
    label: options.Label,
    rates: Annotated[
        str,
        typer.Option(
            help="Noise rates of two classes, by name (churned=0.3,stayed=0) or the positive class "
            "first (0.3,0.1). For more classes: a file with a column for each class and a row for "
            "each true class."
        ),
    ],
    out: Annotated[Path, typer.Option(help="File to write the table with flipped labels to.")],
    truth: Annotated[
        str | None, typer.Option(help="Name of an added column with the true labels.")
    ] = None,
    positive: options.Positive = None,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Flip labels in a table at given rates, to try unflip where the true labels are known."""
    source = options.Source(table, label, positive, separator=separator, encoding=encoding)
    with session(as_json=as_json, quiet=quiet) as shell:
        check_outputs({"--out": out}, (table,), force=force)
        check_ending(out)
        data = source.read()
        whole = data.for_format(out)
        check_writable(whole, out)
        by_class, positive_class = known_rates(rates, data.classes, positive)
        noise = as_transition_matrix(by_class)
        flipped = flip_labels(data.y, by_class, random_state=seed)
        changed = int(np.sum(flipped != data.y))
        if truth is not None:
            whole = add_columns(whole, {truth: whole[label]})
        rows = data.relabelled(np.searchsorted(data.classes, flipped))
        write_table(whole.with_columns(whole[label][rows]), out)
        shell.result(
            {
                "table": str(out),
                "n_rows": data.y.size,
                "n_flipped": changed,
                "positive_class": positive_class,
                "noise_rates": None
                if positive_class is None
                else _two_rates(noise.rates, positive_class == data.classes[0]),
                "transition_matrix": noise.matrix.tolist(),
                "seed": seed,
            }
        )
        named = f"; the positive class is **{plain(str(positive_class))}**"
        shell.say(
            f"Flipped {changed:,} of {data.y.size:,} labels ({percent(changed / data.y.size)})"
            f"{named if positive_class is not None else ''}."
        )
        shell.written(out)


def _two_rates(rates: NoiseRates, swapped: bool) -> Record:
    """Return the rates of two classes, that of the class asked for first."""
    named = rates.swapped() if swapped else rates
    return {"positive": named.positive, "negative": named.negative}
