"""A fit checks its labels once at every public door, and makes its posterior once."""

import sys
from collections import Counter

import numpy as np
import pytest

from unflip import ImportanceReweightingClassifier, LabelAudit, NoiseRates, flip_labels
from unflip._utils.validation import check_labels
from unflip.noise_rates import ChannelRates, MinimumRates, SelectiveRates
from unflip.posterior import SelectedPosterior, make_posterior

RATES = NoiseRates(positive=0.2, negative=0.1)


@pytest.fixture
def counts(monkeypatch):
    """How often the two are called from anywhere in unflip."""
    found: Counter[str] = Counter()

    def counted(function):
        def call(*args, **kwargs):
            found[function.__name__] += 1
            return function(*args, **kwargs)

        return call

    for function in (check_labels, make_posterior):
        replacement = counted(function)
        for name, module in list(sys.modules.items()):
            if name.startswith("unflip") and vars(module).get(function.__name__) is function:
                monkeypatch.setattr(module, function.__name__, replacement)
    return found


def table(n_classes: int = 2):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 200)
    X = 3 * np.eye(n_classes)[y] + rng.normal(size=(200, n_classes))
    noise = np.full((n_classes, n_classes), 0.1) + (1 - 0.1 * n_classes) * np.eye(n_classes)
    return X, flip_labels(y, noise, random_state=0)


X, Y = table()
X3, Y3 = table(3)


@pytest.mark.parametrize(
    ("options", "n_fits_of_parts"),
    [
        ({}, 1),
        ({"cv": 3}, 1),  # the channel holds out coefficients only
        ({"posterior": "probabilistic", "noise_rates": RATES}, 1),
        ({"posterior": "probabilistic", "noise_rates": "selective", "cv": 3}, 4),
        ({"posterior": "probabilistic", "noise_rates": "channel"}, 3),  # rates, channel
        ({"posterior": "kliep", "noise_rates": "minimum"}, 1),
        # the posterior, the rates, and the posterior of the rates
        ({"posterior": "probabilistic", "noise_rates": MinimumRates("kde")}, 3),
    ],
)
def test_the_classifier_checks_labels_at_its_door_and_at_those_of_its_parts(
    counts, options, n_fits_of_parts
):
    ImportanceReweightingClassifier(**options, random_state=0).fit(X, Y)
    assert counts["check_labels"] == 1 + n_fits_of_parts


@pytest.mark.parametrize("noise_rates", ["auto", "minimum"])
def test_one_fit_makes_one_posterior(counts, noise_rates):
    ImportanceReweightingClassifier(noise_rates=noise_rates).fit(X, Y)
    assert counts["make_posterior"] == 1
    LabelAudit(noise_rates=noise_rates).fit(X, Y)
    assert counts["make_posterior"] == 2


def test_the_audit_checks_labels_once_besides_the_fits_of_its_posterior(counts):
    LabelAudit(cv=3).fit(X, Y)
    assert counts["check_labels"] == 1 + 1
    counts.clear()
    LabelAudit().fit_posterior(0.2 + 0.6 * np.eye(2)[Y], Y)
    assert counts["check_labels"] == 1


def test_rates_from_rows_check_labels_once_besides_the_fit_of_their_posterior(counts):
    SelectiveRates(cv=None).fit(X, Y)
    assert counts["check_labels"] == 2
    counts.clear()
    ChannelRates().fit(X, Y)
    assert counts["check_labels"] == 2  # the number of classes says which channel


def test_three_classes_check_labels_once_besides_the_fits_of_the_candidates(counts):
    ImportanceReweightingClassifier(posterior=SelectedPosterior([None], cv=3)).fit(X3, Y3)
    # the chosen one on all rows and three folds, the choice itself, and the channel of the rates
    assert counts["check_labels"] == 1 + 1 + 4 + 2


@pytest.mark.filterwarnings("ignore::unflip.LabelNoiseWarning")
def test_the_default_classifier_encodes_columns_once(monkeypatch):
    from unflip._utils.columns import ColumnEncoder

    frame = pytest.importorskip("pandas").DataFrame({"kind": np.where(Y, "u", "v"), "x": X[:, 0]})
    fits = []
    whole = ColumnEncoder.fit
    monkeypatch.setattr(ColumnEncoder, "fit", lambda *args: fits.append(1) or whole(*args))
    clf = ImportanceReweightingClassifier(random_state=0).fit(frame, Y)
    assert len(fits) == 1
    assert clf.predict(frame).shape == Y.shape
