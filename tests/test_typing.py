"""What a type checker says of wrong arguments."""

import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest

from unflip import noise_rates, posterior

RIGHT = """
from unflip import ImportanceReweightingClassifier, LabelAudit, NoiseRates, TransitionMatrix
from unflip.noise_rates import MinimumRates
from unflip.posterior import KernelDensityPosterior

clf = ImportanceReweightingClassifier(posterior=KernelDensityPosterior(), noise_rates="minimum")
rates: NoiseRates | TransitionMatrix = clf.noise_rates_
LabelAudit("kde", MinimumRates())
LabelAudit(noise_rates=NoiseRates(0.1, None))
"""

WRONG = """
from unflip import ImportanceReweightingClassifier, LabelAudit

ImportanceReweightingClassifier(noise_rates="typo")
ImportanceReweightingClassifier(posterior=3)
ImportanceReweightingClassifier(weighting="beta")
LabelAudit(noise_rates=0.3)
"""


def checked(code: str, folder: Path) -> list[str]:
    """Return the errors that mypy finds."""
    path = folder / "snippet.py"
    path.write_text(code)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return [line for line in result.stdout.splitlines() if ": error:" in line]


@pytest.mark.parametrize(
    ("aliases", "accepted"),
    [
        (noise_rates.ALIASES, noise_rates.RatesLike),
        (posterior.ALIASES, posterior.PosteriorLike),
    ],
    ids=["noise_rates", "posterior"],
)
def test_the_type_checker_knows_the_names_that_there_are(aliases, accepted) -> None:
    names = [get_args(each) for each in get_args(accepted) if get_origin(each) is Literal]
    assert sorted(*names) == sorted(["auto", *aliases])


@pytest.mark.slow
def test_wrong_names_and_types_are_errors_and_right_ones_are_not(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy comes with the lint dependencies")
    assert checked(RIGHT, tmp_path) == []
    assert [line.split(":")[1] for line in checked(WRONG, tmp_path)] == ["4", "5", "6", "7"]
