"""Only public parts of other packages are used: nothing that a minor release may take away."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "ckm"
FILES = sorted(SOURCE.rglob("*.py"))

# What has no public way, each with its reason.
ALLOWED = {
    "numba.core.cgutils": "numba's guide to its low-level extension API uses it",
    "typer.core": "typer's documentation derives groups of commands from typer.core.TyperGroup",
    "sys._getframe": "described by Python's own documentation; present in CPython",
}
# Methods of named tuples, which start with an underscore so as not to be taken for fields.
NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make"}
# Modules that their packages call internal, without an underscore.
INTERNAL = {"core", "internal", "internals", "testing"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def imported(tree: ast.AST) -> Iterator[str]:
    """What a module imports from other packages, as dotted names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def private_imports(tree: ast.AST) -> list[str]:
    """The imports of private modules and names, or of internal modules, of other packages."""
    return [
        name
        for name in imported(tree)
        if name.split(".")[0] not in ("ckm", "__future__")
        and any(is_private(part) or part in INTERNAL for part in name.split("."))
    ]


def reached(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The private attributes that a module reaches, each with the expression that does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.attr, ast.unparse(node)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
            name = node.args[1]
            if isinstance(name, ast.Constant) and is_private(str(name.value)):
                yield str(name.value), ast.unparse(node)


def defined(tree: ast.AST) -> Iterator[str]:
    """The private names that a module defines: functions, classes, fields and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


@cache
def ours() -> frozenset[str]:
    """Every private name that this package defines."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in FILES)
    return frozenset(name for tree in trees for name in defined(tree) if is_private(name))


def private_attributes(tree: ast.AST) -> list[str]:
    """The expressions that reach private attributes which are not ours."""
    known = ours() | NAMED_TUPLES
    return [expression for name, expression in reached(tree) if name not in known]


def findings(tree: ast.AST) -> list[str]:
    return private_imports(tree) + private_attributes(tree)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_private_of_other_packages_is_used(path: Path) -> None:
    found = findings(ast.parse(path.read_text(encoding="utf-8")))
    assert [name for name in found if name not in ALLOWED] == []


@pytest.mark.parametrize(
    "code",
    [
        "from sklearn._private import x",
        "from sklearn.utils import _safe_indexing",
        "import pyarrow._compute",
        "import numba.core.typing",
        "sklearn.utils._param_validation.validate(x)",
        "frame._meta",
        "getattr(frame, '_compliant_frame')",
    ],
)
def test_what_is_private_is_found(code: str) -> None:
    assert findings(ast.parse(code))


def test_what_is_public_or_ours_is_not_found() -> None:
    code = "import sklearn.utils\nfrom ckm._core import x\nself._lock\nplace._replace(row=1)\n"
    assert findings(ast.parse(code)) == []


def test_what_is_allowed_is_used() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in FILES]
    assert set(ALLOWED) <= {name for tree in trees for name in findings(tree)}
