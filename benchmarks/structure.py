"""Size and structure of the code, from its syntax trees: `python -m benchmarks.structure`.

Run it before and after a redesign, with the folder of either checkout, and compare the columns:
`python -m benchmarks.structure ../before .`.
"""

import argparse
import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "unflip"
DYNAMIC = ("getattr", "hasattr", "setattr")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path()])
    folders = parser.parse_args().folders
    columns = [measure(folder) for folder in folders]
    width = max(map(len, columns[0]))
    print(" " * width, *(f"{str(folder)[-14:]:>14}" for folder in folders))
    for name in columns[0]:
        print(f"{name:<{width}}", *(f"{column[name]:>14,}" for column in columns))


def measure(folder: Path) -> dict[str, int]:
    """Return the measures of one checkout by name."""
    root = folder / "src" / PACKAGE
    sources = {path: path.read_text() for path in sorted(root.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in sources.items()}
    lines = Counter[str]()
    for path, text in sources.items():
        lines += count_lines(text, trees[path])
    tests = [ast.parse(path.read_text()) for path in (folder / "tests").rglob("*.py")]
    functions = [
        node
        for tree in tests
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    private_imports = {id(node) for tree in tests for node in private_tests(tree)}
    constants = [pair for tree in trees.values() for pair in named_numbers(tree)]
    values: dict[str, set[str]] = {}
    for name, value in constants:
        values.setdefault(name, set()).add(value)
    calls = Counter(
        node.func.id
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )
    return {
        "modules": len(sources),
        "modules at the root": sum(path.parent == root for path in sources),
        "lines": lines["total"],
        "lines of code": lines["code"],
        "lines of docstrings": lines["docstring"],
        "lines of comments": lines["comment"],
        "private docstrings with Parameters": sum(
            private_parameters(tree, public_names(trees)) for tree in trees.values()
        ),
        "isinstance of another package's class": sum(
            foreign_checks(tree, path.relative_to(root)) for path, tree in trees.items()
        ),
        "getattr, hasattr, setattr": sum(calls[name] for name in DYNAMIC),
        "named numbers": len(constants),
        "names of numbers with two values": sum(len(found) > 1 for found in values.values()),
        "tests": len(functions),
        "tests that touch private names": sum(id(node) in private_imports for node in functions),
        "match= in tests": sum(
            isinstance(node, ast.keyword) and node.arg == "match"
            for tree in tests
            for node in ast.walk(tree)
        ),
    }


def count_lines(text: str, tree: ast.Module) -> Counter[str]:
    """Return the number of lines: total, docstring, comment, and code (neither, nor blank)."""
    documented: set[int] = set()
    for node in ast.walk(tree):
        # a string that stands alone documents what is above it: a definition or a constant
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            documented.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    commented = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            commented.add(token.start[0])
    all_lines = text.splitlines()
    blank = {number for number, line in enumerate(all_lines, 1) if not line.strip()}
    return Counter(
        total=len(all_lines),
        docstring=len(documented),
        comment=len(commented),
        code=len(all_lines) - len(documented | commented | blank),
    )


def public_names(trees: dict[Path, ast.Module]) -> set[str]:
    """Return the names that some module lists in `__all__`."""
    return {
        text.value
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
        for text in ast.walk(node.value)
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
    }


def private_parameters(tree: ast.Module, public: set[str]) -> int:
    """Return how many functions and classes that nobody exports have a `Parameters` section."""
    return sum(
        "Parameters\n---" in (ast.get_docstring(node) or "")
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name not in public
    )


def foreign_checks(tree: ast.Module, module: Path) -> int:
    """Return how many `isinstance` calls name a class of another package of the library."""
    own = module.parts[0].removesuffix(".py")
    foreign: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
            package = (node.module or "").split(".")[1]
            if package not in (own, "_typing", "_utils"):
                foreign.update(alias.asname or alias.name for alias in node.names)
    for node in tree.body:  # tuples and unions of such classes that have a name of their own
        if isinstance(node, ast.Assign) and names_in(node.value) & foreign:
            foreign.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return sum(
        bool(names_in(node.args[1]) & foreign)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and len(node.args) == 2
    )


def named_numbers(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the name and the source text of each number that a module assigns to a constant."""
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=True))
            for name, value in pairs:
                if isinstance(name, ast.Name) and name.id.isupper() and is_number(value):
                    yield name.id, ast.unparse(value)


def is_number(node: ast.expr) -> bool:
    """Return whether an expression is made of numbers and arithmetic only."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    return isinstance(node, ast.BinOp) and is_number(node.left) and is_number(node.right)


def private_tests(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield the test functions that use something private of the library."""
    private = {"_"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            hidden = any(part.startswith("_") for part in (node.module or "").split("."))
            private.update(
                alias.asname or alias.name
                for alias in node.names
                if hidden or is_private(alias.name)
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            reached = {
                part.attr
                for part in ast.walk(node)
                if isinstance(part, ast.Attribute) and is_private(part.attr)
            }
            if reached or names_in(node) & (private - {"_"}):
                yield node


def is_private(name: str) -> bool:
    """Return whether a name is private; those of a protocol, like `_repr_html_`, are not."""
    return name.startswith("_") and not name.endswith("_")


def names_in(node: ast.AST) -> set[str]:
    """Return the names that an expression reads."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


if __name__ == "__main__":
    main()
