"""Model files: skops's, of which nothing is made that is not known, with a note of their origin.

The file is a zip archive; `unflip.json` in it holds the provenance, readable by anything.
"""

import importlib.metadata
import json
import platform
import re
import stat
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

from sklearn.base import BaseEstimator

from unflip._app.persistence._archive import (
    BYTES_PER_NODE,
    LEAST_NODES,
    NOTE,
    SCHEMA_FILE,
    Archive,
    BrokenFileError,
    pack,
)
from unflip._app.persistence._model import check_model, unsound_types
from unflip._app.persistence._schema import CHILDREN as CHILDREN
from unflip._app.persistence._schema import PROTOCOL, Survey, share
from unflip._app.persistence._types import TYPES as TYPES
from unflip._files import write_whole
from unflip._typing import Record

__all__ = [
    "ModelFileError",
    "changed_versions",
    "load_model",
    "save_model",
    "trust_options",
    "versions",
]

FORMAT = 1

PACKAGES = ("unflip", "scikit-learn", "numpy", "scipy", "skrub", "polars", "skops")

VERSION_PATTERN = re.compile(r"[\w.+!-]{1,60}", re.ASCII)
KIND = re.compile(r"[a-z]{1,20}")

MOST_NAMES = 30
"""How many names a message lists."""


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


def save_model(path: Path, model: BaseEstimator, provenance: Record) -> list[str]:
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

    Returns
    -------
    names : list of str
        The types that :func:`load_model` must be told to trust.
    """
    skops = _skops()
    try:
        with zipfile.ZipFile(BytesIO(skops.dumps(model))) as archive:
            schema = share(json.loads(archive.read(SCHEMA_FILE)))
            survey = Survey()
            survey.visit(schema)
            members = {name: archive.read(name) for name in survey.files}
    except Exception as error:
        raise ModelFileError(
            f"skops cannot write {type(model).__name__} to a file: {_reason(error)}"
        ) from error
    note = {"format": FORMAT, "versions": versions(), **provenance}
    members[NOTE] = json.dumps(note, indent=2).encode()
    members[SCHEMA_FILE] = json.dumps(schema, separators=(",", ":")).encode()
    needed = sorted({*survey.strangers(), *unsound_types(model)})
    data = pack(members.items(), compression=zipfile.ZIP_DEFLATED).getvalue()
    try:
        _check_can_be_loaded(data)
    except BrokenFileError:
        # so well compressed that it would be taken for one that is meant to fill the memory
        data = pack(members.items()).getvalue()
        try:
            _check_can_be_loaded(data)
        except BrokenFileError as error:
            raise ModelFileError(
                f"what skops made of the model cannot be loaded: {error}."
            ) from error
    write_whole(path, data)
    return needed


def load_model(path: Path, *, trusted: Sequence[str] = ()) -> tuple[BaseEstimator, Record]:
    """Return a model and its provenance.

    Parameters
    ----------
    path : Path
        A file written by :func:`save_model`.
    trusted : sequence of str, default=()
        Names of types that the file may hold besides those that `unflip fit` writes by itself.
    """
    skops = _skops()
    if not stat.S_ISREG(path.stat().st_mode):
        raise ModelFileError(f"{path} is not a model file of unflip: it is no file.")
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ModelFileError(f"{path} is not a model file of unflip.")
    try:
        archive = Archive(path.read_bytes())
        provenance = _provenance(archive.read_json(NOTE), path)
        survey, schema = _survey(archive)
        _check_trusted(survey.strangers(trusted), path)
        checked = _checked(archive, survey, schema)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other versions are told by changed_versions
            model = skops.load(checked, trusted=survey.names)
            check_model(model)
            _check_trusted([name for name in unsound_types(model) if name not in trusted], path)
    except ModelFileError:
        raise
    except Exception as error:  # a damaged file can make skops do anything but run its code
        raise ModelFileError(
            f"{path} is not a model file of unflip, or it is damaged: {_reason(error)}"
        ) from error
    return model, provenance


def changed_versions(provenance: Record) -> list[str]:
    """Return the packages whose version is not the one a model was trained with, in words."""
    now, then = versions(), provenance["versions"]
    return [
        f"{name} {now.get(name, 'missing')} (trained with {then[name]})"
        for name in PACKAGES
        if name in then and now.get(name) != then[name]
    ]


def trust_options(names: Sequence[str]) -> str:
    """Return the options of `unflip predict` that trust the names."""
    return _listed([f"--trust {name}" for name in names], " ")


def _survey(archive: Archive) -> tuple[Survey, Record]:
    """Return what a file asks for, and its schema."""
    schema = archive.read_json(SCHEMA_FILE)
    survey = Survey()
    survey.visit(schema)
    archive.check("nodes", survey.n_nodes, LEAST_NODES + archive.size // BYTES_PER_NODE)
    if schema.get("protocol") != PROTOCOL:
        raise BrokenFileError(f"it was not written in protocol {PROTOCOL} of skops")
    return survey, schema


def _checked(archive: Archive, survey: Survey, schema: Record) -> BytesIO:
    """Return what was looked at, packed again, so that skops sees nothing else."""

    def members() -> Iterator[tuple[str, bytes]]:
        yield SCHEMA_FILE, json.dumps(schema).encode()
        for name, loader in survey.files.items():
            yield name, archive.read_array(name) if loader == "NdArrayNode" else archive.read(name)

    return pack(members())


def _check_can_be_loaded(data: bytes) -> None:
    archive = Archive(data)
    _checked(archive, *_survey(archive))


def _check_trusted(strangers: Sequence[str], path: Path) -> None:
    if strangers:
        raise ModelFileError(
            f"{path} asks for types that unflip does not trust: {_listed(strangers)}. If you "
            f"know where the file comes from, and them, say so: {trust_options(strangers)}"
        )


def _provenance(note: object, path: Path) -> Record:
    """Return the note of a file, if it is one that `predict` can rely on."""
    if not isinstance(note, dict) or type(note.get("format")) is not int:
        raise BrokenFileError(f"{NOTE} does not tell the format")
    if note["format"] != FORMAT:
        raise ModelFileError(
            f"{path} is a model file of format {note['format']}, and this unflip reads {FORMAT}: "
            "train it again, or use the unflip that wrote it."
        )
    columns, then, set_aside = (note.get(name) for name in ("columns", "versions", "set_aside"))
    right = {
        "label": isinstance(note.get("label"), str),
        "columns": isinstance(columns, dict) and all(map(_matches(KIND), columns.values())),
        "set_aside": isinstance(set_aside, list) and all(isinstance(x, str) for x in set_aside),
        "versions": isinstance(then, dict) and all(map(_matches(VERSION_PATTERN), then.values())),
    }
    for name, is_right in right.items():
        if not is_right:
            raise BrokenFileError(f"{NOTE} does not tell {name} as it should")
    return note


def _matches(pattern: re.Pattern[str]) -> Any:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _reason(error: Exception) -> str:
    """Return what went wrong as one line."""
    words = str(error) if isinstance(error, BrokenFileError) else f"{type(error).__name__}"
    return f"{words}."


def _listed(names: Sequence[str], separator: str = ", ") -> str:
    more = len(names) - MOST_NAMES
    return separator.join(names[:MOST_NAMES]) + (f" ... ({more} more)" if more > 0 else "")


def _skops() -> ModuleType:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("model files need skops: pip install 'unflip[cli]'") from error
    return skops.io
