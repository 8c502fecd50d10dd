"""Every public estimator and function, called with what people and their files come up with.

`python -m benchmarks.fuzz [--seconds 600] [--seed 0] [--cases N]` calls them with rows, labels,
weights, rates and parameters of all kinds, good and odd (`fuzz_inputs.py`), each case in a worker
process that is given up after 30 seconds. A case must end with finite numbers, or with an error
that unflip or scikit-learn raised themselves. Anything else is listed with the command that repeats
it, and the exit code is 1: an error from within, NaN or infinity in what is returned, an argument
that was changed, or no end.
"""

import argparse
import dataclasses
import inspect
import linecache
import multiprocessing
import os
import pkgutil
import sys
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

import unflip
from benchmarks.fuzz_arguments import ARGUMENTS
from benchmarks.fuzz_inputs import (
    ODD,
    Sizes,
    classes_shares,
    codes_of,
    draw_sizes,
    fitted,
    labels,
    method_with_rates,
    rows,
)
from unflip.density_ratio import BaseDensityRatio
from unflip.noise import InverseRates, NoiseRates, RatesInterval, TransitionMatrix

PATIENCE = 30.0
"""Seconds after which a case is given up."""

EXAMPLES = 3
"""Of each target and kind of fault, so many are shown."""

ELSEWHERE = {
    "cli": "commands, tested in tests/cli",
    "dask": "needs a cluster; its block functions are those of streaming",
    "datasets": "reads files of its own",
    "report": "writes pages, tested in tests/report",
    "review": "a page and its files, tested in tests/review; the rest is named in ALSO",
}
"""Modules that take no arrays or parameters of users, and why."""

ALSO = ("checked.internals.clopper_pearson", "review.sample_estimate", "datasets.make_separable")
"""Functions of those modules that do."""

NOT_CALLED = {
    "BaseDensityRatio": "abstract",
    "ErrorRate": "a result",
    "Estimate": "a result",
    "EvidenceTest": "a result",
    "NextRows": "a result",
    "BasePosterior": "abstract",
    "BaseRates": "abstract",
    "Batches": "abstract",
    "BregmanDivergence": "abstract",
    "Loss": "abstract",
    "LossClassifier": "abstract",
    "MarginLoss": "abstract",
    "PosteriorRates": "abstract",
    "MislabelCalibration": "a result",
    "NoiseBySlice": "a result",
    "NoiseEstimate": "a result",
    "PosteriorHistogram": "a result",
    "RateCurve": "a result",
    "Stages": "a result",
    "Suspects": "a result",
    "WeightHistogram": "a result",
    "CleanScore": "a result",
    "RademacherEstimate": "a result",
    "CleanScorer": "made by make_clean_scorer",
    "MislabelCalibrationDisplay": "draws what mislabel_calibration computes",
    "NoiseBySliceDisplay": "draws what noise_by_slice computes",
    "NoiseRatesDisplay": "draws what posterior_histogram computes",
    "SensitivityDisplay": "draws what rate_sensitivity computes",
    "WeightsDisplay": "draws what weight_histogram computes",
    "ArrowBatches": "reads files",
    "ParquetBatches": "reads files",
    "as_transition_matrix": "fuzzed by all that take rates",
}
"""Public names that are not called, and why."""

MAY_BE_NAN = {
    "sample_estimate": "NaN where no row tells",
    "rate_sensitivity": "NaN where the fit refuses a rate",
    "joint_estimation_rate": "infinite where the labels may say nothing",
    "weight_histogram": "the bound of a class that is always flipped is infinite",
}
"""Targets whose documented answers may be NaN or infinite, and where."""

METHODS = (
    "predict",
    "predict_proba",
    "predict_clean_proba",
    "predict_log_proba",
    "decision_function",
    "predict_relative",
)
"""Methods that take rows."""

VALUES = (NoiseRates, InverseRates, TransitionMatrix, RatesInterval)
"""Whose methods are called too."""

SLOW = ("iw",)
"""What is made of these is not fitted: it takes hundreds of fits, and is made of fuzzed parts."""

SPECIAL: dict[tuple[str, str], Callable[[Sizes], Any]] = {
    ("CheckedLabels", "labels"): lambda s: labels(s) if s.is_odd() else codes_of(s),
    ("summary", "estimator"): fitted,
    ("rate_sensitivity", "estimator"): fitted,
    ("rate_sensitivity", "grid"): lambda s: s.made(ODD) if s.is_odd() else [0.0, 0.1],
    ("rate_sensitivity", "scoring"): lambda s: s.made(ODD) if s.is_odd() else None,
    ("CrossValidatedRates", "estimator"): method_with_rates,
    ("CrossValidatedRates", "grid"): ARGUMENTS["grid"],
    ("noisy_prior", "clean_prior"): classes_shares,
    ("clean_prior", "noisy_prior"): classes_shares,
}
"""Parameters that mean something else there."""

