"""From a table of mixed columns to a trained model, for all commands alike."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from unflip._app.reviewed import add_checked, class_named
from unflip._app.table_files import READ, TableError, listed, read_table
from unflip._app.tables import LabelledTable
from unflip._utils.estimators import clone_seeded, fit_soft_labels, weight_parameters
from unflip._utils.folds import folds_within_classes
from unflip._utils.preprocessing import make_vectorizer
from unflip._utils.progress import tick, work
from unflip._utils.threads import threads_for
from unflip._utils.typing import Array, Classifier, Floats, PlainLabel, Record
from unflip._utils.validation import Labels, check_enough_rows, find_class
from unflip.audit import LabelAudit
from unflip.checked import CheckedLabels
from unflip.checked.internals import correct
from unflip.diagnostics import Diagnostic, diagnose_classes, diagnose_columns, diagnose_usefulness
from unflip.estimate import NoiseEstimate
from unflip.inspection import summary
from unflip.noise import NoiseRates, Rate, TransitionMatrix
from unflip.posterior import ALIASES, PosteriorLike, fit_posterior, make_posterior
from unflip.reweighting import ImportanceReweightingClassifier

ESTIMATORS: dict[str, Callable[[], BaseEstimator]] = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "boosting": HistGradientBoostingClassifier,
    "svm": lambda: make_pipeline(StandardScaler(), SVC()),
}

GivenRates = NoiseRates | dict[str, Rate] | Path
"""Rates as commands take them: of the positive and negative class, by class, or a file."""

CROSS_FIT_FOLDS = 5
"""Number of cross-fitting folds."""


class CannotEstimateError(Exception):
    """The noise rates cannot be estimated from these data."""


@dataclass(frozen=True)
class Audited:
    """An estimate about a table's labels."""

    # `~unflip.inspection.summary` with the positive class first, `leaks` (copies of the label), and
    # `checked` (the estimate from reviewed rows, if some were drawn).
    found: Record
    # The estimate that ranks rows, corrected by the reviewed rows.
    noise: NoiseEstimate
    # The fitted classifier or audit, without the reviewed rows.
    classifier: Any
    reviewed: CheckedLabels
    # Encoded features; None with held-out probabilities.
    X: Floats | None

    def audit(self) -> LabelAudit:
        """Return the audit of the rows."""
        return LabelAudit()._view(self.classifier, self.noise)


@dataclass(frozen=True)
class Trained(Audited):
    """An estimate and a model trained on a table."""

    # From the table's columns to labels; the last step is the classifier.
    model: Pipeline
    # Training weights, 1 for reviewed rows.
    weights: Floats
    # The positive class, of two.
    positive: PlainLabel | None


STEPS = (3.0, 8.5, 0.5)
"""Relative durations of encoding the columns, fitting, and summarising."""


@work(STEPS)
def learn(
    data: LabelledTable,
    *,
    estimator: Classifier | None = None,
    posterior: PosteriorLike = "auto",
    rates: GivenRates | None = None,
    positive: str | None = None,
    reviewed: CheckedLabels | None = None,
    random_state: int = 0,
    say: Callable[[str], None] = lambda step: None,
) -> Trained:
    """Estimate the noise rates of a table and train a classifier."""
    classes = data.classes
    known, positive_class = rates_by_class(rates, classes, positive)
    is_known = known is not None and known.known
    estimator = ESTIMATORS["logistic"]() if estimator is None else estimator
    say("encoding the columns")
    vectorizer = make_vectorizer()
    X = np.asarray(vectorizer.fit_transform(data.features), dtype=float)
    tick()
    y = data.y
    by_channel = isinstance(posterior, str) and posterior in ("auto", "channel")
    unknown: Literal["auto", "selective"] = "auto" if by_channel else "selective"
    classifier = ImportanceReweightingClassifier(
        estimator,
        posterior=posterior,
        noise_rates=unknown if known is None else known,
        random_state=random_state,
    )
    say("estimating the noise rates and training")
    codes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
    with _explained_by_classes(classes, counts):
        if counts.min() < 2:
            raise CannotEstimateError(
                f"class {classes.item(np.argmin(counts))!r} has one row only, but cross-validation "
                "needs more: merge it with another class, or leave it out with --drop-classes."
            )
        try:
            check_enough_rows(X, y)
        except ValueError as error:
            raise CannotEstimateError(str(error)) from error
        try:
            classifier.cv = folds_within_classes(CROSS_FIT_FOLDS, codes)
            with threads_for(y.size):
                classifier._fit(X, y, table=data.features)
            tick()
        except ValueError as error:
            if not is_known:  # uninformative columns are the more likely reason
                _raise(_uninformative_columns(X, codes, random_state))
            raise CannotEstimateError(str(error)) from error
        noise = classifier.noise_
        if not is_known:
            # P(noisy y | x) is held out: if it ranks the labels, the columns are informative
            if diagnose_columns(_rank_scores(noise.noisy_proba, codes)) is not None:
                _raise(_uninformative_columns(X, codes, random_state))
            interval = noise.transition_interval
            _raise(diagnose_usefulness(classes, noise.noise_rates, interval=interval))
    found = oriented(summary(classifier), positive_class)
    tick()
    leaks = [one for one in noise.findings if one.code == "leak"]
    found["leaks"] = [str(one.numbers["column"]) for one in leaks]
    reviewed = CheckedLabels([], []) if reviewed is None else reviewed
    weights = classifier.sample_weight_.copy()
    if len(reviewed):
        say("training with the reviewed rows")
        noise = correct(noise, reviewed, X)
        weights = _train_again(classifier, estimator, X, reviewed, noise)
        add_checked(found, reviewed, noise)
    model = Pipeline([("table", vectorizer), ("classifier", classifier)])
    return Trained(found, noise, classifier, reviewed, X, model, weights, positive_class)


