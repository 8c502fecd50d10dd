"""The command `unflip`, also as `python -m unflip`."""

import sys


def main() -> None:
    """Run the command line, or say in one line what it lacks."""
    try:
        from unflip.cli import app
    except ImportError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    app()


if __name__ == "__main__":
    main()
