"""Draw the pictures of the tutorial: `python docs/_tutorial_pictures.py`.

The tutorial's own lines are run, and the displays that they make are kept.
"""

import doctest
from pathlib import Path
from typing import Any

import matplotlib as mpl

DOCS = Path(__file__).parent
PICTURES = {"display": "tutorial-rates", "weights": "tutorial-weights", "trusted": "tutorial-trust"}
"""Names of displays in the tutorial, and of their files."""


def main() -> None:
    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "unflip"})
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(text):
        exec(compile(example.source, "tutorial", "single"), names)  # noqa: S102
    for name, file in PICTURES.items():
        figure = names[name].figure_
        figure.savefig(DOCS / "_static" / f"{file}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
