"""The examples of README and of the pages of the site run as they stand, from top to bottom of a
page, beside the files that they read. A new page is tried without being named here.
"""

import contextlib
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import run

import ckm

ROOT = Path(__file__).parents[2]
# Where the examples of other pages are run, with files and assertions of their own.
ELSEWHERE = {
    "choosing-a-size": "test_guide.py",
    "compare": "test_docs.py",
    "interoperation": "test_interoperation.py",
    "mixtures": "test_docs.py",
    "monitor": "test_docs.py",
    "privacy": "test_docs.py",
    "report": "test_docs.py",
    "scaling": "tests/engines/test_dask.py, test_spark.py and test_ray.py",
    "sources": "test_docs.py",
    "wide": "test_docs.py",
}
SLOW = {"command-line"}
FENCE = re.compile(r"^```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def examples_of(page: Path) -> list[tuple[str, str]]:
    """The language and the text of each example of a page."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if page.stem not in ELSEWHERE and examples_of(page)
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """The files that pages read, and the rows in them."""
    folder = tmp_path_factory.mktemp("pages")
    X = ckm.datasets.gaussian_mixture(3000, 10, 3, separation=20, random_state=0).rows
    frame = pd.DataFrame(X, columns=["lat", "lon", "height"])
    for name in ("monday", "tuesday", "events", "logs"):
        (folder / name).mkdir()
        frame.to_parquet(folder / name / "0.parquet")
    for name in ("data", "monday", "tuesday", "today", "customers"):
        frame.to_parquet(folder / f"{name}.parquet")
    frame.to_csv(folder / "log.csv.gz", index=False)
    return folder, X


@pytest.fixture
def names(
    made: tuple[Path, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """What pages use without defining it; the working directory has the files that they read."""
    folder, X = made
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return {
        "ckm": ckm,
        "np": np,
        "CompressiveKMeans": ckm.CompressiveKMeans,
        "X": X,
        "stream": np.array_split(X, 3),
        "tensor": X,
        "batches_on_the_gpu": lambda: iter(np.array_split(X, 3)),
    }


def run_python(code: str, names: dict[str, Any], page: Path) -> None:
    # Without a GPU, the CPU computes what the page says.
    code = code.replace('device="cuda"', 'device="cpu"')
    with contextlib.suppress(SystemExit):
        exec(compile(code, str(page), "exec"), names)


def run_shell(code: str) -> None:
    """Run the lines of a script: commands of ckm in this process, pipes and others in a shell."""
    for line in code.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["ckm"] and "|" not in words:
            run(*words[1:])
        elif words:
            call_shell(line)


def call_shell(line: str) -> None:
    main = "from ckm._cli.app import main; main()"
    script = f"set -e -o pipefail\nckm() {{ '{sys.executable}' -c '{main}' \"$@\"; }}\n{line}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


def tried(page: Path) -> Any:
    """A page as a parameter; commands one by one take seconds."""
    marks = [pytest.mark.slow, pytest.mark.sampled] if page.stem in SLOW else []
    return pytest.param(page, id=page.stem, marks=marks)


@pytest.mark.parametrize("page", [tried(page) for page in PAGES])
def test_the_examples_of_a_page_run(page: Path, names: dict[str, Any]) -> None:
    if page.stem == "streams":
        Path("days").mkdir()
        ckm.sketch(names["X"], n_clusters=10, random_state=0).save("days/2026-11-01.ckm")
        run("decode", "days/2026-11-01.ckm", "-k", "10", "-o", "2026-11-17.csv")
    with warnings.catch_warnings():
        # Made data is not what the examples are about.
        warnings.simplefilter("ignore", ckm.errors.AdviceWarning)
        warnings.simplefilter("ignore", ckm.errors.ClustersWarning)
        for language, code in examples_of(page):
            if language == "python":
                run_python(code, names, page)
            else:
                run_shell(code)


def test_every_page_with_examples_is_run_here_or_elsewhere() -> None:
    assert {"README", "guide", "command-line", "reproducibility"} <= {page.stem for page in PAGES}
    for name in ELSEWHERE:
        assert examples_of(ROOT / "docs" / f"{name}.md")


def test_only_pages_with_output_or_addresses_have_unnamed_blocks() -> None:
    """A block without a language is output, a formula or a command of installation: not ckm's."""
    for page in PAGES:
        blocks = re.findall(r"^```\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.M)
        assert not [block for block in blocks if block.startswith(("ckm ", "import ", "from "))]


@pytest.mark.slow
def test_the_nightly_job_runs_and_raises_an_alarm(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "streams.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```bash\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    main = "from ckm._cli.app import main; main()"
    ckm_command = f"ckm() {{ '{sys.executable}' -c '{main}' \"$@\"; }}\n"
    (tmp_path / "in").mkdir()
    rows = ckm.datasets.gaussian_mixture(6000, 4, 3, separation=20, random_state=0).rows
    for day, expected in enumerate([0, 0, 1]):
        part = rows[2000 * day : 2000 * (day + 1)] + (3 if expected else 0)
        pd.DataFrame(part, columns=["a", "b", "c"]).to_csv(tmp_path / f"in/{day}.csv", index=False)
        for _ in range(1 + day % 2):  # a night may run twice
            done = subprocess.run(
                ["bash", "-c", ckm_command + script, "nightly.sh", str(day)],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
            assert done.returncode == expected, done.stderr
    assert "differs from the days before" in done.stdout
