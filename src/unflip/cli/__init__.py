"""The command `unflip`. Each of its commands is a module here, imported when the command runs."""

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
from unflip.cli._options import panel_of, with_single_options

COMMANDS = {
    "demo": "Flip labels in a bundled table and learn from them.",
    "estimate": "Estimate how many labels are wrong, with intervals.",
    "fit": "Train a model on noisy labels and save it.",
    "predict": "Add a model's predictions to a table.",
    "audit": "List the rows whose labels are probably wrong.",
    "review": "Check labels by hand on a local web page.",
    "flip": "Flip labels in a table at given rates.",
    "report": "Write a one-page report on a table's labels.",
    "reproduce": "Run the paper's experiments.",
}
"""The registry: what the function `name` of the module `_name` does, for `unflip --help`."""


class LazyGroup(TyperGroup):
    """The commands; only the one that runs is imported, so that `unflip --help` is quick."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the requested command and return it."""
        if args[0] in COMMANDS:
            self.add_command(load_command(args[0]), args[0])
        return super().resolve_command(ctx, args)


class StrictCommand(TyperCommand):
    """A command that rejects a single-valued option given twice."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments; without this check the last value would silently win."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        counts = Counter(
            each.opts[0]
            for each in given
            if not (each.multiple or getattr(each, "is_flag", True))  # arguments are no flags
        )
        for name, count in counts.items():
            if count > 1:
                ctx.fail(f"{name} is given {count} times, but takes one value.")
        return super().parse_args(ctx, args)


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, add_completion=True)


def load_command(name: str) -> Any:
    """Return a command with the options of its function."""
    function = getattr(import_module(f"unflip.cli._{name}"), name)
    single = typer.Typer(add_completion=False)
    single.command(name, cls=StrictCommand)(with_single_options(function))
    command: Any = typer.main.get_command(single)
    for option in command.params:
        if option.param_type_name == "option":
            option.rich_help_panel = panel_of(function, option.name)
    return command


def _not_imported() -> None:
    """Stand in for a command in `unflip --help`."""


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
    """Find mislabelled rows and train classifiers on noisy labels.

    Exit codes: 0 success; 1 the data do not allow an estimate; 2 wrong usage or input; 3 a bug in
    unflip; 130 interrupted.
    """
