"""The guide's commands run as they stand, and print what it shows; figures may differ."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "user_guide"
FIGURE = re.compile(r"\d[\d.,]*(?<![.,])")


def examples(page):
    """Return the commands of a page, each with the output below it."""
    text = (GUIDE / page).read_text(encoding="utf-8")
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reviewed.csv").write_text("row,label\n24,malignant\n82,malignant\n3,malignant\n")
    return tmp_path


def test_the_guides_commands_print_what_it_shows(run, folder):
    pages = [*examples("command_line.md"), *examples("reports.md")]
    commands = [shlex.split(command) for command, _ in pages]
    assert len(commands) >= 8
    assert {words[0] for words in commands} == {"unflip", "unzip"}
    for words, (_, expected) in zip(commands, pages, strict=True):
        if words[0] == "unzip":
            continue
        result = run(*words[1:])
        assert result.exit_code == 0, result.output
        shown, printed = FIGURE.sub("#", expected), FIGURE.sub("#", result.stdout)
        # doctest takes a line of dots at the start for a prompt's continuation
        assert doctest.OutputChecker().check_output(
            shown, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        ), f"{words}\nshown:\n{shown}\nprinted:\n{printed}"
    names = {"cancer.csv", "noisy.csv", "suspects.csv", "model.unflip", "predicted.csv"}
    assert names <= {path.name for path in folder.iterdir()}


def test_readme_shows_what_the_guide_shows():
    guide = dict(examples("command_line.md"))
    shown = list(examples(Path("..", "..", "README.md")))
    assert len(shown) == 3
    for command, output in shown:
        assert guide[command].startswith(output.removesuffix("...\n"))
