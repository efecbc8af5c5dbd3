"""The pages of the guide: their examples run from top to bottom, and what they list is complete."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doc_examples import run_shell

import ckm
from ckm._decoding.solution import Status

DOCS = Path(__file__).parents[2] / "docs"


def read(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def run_python(page: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", read(page), re.DOTALL):
        exec(compile(example, page, "exec"), names)
    return names


def test_the_examples_of_getting_started_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_python("getting-started.md")
    assert names["curve"].suggestion == 4
    assert names["solution"].status == "ok"
    assert len(names["labels"]) == 8000


@pytest.mark.slow
@pytest.mark.sampled
def test_the_commands_of_getting_started_run(tmp_path: Path) -> None:
    rows = ckm.datasets.gaussian_mixture(4000, 4, 3, separation=15, random_state=0).rows
    for day, part in (("monday", rows[:2500]), ("tuesday", rows[2500:])):
        np.savetxt(
            tmp_path / f"{day}.csv", part, delimiter=",", header="age,visits,amount", comments=""
        )
    (shell,) = re.findall(r"```sh\n(.*?)```", read("getting-started.md"), re.DOTALL)
    run_shell(shell, tmp_path)
    assert len((tmp_path / "centroids.csv").read_text(encoding="utf-8").splitlines()) == 1 + 4
    assert (tmp_path / "report.html").exists()


def test_the_examples_of_what_a_sketch_is_run() -> None:
    assert run_python("what-a-sketch-is.md")["found"].status == "ok"


def test_the_examples_of_statuses_run() -> None:
    names = run_python("reading-a-status.md")
    assert names["poor"].status == "small-sketch"


def test_the_examples_of_sizes_run() -> None:
    names = run_python("choosing-a-size.md")
    sketch = names["s"]
    assert (sketch.frequencies.m, len(sketch.cells.mass)) == (200, 160)


def test_every_status_is_explained() -> None:
    text = read("reading-a-status.md")
    for status in Status:
        assert f"| [`{status.value}`](#{status.value})" in text
        assert f"\n### `{status.value}`\n" in text
    explained = re.findall(r"\n### `([a-z-]+)`\n", text)
    assert set(explained) == {status.value for status in Status}


def test_the_picture_that_moves_needs_no_network() -> None:
    script = (DOCS / "_static" / "sketch.js").read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\"'` ]+", script))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\bfetch\(|XMLHttpRequest|import\(", script)
