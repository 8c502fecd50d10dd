"""The context of a command: progress, output as text or JSON, and exit code."""

import io
import json
import os
import re
import shlex
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import IO

import typer
from polars.exceptions import PanicException
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from unflip._app.markup import ESCAPED, rounded
from unflip._app.workflow import CannotEstimateError
from unflip._utils.progress import heard
from unflip._utils.typing import Record
from unflip.diagnostics import LabelNoiseWarning


class Session:
    """The output of a command."""

    def __init__(self, *, as_json: bool, quiet: bool, progress: Progress, out: IO[str]) -> None:
        self.as_json, self.out, self._progress = as_json, out, progress
        self._task = progress.add_task("reading ...", total=1.0)
        self._console = Console(file=out, highlight=False, quiet=as_json or quiet)
        self.known: set[str] = set()

    @property
    def console(self) -> Console:
        """The console, after removing the progress line."""
        self._make_room()
        return self._console

    def _make_room(self) -> None:
        if not self._progress.disable:  # rich before 14.3 would print an empty line
            self._progress.stop()

    def step(self, words: str) -> None:
        """Show the current step on the progress line."""
        self._progress.update(self._task, description=f"{words} ...")

    def done(self, share: float) -> None:
        """Show the share of the work that is done."""
        self._progress.update(self._task, completed=share)

    def say(self, sentence: str = "", *, item: bool = False) -> None:
        """Print a sentence or list item with **bold** parts."""
        if not item:
            self.console.print(_styled(sentence))
            return
        hanging = Table.grid(padding=(0, 1))
        hanging.add_row("  -", _styled(sentence))
        self.console.print(hanging)

    def told(self, sentences: Iterable[str]) -> None:
        """Do not repeat these sentences as notes on stderr, unless stdout is JSON."""
        if not self.as_json:
            self.known.update(sentences)

    def result(self, values: Record) -> None:
        """Print the result if --json is given."""
        if self.as_json:
            self._make_room()
            for line in json.dumps(rounded(values), indent=2, ensure_ascii=False).split("\n"):
                print(_escaped(line, lambda char: json.dumps(char)[1:-1]), file=self.out)

    def written(self, *paths: Path | None) -> None:
        """Print the names of the written files."""
        names = [str(path) for path in paths if path is not None]
        if names:
            self.console.print(Text(visible(f"Written: {', '.join(names)}")))


@contextmanager
def session(*, as_json: bool, quiet: bool) -> Iterator[Session]:
    """Run a command's body: errors become one message on stderr and an exit code."""
    code, known = 0, set[str]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # for library authors
        try:
            with _progress_line(quiet=quiet) as progress:
                shell = Session(as_json=as_json, quiet=quiet, progress=progress, out=sys.stdout)
                known = shell.known
                with heard(shell.done), redirect_stdout(io.StringIO() if quiet else sys.stderr):
                    yield shell  # output of other estimators is not part of the result
        except CannotEstimateError as error:
            code = 1
            complain(f"cannot be estimated: {error}")
        except (ImportError, OSError, ValueError) as error:
            code = 2
            complain(f"error: {_in_words(error)}")
        except MemoryError:
            code = 2
            complain("error: not enough memory for this table. Use fewer rows.")
        except KeyboardInterrupt:
            code = 130
            complain("interrupted: no file is incomplete.")
        except (Exception, PanicException) as error:
            if os.environ.get(DEBUG):
                raise
            code = 3
            reason = str(error).strip().split("\n")[0]
            complain(
                f"a bug in unflip: {type(error).__name__}: {reason} (please report it with the "
                f"output of the same command after setting {DEBUG}=1)"
            )
    if not quiet:
        # without an estimate, the error says more than warnings about the estimate
        noted = [
            one.message
            for one in caught
            if code != 1 or not issubclass(one.category, LabelNoiseWarning)
        ]
        for words in dict.fromkeys(
            one.sentence if isinstance(one, LabelNoiseWarning) else str(one) for one in noted
        ):
            if words not in known:
                complain(f"note: {words}")
    if code:
        raise typer.Exit(code)


@contextmanager
def _progress_line(*, quiet: bool) -> Iterator[Progress]:
    """Show progress on stderr if it is a terminal."""
    console = Console(stderr=True)
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )
    with nullcontext() if progress.disable else progress:
        yield progress


DEBUG = "UNFLIP_DEBUG"
"""Environment variable that shows the traceback of an internal error."""


def complain(words: str) -> None:
    """Print lines on stderr, with control characters escaped."""
    shown = "\n".join(visible(line) for line in words.split("\n"))
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(shown))


def command_line() -> str:
    """Return the command line."""
    return visible(shlex.join(["unflip", *sys.argv[1:]]))


def visible(text: str) -> str:
    r"""Return text with control characters escaped, such as `\x1b`, which terminals would obey.

    Bytes of file names that are not UTF-8 are escaped too.

    Examples
    --------
    >>> from unflip.cli._session import visible
    >>> print(visible("caf\xe9 \x1b[31m"))
    café \x1b[31m
    """
    return _escaped(text, _written_out)


HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories of invisible characters that affect the terminal or adjacent text."""


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    if text.isprintable():
        return text
    return "".join(escape(c) if unicodedata.category(c) in HIDDEN else c for c in text)


def _written_out(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte of a file name
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode()


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}. No file is incomplete."
    return str(error)


def _styled(sentence: str) -> Text:
    """Return marked text for the terminal, with data shown literally."""
    line = Text()
    for k, part in enumerate(re.split(r"(?<!\\)\*\*", sentence)):
        line.append(visible(ESCAPED.sub(r"\1", part)), "bold" if k % 2 else "")
    return line
