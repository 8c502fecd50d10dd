"""The command `unflip`: its commands by name, each in the module of that name beside this one.

A command's module is imported when it runs, so that `unflip --help` is quick.
"""

from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

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

from typer.core import TyperCommand, TyperGroup

from unflip import __version__

COMMANDS = {
    "demo": "Flip labels of a bundled table, and learn from them.",
    "estimate": "Say how often labels are wrong, and how sure that is.",
    "fit": "Train a model on noisy labels, and save it.",
    "predict": "Add a model's predictions to a table.",
    "audit": "List the rows whose labels are probably wrong.",
    "review": "Check labels by hand, on a page on this machine.",
    "flip": "Flip labels of a table at given rates.",
    "report": "Write one page on the labels of a table.",
    "reproduce": "Run the paper's experiments again.",
}
"""The registry: for `unflip --help`, what the function `name` of the module `_name` does."""


class LazyGroup(TyperGroup):
    """Commands of which `--help` knows the names only; the one that runs is imported."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that was asked for, and return it."""
        if args[0] in COMMANDS:
            self.add_command(load_command(args[0]), args[0])
        return super().resolve_command(ctx, args)


class StrictCommand(TyperCommand):
    """A command that refuses an option of one value that is given twice."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments; without this check the last value would be taken silently."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        counts = Counter(
            each.opts[0]
            for each in given
            if not (each.multiple or getattr(each, "is_flag", True))  # arguments are no flags
        )
        for name, count in counts.items():
            if count > 1:
                ctx.fail(f"{name} is given {count} times, and takes one value.")
        return super().parse_args(ctx, args)


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, add_completion=True)


def load_command(name: str) -> Any:
    """Return a command, with the options of its function; its `callback` is that function."""
    single = typer.Typer(add_completion=False)
    single.command(name, cls=StrictCommand)(getattr(import_module(f"unflip.cli._{name}"), name))
    return typer.main.get_command(single)


def _not_imported() -> None:
    """Stand for a command in the list of all."""


for _name, _line in COMMANDS.items():
    app.command(_name, short_help=_line)(_not_imported)


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
