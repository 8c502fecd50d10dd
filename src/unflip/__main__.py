"""The command `unflip`, also as `python -m unflip`."""

import io
import logging
import sys

INTERRUPTED = 130
"""Exit code after Ctrl+C, 128 + SIGINT as in shells."""


def main() -> None:
    """Run the command line, or print which package it needs."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escape what it cannot show
            stream.reconfigure(errors="backslashreplace")
    # matplotlib warns if it cannot create files in the home folder, which it does not need
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
        # during imports; a running command handles it itself
        print("interrupted: no file was written.", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    if not sys.flags.safe_path:
        # `python -m` adds the current folder, from which `--trust` could import modules
        del sys.path[0]
    main()
