"""The marks in sentences: `**bold**`, and data that is shown as it is; numbers in few digits."""

import re
from typing import Any

DIGITS = 4
"""Significant digits of what is estimated; more are not known."""

AS_GIVEN = frozenset({"classes", "label", "suggested", "positive_class", "values"})
"""Keys of what comes from the data, in which nothing is rounded."""

MARK = r"([\\`*_\[\]<>#&~])"

ESCAPED = re.compile(r"\\" + MARK)
"""A mark behind a backslash."""


def plain(text: str) -> str:
    r"""Return text from data such that it is shown as it is, on one line.

    Examples
    --------
    >>> from unflip._app.markup import plain
    >>> print(plain("**<b>"))
    \*\*\<b\>
    """
    shown = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))
    return re.sub(MARK, r"\\\1", shown)


def unmarked(sentence: str) -> str:
    r"""Return a sentence without its marks, for where nothing is bold.

    Examples
    --------
    >>> from unflip._app.markup import unmarked
    >>> print(unmarked(r"**bold** \*\*"))
    bold **
    """
    return ESCAPED.sub(r"\1", re.sub(r"(?<!\\)\*\*", "", sentence))


def rounded(content: Any) -> Any:
    """Return numbers, lists and dictionaries with fractions in few significant digits.

    Examples
    --------
    >>> from unflip._app.markup import rounded
    >>> rounded({"rate": 0.29285327436225145, "label": 0.123456})
    {'rate': 0.2929, 'label': 0.123456}
    """
    if isinstance(content, float):
        return float(f"{content:.{DIGITS}g}")
    if isinstance(content, (list, tuple)):
        return [rounded(value) for value in content]
    if isinstance(content, dict):
        return {key: value if key in AS_GIVEN else rounded(value) for key, value in content.items()}
    return content
