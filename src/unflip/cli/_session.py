"""What surrounds a command: progress, notes, words or JSON, and the exit code."""

import json
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from unflip.report._document import ESCAPED
from unflip.workflow import CannotEstimateError


class Session:
    """Where a command prints to.

    Parameters
    ----------
    as_json : bool
        Whether the result goes to stdout as JSON, and nothing else does.
    quiet : bool
        Whether words are left out.
    status : Status
        The line on stderr that says what is being done.
    """

    def __init__(self, *, as_json: bool, quiet: bool, status: Status) -> None:
        self.as_json, self._status = as_json, status
        self._console = Console(highlight=False, quiet=as_json or quiet)

    @property
    def console(self) -> Console:
        """Where words go, once the status line has made room for them."""
        self._status.stop()
        return self._console

    def step(self, words: str) -> None:
        """Say what is being done now."""
        self._status.update(f"{words} ...")

    def say(self, sentence: str = "", *, item: bool = False) -> None:
        """Print a sentence, or an item of a list, in which **bold** is bold."""
        if not item:
            self.console.print(_styled(sentence))
            return
        hanging = Table.grid(padding=(0, 1))
        hanging.add_row("  -", _styled(sentence))
        self.console.print(hanging)

    def result(self, values: dict[str, Any]) -> None:
        """Print the result where JSON is asked for."""
        if self.as_json:
            self._status.stop()
            print(json.dumps(values, indent=2, ensure_ascii=False))

    def written(self, *paths: Path | None) -> None:
        """Say which files there are now."""
        names = [str(path) for path in paths if path is not None]
        if names:
            self.console.print(Text(f"Written: {', '.join(names)}"))


@contextmanager
def session(*, as_json: bool, quiet: bool) -> Iterator[Session]:
    """Run a command's body: errors become one message on stderr and an exit code."""
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    code = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            # drawn on terminals only; in files and pipes it leaves no trace
            with Console(stderr=True, quiet=quiet).status("reading ...") as status:
                yield Session(as_json=as_json, quiet=quiet, status=status)
        except CannotEstimateError as error:
            code = 1
            errors.print(Text(f"cannot be estimated: {error}"))
        except (ImportError, OSError, ValueError) as error:
            code = 2
            errors.print(Text(f"error: {_in_words(error)}"))
        except KeyboardInterrupt:
            code = 130
            errors.print("interrupted: no file was left half-written.")
    if not quiet:
        for words in dict.fromkeys(str(warning.message) for warning in caught):
            errors.print(Text(f"note: {words}"))
    if code:
        raise typer.Exit(code)


def command_line() -> str:
    """Return the command as it was given."""
    return shlex.join(["unflip", *sys.argv[1:]])


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}. No file was left half-written."
    return str(error)


def _styled(sentence: str) -> Text:
    """Return marked text for the terminal: bold where it is bold, marks of data as they are."""
    line = Text()
    for k, part in enumerate(re.split(r"(?<!\\)\*\*", sentence)):
        line.append(ESCAPED.sub(r"\1", part), "bold" if k % 2 else "")
    return line