@contextmanager
def _explained_by_classes(classes: Array, counts: Array) -> Iterator[None]:
    """Add findings about the classes, as a possible reason, to a `CannotEstimateError`."""
    try:
        yield
    except CannotEstimateError as error:
        odd = map(str, diagnose_classes(classes, counts))
        raise CannotEstimateError(" ".join([*odd, str(error)])) from error


def _train_again(
    classifier: ImportanceReweightingClassifier,
    estimator: Classifier,
    X: Floats,
    reviewed: CheckedLabels,
    noise: NoiseEstimate,
) -> Floats:
    """Train as `fit(X, y, checked=reviewed)` does, without new rates; return the weights."""
    proba, weight = noise.soft_labels
    classifier.estimator_ = fit_soft_labels(
        clone_seeded(estimator, classifier.random_state), X, proba, noise.classes, row_weight=weight
    )
    truth = reviewed.truth(Labels(noise.classes, noise.codes))
    known = (truth >= 0) & (truth < noise.classes.size)
    weights = 1 - noise.mislabel_proba
    weights[reviewed.rows[known]] = 1.0
    return weights


def make_estimator(name: str) -> BaseEstimator:
    """Return a classifier by its alias or the path of its class."""
    if name in ESTIMATORS:
        return ESTIMATORS[name]()
    module, _, attribute = name.replace(":", ".").rpartition(".")
    if not module:
        raise ValueError(
            f"estimator {name!r} is not one of {', '.join(ESTIMATORS)} or the path of a class "
            "such as sklearn.ensemble.RandomForestClassifier."
        )
    try:
        estimator = getattr(importlib.import_module(module), attribute)()
    except (ImportError, AttributeError, TypeError) as error:
        raise ValueError(f"estimator {name!r} cannot be created: {error}") from error
    if not is_classifier(estimator):
        raise ValueError(f"estimator {name!r} is not a classifier.")
    try:
        weight_parameters(estimator)
    except TypeError as error:
        raise ValueError(str(error)) from error
    return estimator


def parse_posterior(name: str) -> Any:
    """Return an estimator of P(noisy y | x) by its name, or a classifier by its name or path."""
    if name in ("auto", *ALIASES):
        return name
    try:
        estimator = make_estimator(name)
    except ValueError as error:
        raise ValueError(
            f"--posterior {name!r} is not one of auto, {', '.join(ALIASES)}; as a classifier: "
            f"{error}"
        ) from None
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(f"--posterior {name!r} has no method predict_proba: choose another class.")
    return estimator


def parse_rates(text: str) -> GivenRates:
    """Parse the rates of two classes, by name or the positive one first, or the name of a file.

    Examples
    --------
    >>> from unflip._app.workflow import parse_rates
    >>> print(parse_rates(" 0.1:0.3 , ? "))
    NoiseRates(positive=(0.1, 0.3), negative=None)
    >>> parse_rates("churned=0.3,stayed=0")
    {'churned': 0.3, 'stayed': 0.0}
    """
    if Path(text).suffix.lower() in READ:
        return Path(text)

    def rate(part: str) -> Rate:
        if part.strip() == "?":
            return None
        low, colon, high = part.partition(":")
        return (float(low), float(high)) if colon else float(low)

    parts = text.split(",")
    try:
        if len(parts) != 2:
            raise ValueError(f"there {'is 1' if len(parts) == 1 else f'are {len(parts)}'}")
        if all("=" in part for part in parts):
            named = [part.rpartition("=") for part in parts]
            return {name.strip(): rate(value) for name, _, value in named}
        positive, negative = map(rate, parts)
        return NoiseRates(positive=positive, negative=negative)
    except ValueError as error:
        raise ValueError(
            f"--rates {text!r}: expected a number for each of two classes, by name such as "
            "churned=0.3,stayed=0, or the positive class first such as 0.3,0.1. Each may be bounds "
            f"such as 0.1:0.3, or ?; for more classes give a file such as rates.csv ({error})"
        ) from None


