"""What skops is told to make: a tree of nodes, each with a loader and the name of a type.

skops trusts many names by itself, and some loaders whatever the name. Here every node is looked
at before anything is made, and what is not known is not trusted.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from unflip._app.persistence._archive import BrokenFileError
from unflip._app.persistence._types import TYPES
from unflip._typing import Record

Node = Record

PROTOCOL = 2
"""Of skops's format. Nodes of other protocols are loaded by other rules."""

EACH = "*"

CHILDREN: dict[str, tuple[tuple[str, ...], ...]] = {
    "DictNode": (("key_types",), ("content", EACH)),
    "DefaultDictNode": (("content", "main"), ("content", "default_factory")),
    "ListNode": (("content", EACH),),
    "SetNode": (("content", EACH),),
    "TupleNode": (("content", EACH),),
    "NdArrayNode": (("content", EACH), ("shape",)),
    "MaskedArrayNode": (("content", "data"), ("content", "mask")),
    "DTypeNode": (("content",),),
    "RandomStateNode": (("content",),),
    "RandomGeneratorNode": (("content", "bit_generator"), ("content", "seed_seq")),
    "ObjectNode": (("content",),),
    "ConstructorFromReduceNode": (("content",),),
    "LossNode": (("content",), ("__reduce__", "args")),
    "TreeNode": (("content",), ("__reduce__", "args")),
    "PartialNode": tuple(("content", name) for name in ("func", "args", "kwds", "namespace")),
    "MethodNode": (("content", "obj"),),
    "OperatorFuncNode": (("attrs",),),
    "BytesNode": (),
    "BytearrayNode": (),
    "SparseMatrixNode": (),
    "SliceNode": (),
    "FunctionNode": (),
    "TypeNode": (),
    "JsonNode": (),
}
"""Where the nodes within a node are, by its loader, in the order in which skops loads them."""

MODULE = re.compile(r"[\w.<>]{1,200}", re.ASCII)
CLASS = re.compile(r"[\w<>]{1,100}", re.ASCII)

POOL_SIZE = "4"
"""Of the seeds of numpy's random generators, as JSON."""

MOST_LEVELS = 120
"""Of nodes within nodes; skops takes several calls for each."""

MOST_VISITS = 5_000_000
"""skops looks at a node once per reference to it, and per reference to what refers to it: a short
file could keep it busy for ever."""


