"""`unflip flip`: noise, where the truth is known."""

from pathlib import Path

import numpy as np

from unflip._app.markup import plain
from unflip._app.tables import add_columns, check_ending, check_writable, write_table
from unflip._app.words import percent
from unflip._app.workflow import parse_rates, rates_by_class
from unflip._files import check_outputs
from unflip.cli._options import Source
from unflip.cli._session import session
from unflip.noise import flip_labels


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
        check_writable(data.whole, out)
        by_class, positive = rates_by_class(asked, data.classes, source.positive)
        flipped = flip_labels(data.y, by_class, random_state=seed)
        changed = int(np.sum(flipped != data.y))
        table = data.whole
        if truth is not None:
            table = add_columns(table, {truth: table[source.label].to_list()})
        # a row of each class stands for it, so that labels of any type keep it
        rows = np.array([np.flatnonzero(data.y == label)[0] for label in data.classes])
        codes = np.searchsorted(data.classes, flipped)
        write_table(table.with_columns(data.whole[source.label][rows[codes]]), out)
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
