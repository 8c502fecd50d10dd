"""Text of a row, with the words that are typical of its label or of others marked."""

import re
from typing import NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from unflip._app.review._table import Column
from unflip._utils.typing import Codes, Floats

LEAST_CHARACTERS = 30
"""Minimum average number of characters of a category for a column to be text."""

MANY_LEVELS = 1000
"""Number of categories beyond which a column of several words per category is text too."""

MAX_COUNTED, MAX_WORDS = 20_000, 20_000
"""Maximum number of rows whose words are counted, and of words kept, most frequent first."""

MAX_SHOWN = 20_000
"""Maximum number of characters of a text that are shown and counted."""

Z = 2.576
"""Minimum |log odds| of a marked word, in standard errors: the 99% interval."""

WORD = re.compile(r"\w\w+")


class Part(NamedTuple):
    """A piece of text that is typical of the label (1), of other labels (-1), or of neither (0)."""

    text: str
    mark: int


def is_text(column: Column) -> bool:
    """Return whether a column is free text, which is read rather than compared."""
    if column.codes is None or not column.levels:
        return False
    if np.mean([len(level) for level in column.levels]) >= LEAST_CHARACTERS:
        return True
    n_words = [len(level.split()) for level in column.levels]
    return len(column.levels) > MANY_LEVELS and bool(np.mean(n_words) >= 2)


def words_of(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return [found.group().lower() for found in WORD.finditer(text)]


class WordMarks:
    """The words of a column that are more frequent in the texts of one label than of the others.

    A word's log odds ratio is log [n (R - r) / ((N - n) r)], where n of the N texts of the label
    and r of the R others contain it, with 1/2 added to each count (Haldane, Anscombe). The row
    itself is left out, since its words would count for its own label.
    """

    def __init__(self, column: Column, codes: Codes, n_classes: int) -> None:
        self._column, self._codes = column, codes
        step = -(-codes.size // MAX_COUNTED)
        rows = np.arange(0, codes.size, step)
        texts = [self._text(row) for row in rows.tolist()]
        self._step = step
        self._n_texts: Floats = np.bincount(codes[rows], minlength=n_classes).astype(float)
        self._vocabulary: dict[str, int] = {}
        self._counts: Floats = np.zeros((n_classes, 0))
        if any(WORD.search(text) for text in texts):
            counter = CountVectorizer(analyzer=words_of, binary=True, max_features=MAX_WORDS)
            found = counter.fit_transform(texts)
            self._vocabulary = counter.vocabulary_
            self._counts = np.vstack(
                [np.asarray(found[codes[rows] == k].sum(axis=0)) for k in range(n_classes)]
            ).astype(float)

    def scores(self, row: int) -> dict[str, float]:
        """Return the log odds ratio in standard errors of each known word of a row."""
        words = [w for w in dict.fromkeys(words_of(self._text(row))) if w in self._vocabulary]
        counts = self._counts[:, [self._vocabulary[word] for word in words]]
        given, own = self._codes[row], row % self._step == 0
        with_word, without = _split(counts[given] - own, self._n_texts[given] - own)
        others, rest = _split(
            counts.sum(axis=0) - counts[given], self._n_texts.sum() - self._n_texts[given]
        )
        odds = np.log(with_word * rest / (without * others))
        error = np.sqrt(1 / with_word + 1 / without + 1 / others + 1 / rest)
        return dict(zip(words, (odds / error).tolist(), strict=True))

    def parts(self, row: int) -> list[Part]:
        """Return the text of a row in pieces, marked."""
        text, scores = self._text(row), self.scores(row)
        parts, end = [], 0
        for found in WORD.finditer(text):
            score = scores.get(found.group().lower(), 0.0)
            if abs(score) >= Z:
                parts += [Part(text[end : found.start()], 0)] * (found.start() > end)
                parts.append(Part(found.group(), 1 if score > 0 else -1))
                end = found.end()
        return parts + [Part(text[end:], 0)] * (end < len(text))

    def _text(self, row: int) -> str:
        text = self._column.text(row) or ""
        return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def _split(n: Floats, total: float) -> tuple[Floats, Floats]:
    """Return the numbers of texts with and without a word, plus 1/2 each."""
    return n + 0.5, total - n + 0.5
