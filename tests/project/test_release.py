"""What a release promises: one version, in every file that names it; types; metadata."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
import typed_user
import yaml

import ckm

ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_version_is_written_once_and_repeated_by_nothing_but_the_citation() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == ckm.__version__
    assert re.search(rf"^## {re.escape(ckm.__version__)}$", CHANGELOG, re.MULTILINE)


def test_the_citation_has_what_the_format_requires() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert {"type", "title", "authors"} <= set(citation["preferred-citation"])


def test_what_is_not_released_comes_first() -> None:
    headings = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1:] == sorted(headings[1:], reverse=True)


def test_a_user_with_types_can_do_all_of_it(tmp_path: Path) -> None:
    rows = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=100.0, random_state=0).rows
    assert typed_user.cluster(rows).shape == (3, 2)
    assert len(typed_user.in_parts(rows[:1000], rows[1000:], tmp_path).weights) == 3
    sketch = typed_user.in_batches(list(np.split(rows, 4)))
    assert sketch.count == 2000
    suggestion, p_value = typed_user.analysed(sketch, sketch)
    assert suggestion == 3
    assert p_value > 0.5
    assert "none.ckm" in typed_user.refused()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_targets_that_exist(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"\bmake (?:PYTHON=python )?([\w-]+)", str(jobs))
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    for job in jobs.values():
        local = str(job.get("uses", ""))
        assert not local or (ROOT / local).exists()
