"""Model files as somebody writes them who wishes harm."""

import importlib
import io
import json
import pkgutil
import warnings
import zipfile
from contextlib import redirect_stdout

import numpy as np

NOTE = {"format": 1, "versions": {}, "label": "y", "columns": {"x": "numbers"}, "set_aside": []}

SPECIAL = ("__setstate__", "__reduce__", "__reduce_ex__", "__del__")
SKIPPED = ("conftest", "f2py", "tests", "_examples")


def node(loader, name, **fields):
    module, _, cls = name.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": cls, **fields}


def constant(value):
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def text():
    return node("TypeNode", "builtins.str")


def list_of(*nodes):
    return node("ListNode", "builtins.list", content=list(nodes))


def tuple_of(*nodes):
    return node("TupleNode", "builtins.tuple", content=list(nodes))


def dict_of(**nodes):
    key_types = list_of(*(text() for _ in nodes))
    return node("DictNode", "builtins.dict", content=nodes, key_types=key_types)


def instance(name, state=None):
    return node("ObjectNode", name, content=state)


def called(name, *arguments):
    return node("ConstructorFromReduceNode", name, content=tuple_of(*arguments))


def method(owner, name, func):
    return node("MethodNode", name, content={"obj": owner, "func": func})


def array(file="0.npy"):
    return node("NdArrayNode", "numpy.ndarray", type="numpy", file=file)


def archive(schema, members=None, *, note=NOTE, compression=zipfile.ZIP_DEFLATED, protocol=2):
    """Return the bytes of a file; texts as they are, all else as JSON."""
    buffer = io.BytesIO()
    root = {**schema, "protocol": protocol} if isinstance(schema, dict) else schema
    with zipfile.ZipFile(buffer, "w", compression, compresslevel=1) as file:
        for name, content in (("schema.json", root), ("unflip.json", note)):
            if content is not None:
                file.writestr(name, content if isinstance(content, str) else json.dumps(content))
        for name, content in (members or {}).items():
            file.writestr(name, content)
    return buffer.getvalue()


def npy(header="{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", data=bytes(16)):
    """Return an array's file with the header given, whatever it says."""
    raw = header.encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + len(raw).to_bytes(2, "little") + raw + data


def saved(values):
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def classes_that_do_something(packages=("sklearn", "skrub", "numpy", "scipy")):
    """Return the classes whose making or end runs code of theirs, by where they are found."""
    found = {}
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for package in packages:
            for module in _modules(package):
                for name, value in list(vars(module).items()):
                    if isinstance(value, type) and _does_something(value):
                        found[f"{module.__name__}.{name}"] = value
    return found


def _does_something(kind):
    own = [base for base in kind.__mro__ if base.__module__ != "builtins"]
    return any(key in vars(base) for base in own for key in SPECIAL)


def _modules(name):
    try:
        module = importlib.import_module(name)
    except (ImportError, AttributeError, TypeError):
        return  # it needs what is not installed here
    yield module
    for child in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if child.name not in SKIPPED and not child.name.startswith("test"):
            yield from _modules(f"{name}.{child.name}")
