"""The marks in sentences: `**bold**`, and data that is shown as it is."""

import re

MARK = r"([\\`*_\[\]<>#&~])"

ESCAPED = re.compile(r"\\" + MARK)
"""A mark behind a backslash."""


def plain(text: str) -> str:
    r"""Return text from data such that it is shown as it is, on one line.

    Parameters
    ----------
    text : str
        Anything.

    Examples
    --------
    >>> from unflip._app.markup import plain
    >>> print(plain("**<b>"))
    \*\*\<b\>
    """
    shown = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))
    return re.sub(MARK, r"\\\1", shown)
