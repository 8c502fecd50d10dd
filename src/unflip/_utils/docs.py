"""Sections `Parameters` of public docstrings, in which each parameter is described in one place."""

import re
from collections.abc import Callable
from inspect import getdoc, signature
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

SECTION = re.compile(r"\n(Returns|Yields|Raises|Notes|References|Examples)\n---")

COMMON = {
    "X": "{array-like, sparse matrix, dataframe} of shape (n_samples, n_features)\n    Samples.",
    "y": "array-like of shape (n_samples,)\n    Observed labels.",
    "sample_weight": "array-like of shape (n_samples,), default=None\n"
    "    Sample weights: how often each sample counts.",
    "checked": "CheckedLabels, default=None\n    True labels of some samples.",
}

DENSE = "array-like of shape (n_samples, n_features)\n    Samples."


def documented(returns: str = "", **texts: str) -> Callable[[F], F]:
    """Return a decorator that adds the section: `texts` by parameter, or else those in `COMMON`.

    `returns` becomes the section `Returns`.
    """
    by_name = COMMON | texts

    def add(function: F) -> F:
        text = getdoc(function) or ""
        names = [name for name in signature(function).parameters if name != "self"]
        entries = "\n".join(f"{name} : {by_name[name]}" for name in names)
        later = SECTION.search(text)
        at = later.start() if later else len(text)
        section = f"\n\nParameters\n----------\n{entries}\n"
        section += f"\nReturns\n-------\n{returns}\n" if returns else ""
        function.__doc__ = text[:at].rstrip() + section + text[at:]
        return function

    return add
