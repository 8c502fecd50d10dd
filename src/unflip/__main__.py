"""The command `unflip`, also as `python -m unflip`."""

import io
import logging
import sys

INTERRUPTED = 130
"""Exit code of a program that Ctrl+C ends: 128 + SIGINT, as shells have it."""


def main() -> None:
    """Run the command line, or say in one line what it lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what it cannot show is written out
            stream.reconfigure(errors="backslashreplace")
    # matplotlib speaks of files in the home where it cannot make them; they are not needed
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        from unflip.cli import app

        app()
    except ImportError as error:
        # commands import what they need when they run
        said = str(error)
        if error.name == "polars":
            said = "the command line needs polars: pip install 'unflip[cli]'"
        elif "pip install" not in said:
            raise
        print(said, file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        # while modules are imported: a command that runs answers by itself
        print("interrupted: no file was written.", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    if not sys.flags.safe_path:
        # `python -m` puts the current folder first, and `--trust` would import modules from there
        del sys.path[0]
    main()
