"""The numbers need no matplotlib, and the displays say what they lack."""

import sys

import numpy as np
import pytest

from unflip import ImportanceReweightingClassifier, NoiseRates
from unflip.inspection import (
    MislabelCalibrationDisplay,
    NoiseRatesDisplay,
    SensitivityDisplay,
    WeightsDisplay,
    mislabel_calibration,
    posterior_histogram,
    rate_sensitivity,
    summary,
    weight_histogram,
)

RATES = NoiseRates(positive=0.3, negative=0.1)
MESSAGE = r"drawing needs matplotlib: pip install 'unflip\[plot\]'"


@pytest.fixture
def no_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = (X[:, 0] + rng.normal(size=100) > 0).astype(int)
    return ImportanceReweightingClassifier(noise_rates=RATES).fit(X, y), X, y


@pytest.mark.usefixtures("no_matplotlib")
def test_every_display_names_the_extra(fitted, monkeypatch):
    clf, X, y = fitted
    with pytest.raises(ImportError, match=MESSAGE):
        NoiseRatesDisplay.from_estimator(clf, X, y)
    with pytest.raises(ImportError, match=MESSAGE):
        WeightsDisplay.from_estimator(clf, y)
    with pytest.raises(ImportError, match=MESSAGE):
        MislabelCalibrationDisplay.from_estimator(clf, y, y)
    # said before any classifier is trained
    monkeypatch.setattr(ImportanceReweightingClassifier, "fit", None)
    with pytest.raises(ImportError, match=MESSAGE):
        SensitivityDisplay.from_estimator(clf, X, y, X, y)


@pytest.mark.usefixtures("no_matplotlib")
def test_the_numbers_come_all_the_same(fitted):
    clf, X, y = fitted
    assert summary(clf)["n_samples"] == 100
    noisy = clf.posterior_.predict_proba(X)
    assert posterior_histogram(noisy, y, RATES).counts.sum() == 100
    assert weight_histogram(clf.sample_weight_, y, RATES).n_samples == 100
    curve = mislabel_calibration(y == 2, clf.mislabel_proba_)
    assert curve.counts.sum() == 100
    assert len(rate_sensitivity(clf, X, y, X, y, grid=[])) == 2
    with pytest.raises(ImportError, match=MESSAGE):
        MislabelCalibrationDisplay(curve).plot()
