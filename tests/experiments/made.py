"""Results made by hand: planned runs whose outcomes a function gives."""

from collections.abc import Callable, Iterable

from unflip.paper.experiments import Outcome, Results, Run, planned_runs, published, summarise


def made_outcomes(
    names: Iterable[str],
    accuracy: Callable[[Run], float] = lambda run: 70.0,
    *,
    rates: Callable[[Run], tuple[float, float]] = lambda run: (run.rho_pos, run.rho_neg),
    repeats: int = 2,
    peers: bool = False,
) -> dict[Run, Outcome]:
    """Return an outcome of 0.5 seconds for every planned run."""
    return {
        run: Outcome(accuracy(run), *rates(run), 0.5)
        for run in planned_runs(names, repeats, peers=peers)
    }


def made_results(*arguments, repeats: int = 2, **options) -> Results:
    """Return the figures of such outcomes."""
    return summarise(made_outcomes(*arguments, repeats=repeats, **options), repeats)


def papers(run: Run, quantity: str = "accuracy") -> float:
    """Return what the paper printed for a run's cell."""
    cell = (run.experiment, run.dataset, run.rho_pos, run.rho_neg, run.method)
    return published()[cell, quantity].mean
