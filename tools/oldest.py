"""Print a constraints file that holds every dependency to the oldest version that is supported.

The versions are the lower bounds in pyproject.toml, so that there is no second list to keep:

    python tools/oldest.py > constraints.txt
    pip install --constraint constraints.txt --editable '.[dev]'
"""

import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def requirements(project: dict) -> Iterator[Requirement]:
    """Every dependency of the project and of its extras, except for the project itself."""
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    for line in (line for lines in lists for line in lines):
        requirement = Requirement(line)
        if canonicalize_name(requirement.name) != canonicalize_name(project["name"]):
            yield requirement


def oldest(found: Iterable[Requirement]) -> dict[str, str]:
    """The lower bound of each package, by name; packages without one are left out."""
    bounds: dict[str, str] = {}
    for requirement in found:
        lower = [part.version for part in requirement.specifier if part.operator == ">="]
        if not lower:
            continue
        name = canonicalize_name(requirement.name)
        if bounds.setdefault(name, lower[0]) != lower[0]:
            sys.exit(f"{name} has two lower bounds, {bounds[name]} and {lower[0]}; write one.")
    return bounds


def main() -> None:
    """Print one line per package."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    for name, version in sorted(oldest(requirements(project)).items()):
        print(f"{name}=={version}")


if __name__ == "__main__":
    main()
