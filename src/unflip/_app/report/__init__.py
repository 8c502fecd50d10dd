"""The page on noisy labels, and the blocks of which it and the page on the paper are made."""

from unflip._app.report._document import Block as Block
from unflip._app.report._document import Cell as Cell
from unflip._app.report._document import Details as Details
from unflip._app.report._document import Heading as Heading
from unflip._app.report._document import Picture as Picture
from unflip._app.report._document import Table as Table
from unflip._app.report._document import Text as Text
from unflip._app.report._document import pictures_of as pictures_of
from unflip._app.report._document import to_html as to_html
from unflip._app.report._document import to_markdown as to_markdown
from unflip._app.report._report import Report as Report
from unflip._app.report._report import make_report as make_report
