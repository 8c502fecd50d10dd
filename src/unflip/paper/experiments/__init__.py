"""The paper's tables and figure, run again and compared with the printed numbers.

An *experiment* is a table or a figure: data sets x noise rates x methods. A *run* is one fit of
one method on one split; all methods see the same splits and the same flips. `_choices.py` decides
what the paper leaves open, once for all methods of a table.
"""

from unflip.paper.experiments._choices import REPEATS
from unflip.paper.experiments._choices import stated_choices as stated_choices
from unflip.paper.experiments._compare import Measurement, Results, summarise
from unflip.paper.experiments._config import EXPERIMENTS, METHOD_NAMES, Experiment
from unflip.paper.experiments._document import reproduction_page
from unflip.paper.experiments._methods import make_classifier as make_classifier
from unflip.paper.experiments._methods import make_learner as make_learner
from unflip.paper.experiments._methods import make_rate_estimator as make_rate_estimator
from unflip.paper.experiments._pictures import require_matplotlib
from unflip.paper.experiments._protocol import Outcome, Run, perform, planned_runs
from unflip.paper.experiments._protocol import dataset_table as dataset_table
from unflip.paper.experiments._protocol import noisy_split as noisy_split
from unflip.paper.experiments._published import Published as Published
from unflip.paper.experiments._published import published as published
from unflip.paper.experiments._run import JOURNAL, Journal, run_all
from unflip.paper.experiments._save import read_results, save_results

__all__ = [
    "EXPERIMENTS",
    "JOURNAL",
    "METHOD_NAMES",
    "REPEATS",
    "Experiment",
    "Journal",
    "Measurement",
    "Outcome",
    "Results",
    "Run",
    "perform",
    "planned_runs",
    "read_results",
    "reproduction_page",
    "require_matplotlib",
    "run_all",
    "save_results",
    "summarise",
]
