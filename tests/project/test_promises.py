"""Every promise of docs/promises.md names tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
PROMISES = [line[2:] for line in TEXT.splitlines() if line.startswith("- ")]


def named_tests(promise: str) -> list[tuple[str, str]]:
    """The files and names of the tests that a promise names."""
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", promise)


@cache
def functions_of(file: str) -> frozenset[str]:
    """The names of the tests in a file."""
    path = ROOT / file
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise[:40])
def test_every_promise_names_tests_that_exist(promise: str) -> None:
    named = named_tests(promise)
    assert named, "a promise without a test is a wish"
    assert [f"{file}::{name}" for file, name in named if name not in functions_of(file)] == []
    assert len(named) == promise.count("::"), "every name is complete"


def test_a_test_that_does_not_exist_is_noticed() -> None:
    assert "test_nothing" not in functions_of("tests/core/test_sketch.py")
    assert functions_of("tests/core/test_none.py") == frozenset()


def test_there_are_promises_and_the_readme_links_to_them() -> None:
    assert len(PROMISES) > 40
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(docs/promises.md)" in readme
    assert "(SECURITY.md)" in readme
