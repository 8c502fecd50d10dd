"""What the project says about itself in several files is said the same."""

import re
from pathlib import Path

import pytest
import yaml

import unflip

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_what_the_makefile_has(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    called = re.findall(r"^make ([a-z-]+)", "\n".join(commands), flags=re.M)
    assert set(called) <= targets
    assert "publish" in path.read_text() or called


def test_the_citation_names_the_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    assert unflip.__version__.startswith(cited)
