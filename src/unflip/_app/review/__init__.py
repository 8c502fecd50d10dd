"""A page to review labels by hand, and estimates from the decisions: see `unflip.review`."""

from unflip._app.review._export import EXPORTED_FILES as EXPORTED_FILES
from unflip._app.review._export import export as export
from unflip._app.review._file import DecisionsUnavailableError as DecisionsUnavailableError
from unflip._app.review._file import OtherTableError as OtherTableError
from unflip._app.review._queue import Opinion as Opinion
from unflip._app.review._queue import QueueFilter as QueueFilter
from unflip._app.review._sample import sample_estimate as sample_estimate
from unflip._app.review._sampled import Decision as Decision
from unflip._app.review._server import check_review as check_review
from unflip._app.review._server import leading_page as leading_page
from unflip._app.review._server import serve as serve
from unflip._app.review._session import ReviewSession as ReviewSession
from unflip._app.review._store import Decisions as Decisions
from unflip._app.review._store import StaleDecisionError as StaleDecisionError
from unflip._app.review._store import check_name as check_name
from unflip._app.review._table import ReviewTable as ReviewTable
from unflip._app.review._table import RowsOfFile as RowsOfFile