@dataclass
class Survey:
    """What a schema asks for.

    Parameters
    ----------
    types : set of (str, str)
        Loaders, and the names that they are to make something of.
    files : dict
        The members of the archive that are read, and by which loader.
    n_nodes : int
        How many nodes there are, references left out.
    """

    types: set[tuple[str, str]] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)
    n_nodes: int = 0
    _visits: dict[int, int] = field(default_factory=dict)
    _constants: dict[int, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """All names."""
        return sorted({name for _, name in self.types})

    def strangers(self, trusted: Iterable[str] = ()) -> list[str]:
        """Return the names that are neither of `unflip fit`'s own models nor trusted."""
        known = set(trusted)
        return sorted(
            {
                name
                for loader, name in self.types
                if name not in TYPES.get(loader, ()) and name not in known
            }
        )

    def visit(self, node: Any, level: int = 0) -> int:
        """Look at a node and all below it, and return how many visits it costs skops."""
        if not isinstance(node, dict):
            raise BrokenFileError("a node is not an object")
        if level > MOST_LEVELS:
            raise BrokenFileError(f"more than {MOST_LEVELS} nodes are nested")
        number = node.get("__id__")
        if number is not None and (type(number) is not int or number <= 0):
            raise BrokenFileError("the id of a node is not a positive integer")
        if is_reference(node):
            visits = self._visits.get(node["__id__"])
            if not visits:
                raise BrokenFileError("a node refers to one that does not come before it")
            return visits
        loader = self._identify(node)
        self.n_nodes += 1
        if number is not None:
            # skops takes the first node of an id for all others
            first = self._constants.get(number) if loader == "JsonNode" else None
            if number in self._visits and first != node["content"]:
                raise BrokenFileError("two nodes have the same id")
            self._visits[number] = 0  # not to be referred to from within
        total = 1
        for container, key in slots(node):
            total += self.visit(container[key], level + 1)
            if total > MOST_VISITS:
                raise BrokenFileError(f"it takes more than {MOST_VISITS:,} steps to look through")
        if number is not None:
            self._visits[number] = total
            if loader == "JsonNode":
                self._constants[number] = node["content"]
        return total

    def _identify(self, node: Node) -> str:
        """Note the names and the member that a node asks for, and return its loader."""
        loader, module, name = (_text(node, f"__{key}__") for key in ("loader", "module", "class"))
        if loader not in CHILDREN:
            raise BrokenFileError("a node has an unknown loader")
        if not MODULE.fullmatch(module) or not CLASS.fullmatch(name):
            raise BrokenFileError("a node has no name of a type")
        self.types.add((loader, f"{module}.{name}"))
        if loader == "JsonNode":
            _text(node, "content")
        elif loader == "MethodNode":
            method = _text(node["content"], "func")
            if not CLASS.fullmatch(method):
                raise BrokenFileError("a node has no name of a method")
            self.types.add((loader, f"{module}.{name}.{method}"))
        elif loader == "RandomGeneratorNode":
            self.types.add((loader, f"numpy.random.{_bit_generator(node['content'])}"))
        if "file" in node:
            file = _text(node, "file")
            if file in self.files:
                raise BrokenFileError("two nodes read the same member")
            self.files[file] = loader
        return loader


def share(schema: Node) -> Node:
    """Replace, in place, all but the first of the nodes of one object by references to it.

    skops writes an object again wherever it is met, which makes models of many columns many times
    larger, and reads it once.
    """
    seen = set()

    def replace(node: Node) -> None:
        seen.add(node["__id__"])
        for container, key in slots(node):
            child = container[key]
            if child["__id__"] not in seen:
                replace(child)
            elif child["__loader__"] != "JsonNode":
                container[key] = {"__id__": child["__id__"]}

    replace(schema)
    return schema


def is_reference(node: Node) -> bool:
    """Return whether a node stands for one that came before."""
    return node.keys() == {"__id__"}


def slots(node: Node) -> Iterator[tuple[Any, Any]]:
    """Yield where the nodes within a node are: a container, and the key in it."""
    loader = node["__loader__"]
    if loader == "NdArrayNode" and node["type"] == "numpy":
        return
    for path in CHILDREN[loader]:
        container = node
        *way, key = path
        for step in way:
            container = container[step]
        if key != EACH:
            if loader == "ObjectNode" and container.get(key) is None:
                continue  # no state
            yield container, key
        elif isinstance(container, dict if loader == "DictNode" else list):
            yield from ((container, each) for each in _keys(container))
        else:
            raise BrokenFileError("the content of a node has the wrong type")


def _keys(container: Record | list[Any]) -> Iterable[Any]:
    return list(container) if isinstance(container, dict) else range(len(container))


def _text(node: Node, key: str) -> str:
    value = node[key]
    if not isinstance(value, str):
        raise BrokenFileError(f"{key} of a node is not text")
    return value


def _bit_generator(content: Node) -> str:
    """Return the name of a random generator's class, if it is of the usual size."""
    seed = content["seed_seq"]["content"]
    # a larger pool takes memory, and time that grows with its square
    if "pool_size" in seed and seed["pool_size"]["content"] != POOL_SIZE:
        raise BrokenFileError("a random generator has a pool of unusual size")
    name = json.loads(_text(content["bit_generator"]["content"]["bit_generator"], "content"))
    if not isinstance(name, str) or not CLASS.fullmatch(name):
        raise BrokenFileError("a random generator has no name")
    return name