def read_matrix(path: Path, classes: Array) -> TransitionMatrix:
    """Return the transition matrix in a file."""
    table = read_table(path)
    named = [name for name in table.columns if find_class(classes, name) is not None]
    others = [name for name in table.columns if name not in named]
    if len(named) != classes.size or len(others) > 1 or table.height != classes.size:
        raise TableError(
            f"{path} has {table.height} rows and the columns {listed(table.columns)}: expected a "
            f"column and a row for each of the {classes.size} classes, "
            f"{listed(classes.tolist(), 10)}."
        )
    true = table[others[0]].cast(pl.String).to_list() if others else named
    rows = [classes.tolist().index(class_named(classes, name)) for name in true]
    columns = [classes.tolist().index(class_named(classes, name)) for name in named]
    matrix = np.zeros((classes.size, classes.size))
    try:
        matrix[np.ix_(rows, columns)] = table[named].cast(pl.Float64).to_numpy()
        return TransitionMatrix(matrix)
    except (ValueError, pl.exceptions.PolarsError) as error:
        raise TableError(f"{path} holds no noise rates: {error}") from error


def oriented(found: Record, positive: PlainLabel | None) -> Record:
    """Return a summary with the rate of `positive` first, and intervals per class."""
    found = {**found, "positive_class": positive}
    interval = found.get("interval")
    if len(found["classes"]) != 2:
        return found
    ends = [None, None] if interval is None else [interval["negative"], interval["positive"]]
    found["per_class"] = [
        {**row, "interval": end} for row, end in zip(found["per_class"], ends, strict=True)
    ]
    if positive == found["classes"][0]:
        for name in ("noise_rates", "interval"):
            if found.get(name) is not None:
                pair = found[name]
                found[name] = {**pair, "positive": pair["negative"], "negative": pair["positive"]}
    return found


def rates_by_class(
    rates: GivenRates | None, classes: Array, positive: str | None
) -> tuple[NoiseRates | TransitionMatrix | None, PlainLabel | None]:
    """Return the noise rates, and the positive class if there are two."""
    if classes.size > 2:
        if not (rates is None or isinstance(rates, Path)) or positive is not None:
            raise TableError(
                f"two rates and --positive are for two classes, but the labels have "
                f"{classes.size}: {listed(classes.tolist(), 5)}. Give a file of all rates, or let "
                "unflip estimate them."
            )
        return read_matrix(rates, classes) if isinstance(rates, Path) else None, None
    chosen = classes.item(-1) if positive is None else class_named(classes, positive)
    if isinstance(rates, Path):
        return read_matrix(rates, classes).rates, chosen
    if rates is None:
        return None, chosen
    if isinstance(rates, dict):
        by_class = {class_named(classes, name): rate for name, rate in rates.items()}
    else:
        other = classes.item(0) if chosen == classes[-1] else classes.item(-1)
        by_class = {chosen: rates.positive, other: rates.negative}
    return NoiseRates.by_class(by_class), chosen


def known_rates(
    text: str, classes: Array, positive: str | None
) -> tuple[NoiseRates | TransitionMatrix, PlainLabel | None]:
    """Return the rates at which labels are to be flipped, and the positive class."""
    rates, positive_class = rates_by_class(parse_rates(text), classes, positive)
    if rates is None or not rates.known:
        raise ValueError(f"--rates {text!r}: give two numbers, at which labels are flipped.")
    return rates, positive_class


def _raise(diagnostic: Diagnostic | None) -> None:
    if diagnostic is not None:
        raise CannotEstimateError(str(diagnostic))


def _uninformative_columns(
    X: Floats, codes: NDArray[np.intp], random_state: int
) -> Diagnostic | None:
    """Return a finding if the columns predict the labels no better than chance, else None.

    Logistic regression comes first because it is fast, then trees.
    """
    diagnostic = None
    for name in ("probabilistic", "selected"):
        posterior = make_posterior(name, random_state)
        folds = folds_within_classes(CROSS_FIT_FOLDS, codes)
        _, held_out = fit_posterior(posterior, X, codes, cv=folds, random_state=random_state)
        diagnostic = diagnose_columns(_rank_scores(held_out, codes))
        if diagnostic is None:
            break
    return diagnostic


def _rank_scores(held_out: Floats, codes: NDArray[np.intp]) -> Floats:
    """Return each class's Mann-Whitney statistic in standard errors."""
    scores = []
    for k in range(held_out.shape[1]):
        inside = codes == k
        n_in, n_out = int(inside.sum()), int((~inside).sum())
        # by chance the area under the ROC curve is 1/2, with this standard error
        error = np.sqrt((n_in + n_out + 1) / (12 * n_in * n_out))
        scores.append((roc_auc_score(inside, held_out[:, k]) - 0.5) / error)
    return np.array(scores)
