"""Hashes of the rows of a table, from their cells and the names of the columns."""

import hashlib
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import Array

Hashes = NDArray[np.uint64]

KINDS = ("whole", "fraction", "missing", "text")
WHOLE, FRACTION, MISSING, TEXT = range(len(KINDS))
"""Kinds of cells; the same bits of different kinds are different cells."""


def hash_rows(columns: Mapping[str, Any]) -> Hashes:
    """Return 128 bits per row, of shape (n_rows, 2), which are equal if all cells are.

    The order of the columns does not matter, nor whether whole numbers are integers or floats; all
    missing values are equal.
    """
    hashes: Hashes | None = None
    for name, values in columns.items():
        bits, kinds = _cells(values)
        if hashes is None:
            hashes = np.zeros((kinds.size, 2), dtype=np.uint64)
        for half in range(2):
            of_kind = np.array([_key(kind, half) for kind in KINDS], dtype=np.uint64)
            of_column = np.array([_key(f"column {name}", half)], dtype=np.uint64)
            hashes[:, half] += _mixed(_mixed(bits[:, half] ^ of_kind[kinds]) + of_column)
    if hashes is None:
        raise ValueError("the table has no columns.")
    return _mixed(hashes)


def hash_texts(hashes: Hashes) -> list[str]:
    """Return the hashes as text for files; a letter keeps readers from parsing it as a number."""
    digits = np.ascontiguousarray(hashes, dtype=">u8").tobytes().hex()
    return [f"x{digits[k : k + 32]}" for k in range(0, len(digits), 32)]


def coded_texts(values: Any) -> tuple[NDArray[np.intp], list[str]]:
    """Return the cells as indices into their distinct texts, -1 if missing, and the texts."""
    if isinstance(values, nw.Series):
        values = values.alias("")  # polars takes names such as ^x$ for patterns
        missing = values.is_null().to_list()
        values = values.to_list()
    else:
        missing = [value is None or value != value for value in values]  # NaN is not itself
    places: dict[str, int] = {}
    codes = [
        -1 if absent else places.setdefault(_text(value), len(places))
        for value, absent in zip(values, missing, strict=True)
    ]
    return np.array(codes, dtype=np.intp), list(places)


def _cells(values: Any) -> tuple[Hashes, NDArray[np.intp]]:
    """Return the bits of every cell, of shape (n_rows, 2), and the indices of their kinds."""
    if isinstance(values, nw.Series):
        values = values.alias("")  # polars takes names such as ^x$ for patterns
        if values.dtype.is_integer() and values.dtype not in (nw.Int128, nw.UInt128):
            whole = values.fill_null(0).to_numpy()
            return _whole(whole, np.asarray(values.is_null().to_numpy(), dtype=bool))
        if values.dtype.is_float():
            return _fractions(values.cast(nw.Float64).to_numpy().astype(float))
    elif values.dtype.kind in "iu":
        return _whole(values, np.zeros(values.size, dtype=bool))
    elif values.dtype.kind == "f":
        return _fractions(values.astype(float))
    codes, texts = coded_texts(values)
    digests = b"".join(hashlib.blake2b(_bytes(text), digest_size=16).digest() for text in texts)
    # a missing cell, code -1, finds the last entry
    bits = np.frombuffer(digests + bytes(16), dtype="<u8").reshape(-1, 2)
    return bits[codes].astype(np.uint64), np.where(codes < 0, MISSING, TEXT)


def _whole(numbers: Array, missing: NDArray[np.bool_]) -> tuple[Hashes, NDArray[np.intp]]:
    bits = np.where(missing, 0, numbers).astype(np.int64).view(np.uint64)
    return _twice(bits), np.where(missing, MISSING, WHOLE)


def _fractions(numbers: NDArray[np.float64]) -> tuple[Hashes, NDArray[np.intp]]:
    missing = np.isnan(numbers)
    whole = (np.abs(numbers) < 2.0**63) & (numbers == np.floor(numbers))
    bits = np.ascontiguousarray(numbers).view(np.uint64).copy()
    bits[whole] = numbers[whole].astype(np.int64).view(np.uint64)
    bits[missing] = 0  # there are many NaN
    kinds = np.where(whole, WHOLE, FRACTION)
    return _twice(bits), np.where(missing, MISSING, kinds)


def _twice(bits: Hashes) -> Hashes:
    return np.stack([bits, bits], axis=1)


def _key(name: str, half: int) -> int:
    digest = hashlib.blake2b(_bytes(f"{half} {name}"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _mixed(bits: Hashes) -> Hashes:
    """Return the bits mixed, one to one: the last steps of SplitMix64 (Steele et al., 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _text(value: object) -> str:
    # str of an array leaves out its middle
    return str(value.tolist() if isinstance(value, np.ndarray) else value)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # Python strings may hold unpaired surrogates
