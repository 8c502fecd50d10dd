"""Importing unflip costs next to nothing until one of its names is used."""

import subprocess
import sys

import pytest

import unflip

HEAVY = {"sklearn", "scipy", "numpy", "polars", "narwhals", "matplotlib"}


@pytest.mark.parametrize("arguments", [["-c", "import unflip"], ["-m", "unflip", "--help"]])
def test_no_library_is_imported_before_it_is_needed(arguments):
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "unflip" in imported
    assert not HEAVY & imported


def test_every_public_name_is_found():
    assert all(getattr(unflip, name) is not None for name in unflip.__all__)
    assert set(unflip.__all__) <= set(dir(unflip))


def test_a_public_module_is_found_without_an_import_of_its_own():
    code = "import unflip; print(unflip.losses.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "unflip.losses"


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(AttributeError, match="LabelAudits"):
        unflip.LabelAudits  # noqa: B018
