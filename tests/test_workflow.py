"""From a table to a model: reviewed rows."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from tests.cli.mixed import mixed_table
from unflip import CheckedLabels, NoiseRates, flip_labels
from unflip._app.tables import split_label
from unflip._app.workflow import learn, make_estimator

RATES = NoiseRates(positive=0.3, negative=0.1)


@pytest.fixture(scope="module")
def truth():
    return mixed_table(800)["churn"].to_numpy().astype(str)


@pytest.fixture(scope="module")
def data(truth):
    noisy = pl.Series("churn", flip_labels(truth, RATES, random_state=0))
    return split_label(mixed_table(800).with_columns(noisy), "churn", identifier="customer")


def test_reviewed_rows_weigh_one_and_say_nothing_of_others(data, truth):
    rows = np.arange(0, 800, 2)
    before, after = learn(data), learn(data, reviewed=CheckedLabels(rows, truth[rows]))
    assert after.classifier.noise_rates_ == before.classifier.noise_rates_
    assert (after.weights[rows] == 1).all()
    # each of the others trains with its label as far as that is right, by the labels alone
    assert_allclose(after.weights[1::2], 1 - before.classifier.mislabel_proba_[1::2])
    assert np.array_equal(after.noise.observed, data.y)


def test_all_rows_reviewed_give_the_model_of_clean_labels(data, truth):
    learnt = learn(data, reviewed=CheckedLabels(np.arange(truth.size), truth))
    clean = make_estimator("logistic").fit(learnt.X, truth)
    expected = clean.predict_proba(learnt.X)
    assert learnt.model.predict_proba(data.features) == pytest.approx(expected)


@pytest.mark.slow
def test_reviewing_suspicious_rows_brings_the_model_closer_to_the_truth(truth):
    new = mixed_table(2000, seed=9)
    before, after = [], []
    for seed in range(3):
        noisy = flip_labels(truth, NoiseRates(0.4, 0.3), random_state=seed)
        table = mixed_table(800).with_columns(pl.Series("churn", noisy))
        data = split_label(table, "churn", identifier="customer")
        plain = learn(data, rates=NoiseRates(0.4, 0.3))
        rows = plain.audit().issues(n=250)
        reviewed = CheckedLabels(rows, truth[rows])
        features = new.drop("churn", "customer")
        before.append(np.mean(plain.model.predict(features) == new["churn"].to_numpy()))
        again = learn(data, rates=NoiseRates(0.4, 0.3), reviewed=reviewed)
        after.append(np.mean(again.model.predict(features) == new["churn"].to_numpy()))
    assert np.mean(after) > np.mean(before)
