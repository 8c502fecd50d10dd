"""Parallel runs, each stored as soon as it is finished, so that none is repeated."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Self

import numpy as np
from joblib import Parallel, delayed

from unflip import __version__
from unflip._utils.files import write_whole
from unflip._utils.typing import Record
from unflip.paper.experiments._choices import stated_choices
from unflip.paper.experiments._protocol import Outcome, Run, perform

JOURNAL = "runs.jsonl"


class Journal:
    """The finished runs of a folder, one line of JSON each; an interruption loses at most one.

    The first line holds the version and the choices of the runs. A journal with another version or
    other choices raises an error, so that a table never mixes them.

    Parameters
    ----------
    folder : Path
        The folder of `runs.jsonl`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from unflip.paper.experiments import Journal
    >>> with TemporaryDirectory() as folder:
    ...     len(Journal(Path(folder)).outcomes)
    0
    """

    def __init__(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"{folder} is a file, expected a folder. Choose another.")
        self.path = folder / JOURNAL
        self.outcomes: dict[Run, Outcome] = {}
        self._header = {"unflip": __version__, "choices": stated_choices()}
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        complete, _, partial = self.path.read_text().rpartition("\n")
        try:
            records = [json.loads(line) for line in complete.splitlines()]
        except ValueError as error:
            raise ValueError(
                f"{self.path} is not a journal of runs ({error}). Choose another folder, or "
                "overwrite it (--force)."
            ) from error
        if records and records[0] != self._header:
            raise ValueError(
                f"{self.path} holds runs of another version or with other choices. "
                "Choose another folder, or overwrite it (--force)."
            )
        for record in records[1:]:
            self.outcomes[Run(**record["run"])] = Outcome(**record["outcome"])
        if partial:  # an interrupted write
            write_whole(self.path, complete + "\n" if complete else "")

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        empty = not self.path.exists() or not self.path.stat().st_size
        self._file = self.path.open("a")
        if empty:
            self._append(self._header)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, run: Run, outcome: Outcome) -> None:
        """Store a finished run."""
        self._append({"run": asdict(run), "outcome": asdict(outcome)})
        self.outcomes[run] = outcome

    def _append(self, record: Record) -> None:
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()


def run_all(runs: Iterable[Run], journal: Journal, *, n_jobs: int = -1) -> Iterator[Run]:
    """Perform the runs missing in the journal, and yield each once it is stored.

    Parameters
    ----------
    runs : iterable of Run
        The requested runs.
    journal : Journal
        The finished runs.
    n_jobs : int, default=-1
        Number of processes, one thread each; -1: one per core.

    Yields
    ------
    Run
        In the order finished.
    """
    missing = [run for run in runs if run not in journal.outcomes]
    # shuffled, so that progress predicts the remaining time
    order = np.random.default_rng(0).permutation(len(missing))
    threads = (
        {} if n_jobs == 1 else {"inner_max_num_threads": 1}
    )  # joblib accepts it only with other processes
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", **threads)
    with journal:
        for run, outcome in parallel(delayed(_run_and_outcome)(missing[k]) for k in order):
            journal.add(run, outcome)
            yield run


def _run_and_outcome(run: Run) -> tuple[Run, Outcome]:
    return run, perform(run)
