"""The share of work that is done: told in order, from 0 to 1, by those who do it."""

import numpy as np
import polars as pl
import pytest

from unflip import ImportanceReweightingClassifier
from unflip._app.tables import split_label
from unflip._app.workflow import learn
from unflip._utils.progress import heard, tick, work
from unflip.noise import NoiseRates


def test_parts_of_parts_add_up_to_the_whole_and_never_pass_it():
    told = []
    with heard(told.append), work([1, 3]):
        tick()
        with pytest.raises(ZeroDivisionError), work(2):
            _ = 1 / 0  # what fails leaves its surroundings as they were
        with work(3):
            for _ in range(3):
                tick()
        for _ in range(5):  # it was told that this is done
            tick()
    tick()  # where nobody listens, nothing happens
    assert told == pytest.approx([0.25, 0.5, 0.75, 1.0])


def parts_told(n_classes, **parts):
    """Return the shares of the work that were told during a fit."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 120)
    X = rng.normal(3.0 * np.eye(n_classes)[y], 1.0)
    told = []
    with heard(told.append):
        ImportanceReweightingClassifier(random_state=0, **parts).fit(X, y)
    return told


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_fold_of_a_fit_is_told(n_classes):
    told = parts_told(n_classes, posterior="probabilistic", noise_rates="selective", cv=5)
    # the fit to all samples, then each fold
    assert told[-6:] == pytest.approx(list(1 - np.arange(5, -1, -1) / 6))


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fit_of_the_noise_model_is_told_in_parts(n_classes):
    told = parts_told(n_classes)
    assert told[-1] == pytest.approx(1.0)
    assert np.diff([0.0, *told]).max() <= 0.6


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_a_table_is_learnt_in_many_parts_none_of_which_is_half_of_all():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    table = pl.DataFrame({"x": x, "y": np.where(x + rng.normal(size=200) / 3 > 0, "u", "v")})
    told = []
    with heard(told.append):
        learn(split_label(table, "y"), rates=NoiseRates(0.1, 0.1))
    assert told[-1] == pytest.approx(1.0)
    assert np.diff([0.0, *told]).max() < 0.5
    assert len(told) >= 4
