"""Model files: skops's, which run no code of theirs when loaded, with a note of their origin.

The file is a zip archive; `unflip.json` in it holds the provenance, readable by anything.
"""

import importlib.metadata
import io
import json
import platform
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unflip._files import write_whole

NOTE = "unflip.json"
FORMAT = 1

NEEDED = ("label", "columns", "set_aside")
"""What a model cannot be used without: which columns it learnt from."""

PACKAGES = ("unflip", "scikit-learn", "numpy", "scipy", "skrub", "polars", "skops")

OUR_CLASSES = re.compile(r"(unflip|sklearn|skrub|numpy|polars\.datatypes)(\.\w+)*\._?[A-Z]\w*")
"""Classes are rebuilt from plain values. Functions are not trusted by their package: a model may
call them with arguments of its own."""

SAFE_NAMES = re.compile(r"numpy\.dtype|skrub\.(_dataframe\._common|_table_vectorizer|selectors).*")
"""What skrub's column selectors are made of: tests of a column's type."""


class ModelFileError(ValueError):
    """A file that is no model of unflip, or one that asks for more than it is trusted with."""


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a model's result hangs on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue  # not installed, so the result does not hang on it
    return found


def save_model(path: Path, model: Any, provenance: dict[str, Any]) -> None:
    """Write a model and where it comes from, whole or not at all.

    Parameters
    ----------
    path : Path
        Where to.
    model : estimator
        A fitted one.
    provenance : dict
        What to know about it, ready for `json.dumps`: at least `label`, `columns` and
        `set_aside`, that is where the rows come from. Versions are added.
    """
    buffer = io.BytesIO(_skops().dumps(model, compression=zipfile.ZIP_DEFLATED))
    note = {"format": FORMAT, "versions": versions(), **provenance}
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(NOTE, json.dumps(note, indent=2))
    write_whole(path, buffer.getvalue())


def load_model(path: Path, *, trusted: Sequence[str] = ()) -> tuple[Any, dict[str, Any]]:
    """Return a model and its provenance.

    Parameters
    ----------
    path : Path
        A file written by :func:`save_model`.
    trusted : sequence of str, default=()
        Names of types beyond unflip, scikit-learn, skrub and numpy that the file may hold.
    """
    skops = _skops()
    try:
        data = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            provenance = json.loads(archive.read(NOTE))
        if provenance["format"] != FORMAT:
            raise ModelFileError(
                f"{path} is a model file of format {provenance['format']}, and this unflip reads "
                f"{FORMAT}: train it again, or use the unflip that wrote it."
            )
        for name in (*NEEDED, "versions"):
            provenance[name]
        asked = skops.get_untrusted_types(data=data)
    except (zipfile.BadZipFile, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ModelFileError(f"{path} is not a model file of unflip.") from error
    strangers = [name for name in asked if not _is_ours(name) and name not in trusted]
    if strangers:
        raise ModelFileError(
            f"{path} asks for types that unflip does not trust: {', '.join(strangers)}. If you "
            "know where the file comes from, and them, say so: "
            + " ".join(f"--trust {name}" for name in strangers)
        )
    return skops.loads(data, trusted=asked), provenance


def changed_versions(provenance: dict[str, Any]) -> list[str]:
    """Return the packages whose version is not the one a model was trained with, in words."""
    now, then = versions(), provenance["versions"]
    return [
        f"{name} {now.get(name, 'missing')} (trained with {then[name]})"
        for name in PACKAGES
        if name in then and now.get(name) != then[name]
    ]


def _is_ours(name: str) -> bool:
    return bool(OUR_CLASSES.fullmatch(name) or SAFE_NAMES.fullmatch(name))


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("model files need skops: pip install 'unflip[cli]'") from error
    return skops.io
