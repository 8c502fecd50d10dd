"""The share of work that is done: told in order, from 0 to 1, by those who do it."""

import numpy as np
import polars as pl
import pytest

from unflip import ImportanceReweightingClassifier
from unflip._app.demo import run_demo
from unflip._app.tables import split_label
from unflip._app.workflow import learn
from unflip._utils.progress import heard, tick, work
from unflip.noise import NoiseRates


def test_parts_of_parts_add_up_to_the_whole():
    told = []
    with heard(told.append), work([1, 3]):
        tick()
        with work(3):
            for _ in range(3):
                tick()
        tick()  # it was told that this is done
    assert told == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_what_is_told_never_falls_and_never_passes_one():
    told = []
    with heard(told.append), work(2):
        for _ in range(2):  # the same part a second time
            with work(2):
                tick()
                tick()
        for _ in range(5):
            tick()
    assert told == [0.25, 0.5, 1.0]


def test_where_nobody_listens_nothing_happens():
    tick()
    with work(3):
        tick()
    told = []
    with heard(told.append):
        pass
    tick()
    assert told == []


def test_work_that_fails_leaves_its_surroundings_as_they_were():
    told = []
    with heard(told.append), work(2):
        with pytest.raises(ZeroDivisionError), work(2):
            _ = 1 / 0
        tick()
    assert told == [0.5]


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_fold_of_a_fit_is_told(n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 120)
    X = rng.normal(3.0 * np.eye(n_classes)[y], 1.0)
    told = []
    with heard(told.append):
        ImportanceReweightingClassifier(cv=5, random_state=0).fit(X, y)
    # the fit to all rows, then each fold, which takes a tenth of it
    assert told[-6:] == pytest.approx(1 - np.arange(5, -1, -1) / 15)
    assert np.diff([0.0, *told[:-5]]).max() < 0.4  # nor does it stand still before them
    assert len(told) >= 5 + n_classes


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
    assert len(told) >= 9


def test_the_demo_tells_every_split():
    told = []
    with heard(told.append):
        run_demo(NoiseRates(0.2, 0.1), n_splits=2)
    assert {0.5, 1.0} <= set(told)
