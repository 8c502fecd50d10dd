"""Markup of sentences: `**bold**`, and escaped data; rounding of numbers."""

import re
from typing import Any

DIGITS = 4
"""Significant digits of estimates."""

AS_GIVEN = frozenset({"classes", "label", "suggested", "positive_class", "values"})
"""Keys of values from the data, which are not rounded."""

MARK = r"([\\`*_\[\]<>#&~])"

ESCAPED = re.compile(r"\\" + MARK)
"""An escaped mark."""


def plain(text: str) -> str:
    r"""Escape text from data, so that it is shown literally and on one line.

    Examples
    --------
    >>> from unflip._app.markup import plain
    >>> print(plain("**<b>"))
    \*\*\<b\>
    """
    shown = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))
    return re.sub(MARK, r"\\\1", shown)


def unmarked(sentence: str) -> str:
    r"""Return a sentence without its marks, as plain text.

    Examples
    --------
    >>> from unflip._app.markup import unmarked
    >>> print(unmarked(r"**bold** \*\*"))
    bold **
    """
    return ESCAPED.sub(r"\1", re.sub(r"(?<!\\)\*\*", "", sentence))


def rounded(content: Any) -> Any:
    """Round the fractions in numbers, lists and dictionaries to a few significant digits.

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
