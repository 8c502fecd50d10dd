"""The pages keep to the sizes and the language that the project has set itself."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "user_guide"

pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="docs are not in this copy")


@pytest.mark.parametrize("page", sorted(GUIDE.glob("*.md")), ids=lambda page: page.stem)
def test_the_guide_avoids_the_patterns_that_benchmarks_prose_counts(page: Path) -> None:
    prose = pytest.importorskip("benchmarks.prose")
    assert not list(prose.occurrences(page))


def test_guide_and_readme_are_short() -> None:
    prose = pytest.importorskip("benchmarks.prose")
    counts = prose.measure(ROOT)
    assert counts["pages of the guide"] <= 22
    assert counts["words of the guide"] <= 25_000
    assert counts["lines of the README"] <= 120


def test_the_page_on_the_noise_model_names_functions_of_the_package() -> None:
    text = (GUIDE / "noise_model.md").read_text(encoding="utf-8")
    names = re.findall(r"`(_[a-z_]+)\.(\w+)`", text)
    assert len(names) > 8
    for module, name in names:
        assert hasattr(import_module(f"unflip.channel.{module}"), name)