LEARNT = (
    "rates_",
    "noise_rates_",
    "sample_weight_",
    "mislabel_proba_",
    "clean_proba_",
    "weights_",
    "coef_",
    "bandwidth_",
    "interval_",
    "n_errors_",
    "effective_sample_size_",
    "clipped_share_",
)
"""Attributes that must be finite."""

LIBRARIES = ("unflip", "sklearn")
"""Whose own errors are clear."""

CONVERTING = ("check_array", "check_random_state", "type_of_target")
"""Functions of scikit-learn that hand on what numpy or pandas say of an input."""


class Outcome(NamedTuple):
    """How a case ended."""

    target: str
    kind: str
    """"ok", "refused", or what is wrong."""
    detail: str = ""


FAULTS = ("internal error", "not finite", "changed input", "hang")
"""Kinds of outcomes that must not be."""


def targets() -> dict[str, Any]:
    """Return all that is fuzzed, by its name: found by walking the package."""
    found: dict[str, Any] = {}
    for name, value in public_objects():
        short = name.rsplit(".", 1)[1]
        is_error = isinstance(value, type) and issubclass(value, Exception)
        if not (short in NOT_CALLED or is_error or not inspect.signature(value).parameters):
            found.setdefault(short, value)
    return found


def public_objects() -> Iterator[tuple[str, Any]]:
    """Yield every public function and class of the modules that users hand things to."""
    yield from _exported("unflip", unflip)
    for module in pkgutil.iter_modules(unflip.__path__):
        if not module.name.startswith("_") and module.name not in ELSEWHERE:
            yield from _exported(module.name, import_module(f"unflip.{module.name}"))
    yield from _exported("paper.bounds", import_module("unflip.paper.bounds"))
    for name in ALSO:
        module_name, _, function = name.rpartition(".")
        yield name, getattr(import_module(f"unflip.{module_name}"), function)


def _exported(prefix: str, module: Any) -> Iterator[tuple[str, Any]]:
    names = getattr(module, "__all__", None)
    for name in names if names is not None else list(vars(module)):
        value = getattr(module, name)
        is_own = names is not None or getattr(value, "__module__", None) == module.__name__
        is_called = inspect.isfunction(value) or inspect.isclass(value)
        if is_own and is_called and not name.startswith("_"):
            yield f"{prefix}.{name}", value


def arguments(function: Callable[..., Any], s: Sizes, target: str = "") -> dict[str, Any]:
    """Return arguments by name; of those with a default, some are left out."""
    given = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self" or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        always = parameter.default is parameter.empty or (target, name) in SPECIAL
        if always or s.random.random() < 0.4:
            given[name] = SPECIAL.get((target, name), ARGUMENTS[name])(s)
    return given


class Case(NamedTuple):
    """One call of a target; its arguments do not depend on what other targets there are."""

    target: str
    number: int

    def sizes(self, seed: int) -> Sizes:
        """Return what its arguments are drawn from."""
        return draw_sizes(np.random.default_rng([seed, crc32(self.target.encode()), self.number]))


