"""The command `unflip`, also as `python -m unflip`."""

import sys


def main() -> None:
    """Run the command line, or say in one line what it lacks."""
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


if __name__ == "__main__":
    main()
