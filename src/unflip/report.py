"""A one-page report on noisy labels, as HTML, Markdown or JSON."""

from unflip._app.report import Report, make_report

__all__ = ["Report", "make_report"]
