"""A local page on which a person checks labels, and what follows from the answers.

`serve` shows the rows and keeps the decisions on disk, `export` writes what was decided, and
`sample_estimate` turns a reviewed random sample into noise rates. Only `serve` needs
`pip install 'unflip[review]'`.
"""

from unflip._app.review import Decisions, Source, export, sample_estimate, serve

__all__ = ["Decisions", "Source", "export", "sample_estimate", "serve"]
