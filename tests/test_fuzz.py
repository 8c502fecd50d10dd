"""A slice of `python -m benchmarks.fuzz`, and what it rests on: it finds all that is public."""

import inspect
import time
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

fuzz = pytest.importorskip("benchmarks.fuzz", reason="benchmarks are not in this copy")

SLICE = 90
"""Cases of the default seed: four of every target."""


def test_every_public_estimator_and_function_is_called_or_has_a_reason_not_to_be() -> None:
    called = fuzz.targets()
    for name, value in fuzz.public_objects():
        short = name.rsplit(".", 1)[1]
        if isinstance(value, type) and issubclass(value, Exception):
            continue
        has_arguments = bool(inspect.signature(value).parameters)
        assert short in called or short in fuzz.NOT_CALLED or not has_arguments, name
    assert not [name for name in fuzz.NOT_CALLED if name in called]
    estimators = [
        value
        for value in called.values()
        if inspect.isclass(value) and issubclass(value, BaseEstimator)
    ]
    assert len(estimators) >= 25
    assert not [each for each in estimators if inspect.isabstract(each)]


def test_every_parameter_has_something_to_be_called_with() -> None:
    lacking = set()
    for value in fuzz.targets().values():
        for function in (value, getattr(value, "fit", None)):
            if function is not None:
                lacking |= set(inspect.signature(function).parameters) - set(fuzz.ARGUMENTS)
    assert lacking <= {"self"}


def test_a_slice_ends_well() -> None:
    cases = [fuzz.case_at(position) for position in range(SLICE)]
    outcomes = [fuzz.run_case(0, case) for case in cases]
    faults = {
        case: outcome
        for case, outcome in zip(cases, outcomes, strict=True)
        if outcome.kind in fuzz.FAULTS
    }
    assert not faults
    kinds = Counter(outcome.kind for outcome in outcomes)
    assert kinds["ok"] > SLICE / 4  # else little is computed
    assert kinds["refused"] > SLICE / 10  # else little is asked


def test_cases_repeat() -> None:
    cases = [fuzz.case_at(position) for position in range(20)]
    assert [fuzz.run_case(3, case) for case in cases] == [fuzz.run_case(3, case) for case in cases]


class TestJudgement:
    """What counts as clear."""

    def judged(self, function) -> str:
        try:
            function()
        except Exception as error:  # noqa: BLE001
            return fuzz.judged(error)[0]
        raise AssertionError("no error")

    def test_a_library_that_raises_in_words_refuses(self) -> None:
        from unflip import NoiseRates
        from unflip.learners import LinearClassifier

        assert self.judged(lambda: NoiseRates(2, 0)) == "refused"
        assert self.judged(lambda: LinearClassifier().fit([["a"]], [0])) == "refused"
        assert self.judged(lambda: check_is_fitted(LinearClassifier())) == "refused"
        assert issubclass(NotFittedError, ValueError)

    @pytest.mark.parametrize(
        "function",
        [
            lambda: [][0],
            lambda: {}["a"],
            lambda: None.fit(),
            lambda: 1 / 0,
            lambda: np.ones(2) + np.ones(3),
            lambda: np.linalg.inv(np.zeros((2, 2))),
            lambda: bool(np.ones(2)),
        ],
    )
    def test_an_error_from_within_does_not(self, function) -> None:
        assert self.judged(function) == "internal error"

    def test_numbers_are_found_wherever_they_are(self) -> None:
        from unflip import NoiseRates

        nested = {"a": [1.0, (np.array([np.nan]),)], "b": NoiseRates((0.1, 0.2), None)}
        assert [each.size for each in fuzz.numbers(nested)] == [1, 1, 4]

    @pytest.mark.parametrize(
        "value",
        [
            np.arange(4.0),
            np.array([1, "a"], dtype=object),
            sparse.csr_array(np.eye(2)),
            pd.DataFrame({"a": [1.0, 2.0]}),
            pd.Series([1.0, 2.0]),
            [1.0, 2.0],
        ],
    )
    def test_a_change_is_seen(self, value) -> None:
        before = fuzz.frozen(value)
        assert fuzz.frozen(value) == before
        if sparse.issparse(value):
            value.data[0] = 7
        elif isinstance(value, (pd.DataFrame, pd.Series)):
            value.iloc[0] = 7.0
        else:
            value[0] = 7.0
        assert fuzz.frozen(value) != before


@pytest.mark.slow
def test_a_hang_is_survived(monkeypatch) -> None:
    monkeypatch.setattr(fuzz, "PATIENCE", 0.0)  # every case takes too long
    begin = time.monotonic()
    outcomes = [outcome for _, outcome in fuzz.fuzz(0, seconds=60, cases=2, n_workers=1)]
    assert {outcome.kind for outcome in outcomes} <= {"hang", "ok", "refused"}
    assert len(outcomes) == 2
    assert time.monotonic() - begin < 60
