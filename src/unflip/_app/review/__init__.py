"""A page to review labels by hand, and estimates from the decisions: see `unflip.review`."""

from unflip._app.review._browser import leading_page
from unflip._app.review._explain import Explainer
from unflip._app.review._export import Exported, export
from unflip._app.review._file import DecisionsUnavailableError, OtherTableError
from unflip._app.review._fingerprint import Fingerprint
from unflip._app.review._queue import Opinion, QueueFilter, Queues
from unflip._app.review._sample import SampleEstimate, sample_estimate
from unflip._app.review._sampled import Decision
from unflip._app.review._server import check_review, serve
from unflip._app.review._session import ReviewSession
from unflip._app.review._store import Decisions, StaleDecisionError, check_name
from unflip._app.review._table import ReviewTable, RowsOfFile
from unflip.checked.internals import clopper_pearson

__all__ = [
    "Decision",
    "Decisions",
    "DecisionsUnavailableError",
    "Explainer",
    "Exported",
    "Fingerprint",
    "Opinion",
    "OtherTableError",
    "QueueFilter",
    "Queues",
    "ReviewSession",
    "ReviewTable",
    "RowsOfFile",
    "SampleEstimate",
    "StaleDecisionError",
    "check_name",
    "check_review",
    "clopper_pearson",
    "export",
    "leading_page",
    "sample_estimate",
    "serve",
]
