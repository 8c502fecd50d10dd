"""What the paper leaves open is the same for every method of a table."""

from importlib.util import find_spec
from itertools import product

import pytest
from sklearn.pipeline import Pipeline

from unflip import NoiseRates
from unflip.paper.experiments import (
    EXPERIMENTS,
    make_classifier,
    make_learner,
    make_rate_estimator,
    stated_choices,
)

N_ROWS = 200
CHOICES = stated_choices()

CLASSIFIERS = [
    (method, learner)
    for experiment in EXPERIMENTS.values()
    if experiment.name.startswith("table") and not experiment.measures_rates
    for learner in experiment.learners
    for method in experiment.methods
]
if find_spec("cleanlab"):
    CLASSIFIERS += [("cleanlab", "kernel-logistic"), ("cleanlab", "linear-logistic")]


def values_of(method: str, learner: str) -> dict[str, list]:
    """Return the values of all parameters, nested ones too, by their last name."""
    model = make_classifier(method, learner, N_ROWS, None, seed=0)
    model = model.clf if method == "cleanlab" else model  # has no get_params of its own parts
    values = {}
    for name, value in model.get_params().items():
        values.setdefault(name.split("__")[-1], []).append(value)
    return values


@pytest.mark.parametrize(("method", "learner"), CLASSIFIERS)
def test_every_method_of_a_table_has_the_same_choices(method, learner):
    values = values_of(method, learner)
    assert values["feature_range"] == [tuple(CHOICES["feature_range"])]
    if method == "stpmkl":
        assert values["C"] == [pytest.approx(1 / (CHOICES["alpha"] * N_ROWS))]
        return
    assert values["alpha"] == [CHOICES["alpha"]]
    if learner.startswith("kernel"):
        assert values["gamma"] == [pytest.approx(1 / (2 * CHOICES["kernel_width"] ** 2))]
    losses = {value for name, found in values.items() if name == "loss" for value in found}
    assert losses == {learner.split("-")[1]}
    kind = type(make_learner(learner))
    assert sum(isinstance(value, kind) for found in values.values() for value in found) == 1


@pytest.mark.parametrize(
    ("method", "learner"), [case for case in CLASSIFIERS if case[0] in ("ld", "ub", "stpmkl", "iw")]
)
def test_rates_are_cross_validated_alike_where_they_are_not_known(method, learner):
    values = values_of(method, learner)
    assert values["scoring"] == ["noisy_accuracy"]
    assert CHOICES["cross_validation_folds"] in values["cv"]
    (grid,) = (grid for grid in values["grid"] if grid is not None)
    assert {rate for pair in grid for rate in pair} == set(CHOICES["rate_grid"])
    if method == "ld":  # whose costs depend on the difference only
        every = {round(a - b, 9) for a, b in product(CHOICES["rate_grid"], repeat=2)}
        assert sorted(round(a - b, 9) for a, b in grid) == sorted(every)
    elif method != "stpmkl":
        assert set(EXPERIMENTS["table3"].pairs) | set(EXPERIMENTS["figure1"].pairs) <= set(grid)


@pytest.mark.parametrize("method", ["ld", "ub", "iw"])
def test_known_rates_and_the_seed_go_to_the_method(method):
    known = NoiseRates(0.3, 0.1)
    model = make_classifier(method, "linear-logistic", N_ROWS, known, seed=17)
    last = model[-1] if isinstance(model, Pipeline) else model
    assert last.noise_rates == known
    model = make_classifier(method, "linear-logistic", N_ROWS, None, seed=17)
    last = model[-1] if isinstance(model, Pipeline) else model
    assert last.random_state == 17


def test_the_minimum_is_of_kernel_densities_in_two_dimensions_and_else_of_a_density_ratio():
    kinds = {
        dataset: type(make_rate_estimator("liu-tao", dataset, 0.5, seed=0).posterior).__name__
        for dataset in ("synthetic-2d", "synthetic-20d", "heart", "diabetis")
    }
    assert kinds.pop("synthetic-2d") == "KernelDensityPosterior"
    assert set(kinds.values()) == {"DensityRatioPosterior"}
    assert make_rate_estimator("scott", "heart", 0.44, seed=0).clean_prior == 0.44


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="'forest'"):
        make_classifier("forest", "linear-logistic", N_ROWS, None, seed=0)
    with pytest.raises(ValueError, match="'oracle'"):
        make_rate_estimator("oracle", "heart", 0.5, seed=0)
    for learner in ("linear-cubic", "kernel-cubic"):
        with pytest.raises(ValueError, match="cubic"):
            make_learner(learner).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
