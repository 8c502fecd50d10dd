"""A local page to review labels by hand, and estimates from the decisions.

`serve` shows the rows and stores decisions, `export` writes them to files, and `sample_estimate`
estimates noise rates from a reviewed random sample. Only `serve` needs
`pip install 'unflip[review]'`.
"""

from unflip._app.review import Decision as Decision
from unflip._app.review import Decisions, ReviewTable, export, sample_estimate, serve
from unflip._app.review import DecisionsUnavailableError as DecisionsUnavailableError
from unflip._app.review import OtherTableError as OtherTableError
from unflip._app.review import StaleDecisionError as StaleDecisionError

__all__ = ["Decisions", "ReviewTable", "export", "sample_estimate", "serve"]
