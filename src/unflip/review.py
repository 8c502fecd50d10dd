"""A local page to review labels by hand, and estimates from the decisions.

`serve` shows the rows and stores the decisions, `export` writes them to files, and
`sample_estimate` turns a reviewed random sample into noise rates. Only `serve` needs
`pip install 'unflip[review]'`.
"""

from unflip._app.review import (
    Decision,
    Decisions,
    DecisionsUnavailableError,
    OtherTableError,
    ReviewTable,
    StaleDecisionError,
    export,
    sample_estimate,
    serve,
)

__all__ = [
    "Decision",
    "Decisions",
    "DecisionsUnavailableError",
    "OtherTableError",
    "ReviewTable",
    "StaleDecisionError",
    "export",
    "sample_estimate",
    "serve",
]
