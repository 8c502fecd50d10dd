"""A page on which a person checks labels, and what follows from the answers.

`serve` shows the rows and keeps the decisions on disk, `export` writes what was decided, and
`sample_estimate` turns a reviewed random sample into noise rates. Only `serve` needs
`pip install 'unflip[review]'`.
"""

from unflip._app.review._export import Exported, export
from unflip._app.review._file import DecisionsUnavailableError, OtherTableError
from unflip._app.review._fingerprint import Fingerprint
from unflip._app.review._sample import SampleEstimate, clopper_pearson, sample_estimate
from unflip._app.review._server import check_review, serve
from unflip._app.review._source import Source
from unflip._app.review._store import Decision, Decisions, StaleDecisionError

__all__ = [
    "Decision",
    "Decisions",
    "DecisionsUnavailableError",
    "Exported",
    "Fingerprint",
    "OtherTableError",
    "SampleEstimate",
    "Source",
    "StaleDecisionError",
    "check_review",
    "clopper_pearson",
    "export",
    "sample_estimate",
    "serve",
]