def case_at(position: int) -> Case:
    """Return the case at a position: one of every target, then another one of each."""
    names = list(targets())
    return Case(names[position % len(names)], position // len(names))


def run_case(seed: int, case: Case) -> Outcome:
    """Return how a case ends."""
    name = case.target
    s = case.sizes(seed)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            fault = _called(name, targets()[name], s)
        except Exception as error:  # noqa: BLE001 (every one is an outcome)
            return Outcome(name, *judged(error))
    return Outcome(name, *fault) if fault else Outcome(name, "ok")


def _called(name: str, target: Any, s: Sizes) -> tuple[str, str] | None:
    """Call the target, and return what is wrong with what came of it."""
    given = arguments(target, s, name)
    before = {key: frozen(value) for key, value in given.items()}
    made = target(**given)
    fault = _changed(given, before)
    if fault is None and isinstance(made, BaseEstimator):
        return _fitted(name, made, s) if name not in SLOW else None
    if fault is None and isinstance(made, VALUES):
        fault = _asked(name, made, s)
    return fault or _not_finite(name, "", made)


def _asked(name: str, made: Any, s: Sizes, methods: Sequence[str] = ()) -> tuple[str, str] | None:
    """Call one of the methods that take more than rows; by default, one of all that are public."""
    public = [
        each for each, _ in inspect.getmembers(made, inspect.ismethod) if not each.startswith("_")
    ]
    chosen = [each for each in methods or public if each in public]
    if not chosen:
        return None
    method = getattr(made, s.one_of(chosen))
    given = arguments(method, s, method.__name__)
    before = {key: frozen(value) for key, value in given.items()}
    fault = _not_finite(name, method.__name__, method(**given))
    return fault or _changed(given, before)


def _fitted(name: str, estimator: Any, s: Sizes) -> tuple[str, str] | None:
    given = arguments(estimator.fit, s)
    before = {key: frozen(value) for key, value in given.items()}
    parameters = frozen(estimator.get_params(deep=False))
    estimator.fit(**given)
    fault = _changed(given, before)
    if fault is None and frozen(estimator.get_params(deep=False)) != parameters:
        fault = "changed input", "a parameter of the estimator"
    for attribute in LEARNT:
        if fault is None and hasattr(estimator, attribute):
            fault = _not_finite(name, attribute, getattr(estimator, attribute))
    new = rows(s) if s.is_odd() else given.get("X", given.get("X_den", given.get("data")))
    for method in METHODS:
        if fault is None and new is not None and hasattr(estimator, method):
            kept = frozen(new)
            values = getattr(estimator, method)(new)
            fault = _not_finite(name, method, values) if method != "predict_log_proba" else None
            if fault is None and frozen(new) != kept:
                fault = "changed input", f"X in {method}"
    if fault is None and isinstance(estimator, BaseDensityRatio):
        fault = _not_finite(name, "score", estimator.score(given["X_num"], given["X_den"]))
    return fault or _asked(name, estimator, s, ("issues", "interval", "fit_posterior"))


def judged(error: BaseException) -> tuple[str, str]:
    """Return "refused" where a library raised the error itself, in words; else what it is.

    It did where the innermost line is a `raise` of its own, or of its compiled part; and where
    scikit-learn was converting an array, or a seed, others' words are its words.
    """
    frames = traceback.extract_tb(error.__traceback__)
    compiled = frames[-1].filename.endswith(".pyx") and _is_of(frames[-2], "sklearn")
    last = frames[-1]
    detail = f"{type(error).__name__}: {error} ({os.path.basename(last.filename)}:{last.lineno})"
    line = linecache.getline(last.filename, last.lineno or 0).strip()
    raised = line.startswith("raise") and any(_is_of(last, name) for name in LIBRARIES)
    converting = any(_is_of(frame, "sklearn") and frame.name in CONVERTING for frame in frames)
    clear = (raised or compiled or converting) and not isinstance(error, AssertionError)
    return ("refused" if clear and str(error).strip() else "internal error"), detail


def _is_of(frame: traceback.FrameSummary, library: str) -> bool:
    """Return whether the file is of a library, wherever the copy of the repository lies."""
    for folder in ("site-packages", "src"):
        _, found, within = frame.filename.rpartition(f"{os.sep}{folder}{os.sep}")
        if found:
            return within.split(os.sep)[0] == library
    return False


def _changed(given: dict[str, Any], before: dict[str, Any]) -> tuple[str, str] | None:
    changed = [name for name, value in given.items() if frozen(value) != before[name]]
    return ("changed input", ", ".join(changed)) if changed else None


def _not_finite(name: str, part: str, value: Any) -> tuple[str, str] | None:
    if name in MAY_BE_NAN or all(np.isfinite(each).all() for each in numbers(value)):
        return None
    return "not finite", f"{part or 'what is returned'}: {value!r:.200}"


def numbers(value: Any) -> Iterator[Any]:
    """Yield all floats in a result."""
    if isinstance(value, NoiseRates):
        yield np.array([end for pair in value.bounds for end in pair])
    elif isinstance(value, TransitionMatrix):
        yield value.matrix
    elif isinstance(value, (float, np.floating)):
        yield np.asarray(value)
    elif isinstance(value, np.ndarray) or sparse.issparse(value):
        flat: Any = value if isinstance(value, np.ndarray) else value.data
        if flat.dtype.kind == "f":
            yield flat
    elif isinstance(value, dict):
        for each in value.values():
            yield from numbers(each)
    elif isinstance(value, (list, tuple, Iterator)):
        for each in value:
            yield from numbers(each)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from numbers(getattr(value, field.name))


def frozen(value: Any) -> Any:
    """Return what tells whether an argument has changed."""
    if isinstance(value, np.ndarray):
        content = repr(value.tolist()) if value.dtype == object else value.tobytes()
        return value.dtype.str, value.shape, content
    if sparse.issparse(value):
        kept: Any = value
        return kept.format, kept.shape, kept.nnz, frozen(kept.toarray())
    if hasattr(value, "columns") or hasattr(value, "to_numpy"):
        index = repr(getattr(value, "index", None))
        return type(value).__name__, index, repr(np.asarray(value, dtype=object).tolist())
    if isinstance(value, dict):
        return {key: frozen(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [frozen(each) for each in value]
    if hasattr(value, "X") and hasattr(value, "y"):  # batches
        return frozen([value.X, value.y, value.sample_weight])
    return repr(value)


class Worker:
    """A process that runs one case at a time, and can be given up."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.case = case_at(0)
        self.since = 0.0
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.seed), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, case: Case) -> None:
        """Let it run a case."""
        self.case, self.since = case, time.monotonic()
        self.pipe.send(case)

    def result(self) -> Outcome | None:
        """Return how its case ended, once it has; a process that dies, or hangs, is replaced."""
        if self.pipe.poll():
            try:
                return Outcome(*self.pipe.recv())
            except EOFError:
                self._replace()
                return Outcome(self.case.target, "internal error", "the process died")
        if time.monotonic() - self.since > PATIENCE:
            self._replace()
            return Outcome(self.case.target, "hang", f"no answer in {PATIENCE:g} s")
        return None

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()

    def _replace(self) -> None:
        self.stop()
        self._start()
        self.pipe.recv()  # it has imported all


def _serve(pipe: Connection, seed: int) -> None:
    """Run the cases whose numbers arrive."""
    run_case(seed, case_at(0))  # what is imported at the first call is not counted
    pipe.send("ready")
    while True:
        pipe.send(tuple(run_case(seed, Case(*pipe.recv()))))


def fuzz(
    seed: int, seconds: float, cases: int | None, n_workers: int
) -> Iterator[tuple[Case, Outcome]]:
    """Yield case after case with its outcome, until time or cases are over."""
    workers = [Worker(seed) for _ in range(n_workers)]
    for worker in workers:
        worker.pipe.recv()
    begin, given, idle, busy = time.monotonic(), 0, list(workers), []
    try:
        while True:
            over = time.monotonic() - begin > seconds
            while idle and not over and (cases is None or given < cases):
                worker = idle.pop()
                worker.give(case_at(given))
                busy.append(worker)
                given += 1
            if not busy:
                return
            wait([worker.pipe for worker in busy], timeout=1.0)
            for worker in list(busy):
                outcome = worker.result()
                if outcome is not None:
                    busy.remove(worker)
                    idle.append(worker)
                    yield worker.case, outcome
    finally:
        for worker in workers:
            worker.stop()


def repeat(seed: int, case: Case) -> None:
    """Print how a case ends, with the traceback."""
    original, shown = judged, []

    def keep(error: BaseException) -> tuple[str, str]:
        shown.append("".join(traceback.format_exception(error)))
        return original(error)

    globals()["judged"] = keep
    outcome = run_case(seed, case)
    print(*shown, sep="\n")
    print(*outcome, sep=" | ")


def main() -> int:
    """Print the counts, and return 1 where there are faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="how long (600)")
    parser.add_argument("--seed", type=int, default=0, help="of all cases (0)")
    parser.add_argument("--cases", type=int, help="how many at most")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--case", help="repeat this one, such as KLIEP:7, with its traceback")
    options = parser.parse_args()
    if options.case is not None:
        target, _, number = options.case.partition(":")
        repeat(options.seed, Case(target, int(number)))
        return 0
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    faults: dict[tuple[str, str], list[tuple[Case, str]]] = defaultdict(list)
    begin = time.monotonic()
    for case, outcome in fuzz(options.seed, options.seconds, options.cases, options.workers):
        counts[outcome.target][outcome.kind] += 1
        if outcome.kind in FAULTS:
            faults[outcome.target, outcome.kind].append((case, outcome.detail))
    kinds = ("ok", "refused", *FAULTS)
    print(f"{'':36s}" + "".join(f"{kind:>16s}" for kind in kinds))
    for target in sorted(counts):
        print(f"{target:36s}" + "".join(f"{counts[target][kind]:16d}" for kind in kinds))
    total: Counter[str] = sum(counts.values(), Counter())
    print(f"{'all':36s}" + "".join(f"{total[kind]:16d}" for kind in kinds))
    print(f"{sum(total.values())} cases in {time.monotonic() - begin:.0f} s")
    for (target, kind), examples in sorted(faults.items()):
        print(f"\n{target}, {kind}: {len(examples)}")
        for case, detail in examples[:EXAMPLES]:
            which = f"--seed {options.seed} --case {case.target}:{case.number}"
            print(f"  python -m benchmarks.fuzz {which}\n    {detail}")
    return 1 if faults else 0


if __name__ == "__main__":
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")  # read by the workers, when they load numpy
    sys.exit(main())
