"""Every public name has a docstring that can be its page in an API reference.

numpydoc validates the docstrings of the functions, classes, methods and properties that are
reachable from `ckm`, `ckm.datasets` and `ckm.errors`: parameters agree with the signature, have
types and descriptions, and returned values are described. Functions and classes have examples,
which run as doctests with the other tests.
"""

import inspect
import re
from functools import cached_property
from types import ModuleType
from typing import Any

import pytest

import ckm

numpydoc_validate = pytest.importorskip("numpydoc.validate", reason="it comes with the [dev] extra")

# Checks of numpydoc that are not made, and why.
NOT_CHECKED = {
    "GL01": "ruff checks the layout of docstrings",
    "GL02": "one-line docstrings close on their line, as ruff's formatter has it",
    "GL03": "ruff checks the layout of docstrings",
    "ES01": "a summary is enough where there is no more to say",
    "SS02": "a formula starts with its own letter",
    "SS03": "a summary may be a formula",
    "SS05": "values and properties are nouns, some of which end with an s",
    "SS06": "a summary may run over two lines",
    "PR08": "a description may start with a formula or a name in quotes",
    "PR09": "a description may be a noun phrase",
    "RT02": "a returned value may have a name",
    "RT04": "a description may start with a formula or a name in quotes",
    "RT05": "a description may be a noun phrase",
    "SA01": "the pages of the reference link to each other by their headings",
}
# scikit-learn generates these, with their docstrings.
GENERATED = re.compile(r"set_\w+_request$")


def public_objects() -> dict[str, Any]:
    """Return the functions and classes that users import, by their names."""
    found = {f"ckm.{name}": getattr(ckm, name) for name in ckm.__all__}
    modules = {name: found.pop(name) for name in list(found) if _is_module(found[name])}
    for prefix, module in modules.items():
        for name, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__
            if own and not name.startswith("_") and callable(value):
                found[f"{prefix}.{name}"] = value
    return found


def _is_module(value: Any) -> bool:
    return isinstance(value, ModuleType)


OBJECTS = public_objects()
FUNCTIONS = [name for name, value in OBJECTS.items() if not inspect.isclass(value)]
ERRORS = [name for name in OBJECTS if name.startswith("ckm.errors.")]
CLASSES = {name: OBJECTS[name] for name in set(OBJECTS) - set(FUNCTIONS) - set(ERRORS)}


def public_members() -> list[str]:
    """Return the methods and properties of public classes that ckm defines."""
    found = []
    for name, value in CLASSES.items():
        for member in dir(value):
            if member.startswith("_") or GENERATED.match(member):
                continue
            defined = next(vars(base)[member] for base in value.__mro__ if member in vars(base))
            if _module_of(defined).startswith("ckm"):
                found.append(f"{name}.{member}")
    return sorted(found)


def _module_of(member: Any) -> str:
    """Return the module that defines a method or property; "" for fields."""
    if isinstance(member, property):
        member = member.fget
    elif isinstance(member, cached_property):
        member = member.func
    elif isinstance(member, classmethod | staticmethod):
        member = member.__func__
    return getattr(inspect.unwrap(member), "__module__", "") if callable(member) else ""


def problems(name: str) -> list[str]:
    """Return what numpydoc finds, less what is not checked."""
    found = numpydoc_validate.validate(name)["errors"]
    return [f"{code}: {text}" for code, text in found if code not in NOT_CHECKED]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_are_documented(name: str) -> None:
    assert problems(name) == []


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_classes_are_documented(name: str) -> None:
    # A value that ckm returns documents its fields as attributes, since users only read them.
    assert [problem for problem in problems(name) if not problem.startswith("PR01")] == []
    sections = numpydoc_validate.get_doc_object(CLASSES[name])
    documented = {entry.name for entry in [*sections["Parameters"], *sections["Attributes"]]}
    assert set(inspect.signature(CLASSES[name]).parameters) <= documented


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_errors_and_warnings_have_a_summary(name: str) -> None:
    # Users catch them and do not construct them: neither parameters nor examples.
    found = [problem for problem in problems(name) if not problem.startswith(("PR01", "EX01"))]
    assert found == []


@pytest.mark.parametrize("name", public_members())
def test_methods_and_properties_are_documented(name: str) -> None:
    # The example of the class shows its methods.
    assert [problem for problem in problems(name) if not problem.startswith("EX01")] == []
