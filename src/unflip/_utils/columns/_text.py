"""Text as numbers: weighted n-grams of characters, projected to a few dimensions (LSA)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from unflip._utils.columns._kinds import cleaned
from unflip._utils.threads import one_blas_thread
from unflip._utils.typing import Floats

Keys = NDArray[np.uint64]

N_COMPONENTS = 30
"""Dimension of an encoded text, as in skrub's `StringEncoder`, chosen there by benchmarks."""

MAX_NGRAMS = 2**17
"""Maximum size of the vocabulary: the n-grams in the most texts. A language has about 10**5
n-grams of 3 and 4 characters, and 2**17 x 30 components in single precision take 16 MB."""

MAX_COUNTED_NGRAMS = 2**20
"""Maximum number of n-grams counted at a time (16 MB); above it, the rarer half is dropped."""

BLOCK_CHARACTERS = 2**18
"""Number of characters whose n-grams are extracted at a time, at about 100 bytes each."""

SPACE = ord(" ")


@dataclass(frozen=True)
class TextColumn:
    """A column of text: tf-idf of the n-grams of 3 and 4 characters within words, then an SVD.

    N-grams are known by a hash of 64 bits, so that a vocabulary is one sorted array.
    """

    kind: ClassVar[str] = "text"

    name: str
    ngrams: Keys
    idf: NDArray[np.float32]
    components: NDArray[np.float32]
    scale: float

    @classmethod
    def fit(cls, texts: "pl.Series") -> Self:
        """Learn a vocabulary, how rare each n-gram is, and the main directions of the texts."""
        ngrams, n_texts = _vocabulary(texts)
        idf = (np.log((1 + len(texts)) / (1 + n_texts)) + 1).astype(np.float32)
        if ngrams.size <= N_COMPONENTS:
            components = np.eye(ngrams.size, dtype=np.float32)
        else:
            weighted = sparse.vstack(list(_weighted(texts, ngrams, idf)), format="csr")
            # Only the start of the iterations is random, and they converge: with one start for all,
            # the same texts get the same numbers whatever the seed of what is trained on them.
            # BLAS adds up in another order with other numbers of threads.
            with one_blas_thread():
                components = TruncatedSVD(N_COMPONENTS, random_state=0).fit(weighted).components_
        unscaled = cls(texts.name, ngrams, idf, np.ascontiguousarray(components), 1.0)
        spread = float(np.sqrt(unscaled.encode(texts).var(axis=0).sum()))
        scale = spread if spread > 1e-6 else 1.0  # the resolution of single precision
        return cls(unscaled.name, ngrams, idf, unscaled.components, scale)

    @property
    def width(self) -> int:
        """Number of columns of the encoding."""
        return int(self.components.shape[0])

    def encode(self, column: "pl.Series") -> Floats:
        """Return the texts as numbers; a missing one is a text without n-grams."""
        texts = cleaned(column).fill_null("").alias("text")
        distinct = texts.unique(maintain_order=True)
        directions = self.components.T
        encoded = [block @ directions for block in _weighted(distinct, self.ngrams, self.idf)]
        places = texts.to_frame().join(
            distinct.to_frame().with_row_index("place"), on="text", maintain_order="left"
        )
        numbers = np.concatenate([np.zeros((0, self.width)), *encoded]) / self.scale
        return np.asarray(numbers[places["place"].to_numpy()], dtype=float)


def _vocabulary(texts: "pl.Series") -> tuple[Keys, NDArray[np.int64]]:
    """Return the n-grams that are in the most texts, sorted, and in how many each is."""
    known, n_texts = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    for n_rows, rows, keys in _ngrams(texts):
        found, places = np.unique(keys, return_inverse=True)
        within = _counts(rows, places, (n_rows, found.size))
        counts = np.concatenate([n_texts, np.bincount(within.indices, minlength=found.size)])
        known, places = np.unique(np.concatenate([known, found]), return_inverse=True)
        n_texts = np.bincount(places, counts, minlength=known.size).astype(np.int64)
        if known.size > MAX_COUNTED_NGRAMS:
            known, n_texts = _most_frequent(known, n_texts, MAX_COUNTED_NGRAMS // 2)
    return _most_frequent(known, n_texts, MAX_NGRAMS)


def _most_frequent(
    known: Keys, n_texts: NDArray[np.int64], n_kept: int
) -> tuple[Keys, NDArray[np.int64]]:
    kept = np.sort(np.argsort(-n_texts, kind="stable")[:n_kept])
    return known[kept], n_texts[kept]


def _weighted(texts: "pl.Series", ngrams: Keys, idf: NDArray[np.float32]) -> Iterator[Any]:
    """Yield tf-idf of blocks of texts, each row of length 1, in single precision."""
    if not ngrams.size:
        yield sparse.csr_matrix((len(texts), 0), dtype=np.float32)
        return
    for n_rows, rows, keys in _ngrams(texts):
        places = np.minimum(np.searchsorted(ngrams, keys), ngrams.size - 1)
        known = ngrams[places] == keys
        counts = _counts(rows[known], places[known], (n_rows, ngrams.size))
        counts.data *= idf[counts.indices]
        yield normalize(counts, copy=False)


def _counts(rows: NDArray[np.intp], places: NDArray[np.intp], shape: tuple[int, int]) -> Any:
    """Return how often each n-gram is in each text."""
    counts = sparse.csr_matrix((np.ones(rows.size, dtype=np.float32), (rows, places)), shape=shape)
    counts.sort_indices()
    return counts


def _ngrams(texts: "pl.Series") -> Iterator[tuple[int, NDArray[np.intp], Keys]]:
    """Yield of blocks of texts: how many they are, and for each n-gram its text and its hash."""
    ends = texts.fill_null("").str.len_chars().cum_sum().to_numpy()
    start = 0
    while start < len(texts):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + BLOCK_CHARACTERS, side="right")))
        # words are padded by a space on each side, which neighbours share
        words = (
            f" {' '.join((text or '').lower().split())} "
            for text in texts.slice(start, stop - start).to_list()
        )
        padded = list(words)
        owner = np.repeat(np.arange(len(padded)), [*map(len, padded)])
        letters = np.frombuffer("".join(padded).encode("utf-32-le"), np.uint32).astype(np.uint64)
        inside = letters != SPACE
        # a code point has 21 bits
        three = _hashed(
            letters[:-2] | letters[1:-1] << np.uint64(21) | letters[2:] << np.uint64(42)
        )
        four = _hashed(three[:-1] + letters[3:])
        # within one word: no space but at the ends; two cells have two spaces between them
        are_three = inside[1:-1]
        are_four = inside[1:-2] & inside[2:-1]
        rows = np.concatenate([owner[:-2][are_three], owner[:-3][are_four]])
        yield len(padded), rows, np.concatenate([three[are_three], four[are_four]])
        start = stop


def _hashed(keys: Keys) -> Keys:
    """Return well-mixed keys, one for each: the last step of SplitMix64 (Steele et al., 2014)."""
    keys = (keys ^ keys >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ keys >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return keys ^ keys >> np.uint64(31)
