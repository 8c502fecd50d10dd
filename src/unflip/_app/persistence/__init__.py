"""Model files: zip archives of data without objects, and their provenance.

`unflip.json` holds the provenance and the plain values of the fitted state; arrays are members in
numpy's format. Only a classifier of another package is an object, written by skops.
"""

import importlib.metadata
import json
import platform
import re
import stat
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from unflip._app.persistence._archive import (
    NOTE,
    OTHER,
    SCHEMA,
    Archive,
    BrokenFileError,
    as_npy,
    pack,
)
from unflip._app.persistence._predictors import Model as Model
from unflip._app.persistence._state import (
    classifier_state,
    encoder_state,
    labels_state,
    read_classifier,
    read_encoder,
    read_imputation,
    read_labels,
)
from unflip._utils.files import write_whole
from unflip._utils.typing import Record

FORMAT = 2

PACKAGES = ("unflip", "scikit-learn", "numpy", "scipy", "polars", "skops")

VERSION_PATTERN = re.compile(r"[\w.+!-]{1,60}", re.ASCII)
KIND = re.compile(r"[a-z]{1,20}")

TYPE = re.compile(r"[\w.<>]{1,300}", re.ASCII)

CONTAINERS = ("collections.OrderedDict", "collections.defaultdict")
"""Containers that run no code: trusted if any other type is."""

HERE = "<file>"
"""Placeholder for the path of the file in messages."""

MOST_NAMES = 30
"""Maximum number of names in a message."""


class ModelFileError(ValueError):
    """A file that is not a model of unflip, or needs types that are not trusted."""


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that affect predictions."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue  # not installed
    return found


def save_model(path: Path, model: Pipeline, provenance: Record) -> list[str]:
    """Write a model and its provenance; return the types that loading it must trust.

    The steps of the model are "table", from `make_vectorizer`, and "classifier".
    """
    table, classifier = model["table"], model["classifier"].estimator_
    columns, arrays = encoder_state(table["columns"])
    arrays["gaps_mean"] = table["impute"].statistics_
    arrays["gaps_flagged"] = table["impute"].indicator_.features_.astype(np.int32)
    arrays["gaps_centre"] = table["centre"].mean_
    own, others, needed = classifier_state(classifier), {}, []
    if own is None:
        others[OTHER] = _dumped(classifier)
        needed = _types(Archive(others[OTHER]))
        state = {"kind": "other", "types": needed}
    else:
        state, fitted = own
        arrays |= {f"classifier_{name}": array for name, array in fitted.items()}
    try:
        labels = labels_state(classifier.classes_)
    except BrokenFileError as error:
        raise ModelFileError(f"the model cannot be written to a file: {error}.") from error
    note = {"format": FORMAT, "versions": versions(), **provenance}
    note["model"] = {"columns": columns, "labels": labels, "classifier": state}
    members = {NOTE: json.dumps(note, indent=1).encode(), **others}
    members |= {f"{name}.npy": as_npy(array) for name, array in arrays.items()}
    write_whole(path, _packed(members))
    return needed


