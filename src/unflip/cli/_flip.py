"""`unflip flip`: noise, where the truth is known."""

from pathlib import Path

import numpy as np
import polars as pl

from unflip._files import check_outputs
from unflip.cli._options import Source
from unflip.cli._session import session
from unflip.noise import flip_labels
from unflip.report import plain
from unflip.report._words import percent
from unflip.tables import add_columns, check_ending, write_table
from unflip.workflow import parse_rates, rates_by_class


def flip(
    source: Source,
    rates: str,
    out: Path,
    *,
    truth: str | None,
    seed: int,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Flip the labels of a table, and write it."""
    with session(as_json=as_json, quiet=quiet) as shell:
        check_outputs({"--out": out}, (source.table,), force=force)
        check_ending(out)
        asked = parse_rates(rates)
        if not asked.known:
            raise ValueError(f"--rates {rates!r}: to flip labels, both rates must be numbers.")
        data = source.read()
        by_class, positive = rates_by_class(asked, data.classes, source.positive)
        flipped = flip_labels(data.y, by_class, random_state=seed)
        changed = int(np.sum(flipped != data.y))
        table = data.whole
        if truth is not None:
            table = add_columns(table, {truth: table[source.label].to_list()})
        noisy = pl.Series(source.label, flipped).cast(data.whole[source.label].dtype)
        write_table(table.with_columns(noisy), out)
        shell.result(
            {
                "table": str(out),
                "n_rows": data.y.size,
                "n_flipped": changed,
                "positive_class": positive,
                "noise_rates": {"positive": asked.positive, "negative": asked.negative},
                "seed": seed,
            }
        )
        shell.say(
            f"Flipped {changed:,} of {data.y.size:,} labels ({percent(changed / data.y.size)}); "
            f"the positive class is **{plain(str(positive))}**."
        )
        shell.written(out)
