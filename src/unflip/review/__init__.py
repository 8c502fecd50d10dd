"""A page on which a person checks labels, and what follows from the answers.

`serve` shows the rows and keeps the decisions on disk, `export` writes what was decided, and
`sample_estimate` turns a reviewed random sample into noise rates. Only `serve` needs
`pip install 'unflip[review]'`.
"""

from unflip.review._export import Exported, export
from unflip.review._sample import SampleEstimate, clopper_pearson, sample_estimate
from unflip.review._server import serve
from unflip.review._source import Source
from unflip.review._store import Decision, Decisions, StaleDecisionError

__all__ = [
    "Decision",
    "Decisions",
    "Exported",
    "SampleEstimate",
    "Source",
    "StaleDecisionError",
    "clopper_pearson",
    "export",
    "sample_estimate",
    "serve",
]