def load_model(path: Path, *, trusted: Sequence[str] = ()) -> tuple[Model, Record]:
    """Return a model and its provenance; `trusted` names packages and types that may be loaded."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ModelFileError(f"{path} is not a regular file: name a model file of unflip.")
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ModelFileError(f"{path} is not a model file of unflip.")
    try:
        archive = Archive(path.read_bytes())
        provenance = _provenance(archive.read_json(NOTE), path)
        archive.check_names()
        model = _model(provenance.pop("model", None), archive, set(provenance["columns"]), trusted)
        archive.check_all_read()
    except ModelFileError as error:
        raise ModelFileError(str(error).replace(HERE, str(path))) from error
    except Exception as error:  # on damaged files zipfile and json raise many types
        raise ModelFileError(
            f"{path} is not a model file of unflip, or it is damaged: {_reason(error)}"
        ) from error
    return model, provenance


def _packed(members: dict[str, bytes]) -> bytes:
    """Return the bytes of a file, compressed unless reading would then reject it as a zip bomb."""
    data = pack(members.items(), compression=zipfile.ZIP_DEFLATED).getvalue()
    try:
        archive = Archive(data)
        archive.read_json(NOTE)
        if OTHER in members:
            archive.inner(OTHER).read_json(SCHEMA)
    except BrokenFileError:
        return pack(members.items()).getvalue()
    return data


def _model(state: Any, archive: Archive, names: set[str], trusted: Sequence[str]) -> Model:
    """Return the model that the state and the arrays describe."""
    if not isinstance(state, dict):
        raise BrokenFileError(f"{NOTE} does not describe a model")
    encoder = read_encoder(state.get("columns"), archive, names)
    imputation = read_imputation(archive, sum(column.width for column in encoder.columns_))
    labels = read_labels(state.get("labels"))
    kind = state.get("classifier")
    if isinstance(kind, dict) and kind.get("kind") == "other":
        return Model(encoder, imputation, labels, _loaded(kind.get("types"), archive, trusted))
    classifier = read_classifier(kind, archive, imputation.centre.size, labels.size)
    return Model(encoder, imputation, labels, classifier)


def _dumped(classifier: Any) -> bytes:
    """Return a classifier of another package in the format of skops."""
    try:
        return bytes(_skops().dumps(classifier))
    except ImportError:
        raise
    except Exception as error:
        raise ModelFileError(
            f"skops cannot write {type(classifier).__name__} to a file: {_reason(error)}"
        ) from error


def _loaded(stated: Any, archive: Archive, trusted: Sequence[str]) -> Any:
    """Return the classifier of another package if all its types are trusted."""
    if not isinstance(stated, list) or not stated or not all(map(_matches(TYPE), stated)):
        raise BrokenFileError("its classifier has no name of a type")
    _check_trusted(stated, trusted)  # before skops reads the file
    inner = archive.inner(OTHER)
    names = _types(inner)
    _check_trusted(names, trusted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # changed_versions reports other versions
        return _skops().loads(inner.stored(), trusted=names)


def _check_trusted(names: Sequence[str], trusted: Sequence[str]) -> None:
    """Reject types that the user does not trust."""
    untrusted = [name for name in names if not _is_trusted(name, trusted)]
    if untrusted:
        raise ModelFileError(
            f"the classifier in {HERE} is an object of another package, and loading it can run "
            f"code from the file: {_listed(untrusted)}. If you trust its source, add "
            f"{trust_options(untrusted)}"
        )


def _is_trusted(name: str, trusted: Sequence[str]) -> bool:
    """Return whether a type, or its package, is trusted."""
    package = name.partition(".")[0]
    # the standard library can do anything: its types are trusted one by one
    by_package = package in trusted and package not in sys.stdlib_module_names
    return name in trusted or by_package or (bool(trusted) and name in CONTAINERS)


def _types(archive: Archive) -> list[str]:
    """Return the type of a classifier, and the types in it that skops does not trust."""
    schema = archive.read_json(SCHEMA)
    names = {f"{schema['__module__']}.{schema['__class__']}"}
    names |= set(_skops().get_untrusted_types(data=archive.stored()))
    if not all(map(_matches(TYPE), names)):
        raise BrokenFileError("its classifier has no name of a type")
    return sorted(names)


def changed_versions(provenance: Record) -> list[str]:
    """Describe the packages whose version differs from that at training."""
    now, then = versions(), provenance["versions"]
    return [
        f"{name} {now.get(name, 'missing')} (trained with {then[name]})"
        for name in PACKAGES
        if name in then and now.get(name) != then[name]
    ]


def trust_options(names: Sequence[str]) -> str:
    """Return the options of `unflip predict` that trust these names."""
    return _listed([f"--trust {name}" for name in names], " ")


def packages_of(names: Sequence[str]) -> list[str]:
    """Return what to trust: the package of several types, or a single type."""
    tops = Counter(name.partition(".")[0] for name in names if name not in CONTAINERS)
    found = []
    for name in names:
        package = name.partition(".")[0]
        if tops[package] > 1 and package not in sys.stdlib_module_names:
            found.append(package)
        elif name not in CONTAINERS:
            found.append(name)
    return [*dict.fromkeys(found)] or list(names)


def _provenance(note: object, path: Path) -> Record:
    """Return the provenance of a file after checking it."""
    if not isinstance(note, dict) or type(note.get("format")) is not int:
        raise BrokenFileError(f"{NOTE} does not state the format")
    if note["format"] != FORMAT:
        raise ModelFileError(
            f"{path} is a model file of format {note['format']}, but this version of unflip reads "
            f"format {FORMAT}: fit the model again (`unflip fit`)."
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
            raise BrokenFileError(f"{NOTE} has no valid {name}")
    return note


def _matches(pattern: re.Pattern[str]) -> Any:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _reason(error: Exception) -> str:
    """Return the reason of an error as one line."""
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
