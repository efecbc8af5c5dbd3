"""The examples of the documentation run unchanged, from top to bottom, beside the files that they
read, and its links lead to files that exist.
"""

import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from every_source import OnlyArrow
from zarr_stores import write_array

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "sources.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")])
EXAMPLES = re.findall(r"```(python|sh)\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def rides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the examples read, in the working directory."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2)) + 8 * rng.integers(5, size=(2000, 1))
    frame = pd.DataFrame({"distance": X[:, 0], "duration": X[:, 1]})
    table = pa.Table.from_pandas(frame)
    (tmp_path / "rides").mkdir()
    for i in range(2):
        pq.write_table(table.slice(1000 * i, 1000), f"rides/{i}.parquet")
        (tmp_path / f"archive/year=202{i}").mkdir(parents=True)
        pq.write_table(table.slice(1000 * i, 1000), f"archive/year=202{i}/0.parquet")
        pyarrow.feather.write_feather(
            table.slice(1000 * i, 1000), ("monday.arrow", "tuesday.arrow")[i]
        )
    frame.to_csv("rides.csv", index=False)
    frame.to_csv("rides.csv.gz", index=False)
    gaps = frame.assign(people=rng.integers(1, 4, size=2000), name="x")
    gaps.loc[7, "distance"] = np.nan
    gaps.to_csv("gaps.csv", index=False)
    pyarrow.feather.write_feather(table, "rides.feather")
    with h5py.File("experiment.h5", "w") as file:
        file["run1/rows"] = file["run2/rows"] = X
    with h5py.File("single.h5", "w") as file:
        file["rows"] = X
    write_array(Path("experiment.zarr"), X, X.shape)
    with sqlite3.connect("rides.db") as database:
        frame.to_sql("rides", database, index=False)
    database.close()
    return tmp_path


def run_python(code: str, names: dict[str, Any]) -> None:
    exec(compile(code, str(DOCUMENT), "exec"), names)


def run_shell(code: str, folder: Path) -> None:
    main = "from ckm._cli.app import main; main()"
    command = f"ckm() {{ '{sys.executable}' -c '{main}' \"$@\"; }}\nset -e -o pipefail\n{code}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.filterwarnings(
    "ignore::ckm.errors.MissingRowsWarning", "ignore::ckm.errors.ColumnsWarning"
)
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_every_example_runs(rides: Path) -> None:
    names: dict[str, Any] = {"some_arrow_object": OnlyArrow(pq.read_table("rides/0.parquet"))}
    try:
        import torch

        names["torch"] = torch
    except ImportError:
        pass
    for language, code in EXAMPLES:
        if language == "sh":
            run_shell(code, rides)
        elif "torch" not in code or "torch" in names:
            run_python(code, names)
    assert names["s"].count == 1999
    assert len(names["labels"]) == 2000
    assert (rides / "centroids.csv").exists()


@pytest.mark.slow
def test_the_examples_of_unit_rows_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    section = (ROOT / "docs" / "wide.md").read_text(encoding="utf-8").split("## Cosine")[1]
    (python, shell) = re.findall(
        r"```(?:python|sh)\n(.*?)```", section.split("\n## ")[0], re.DOTALL
    )
    names: dict[str, Any] = {}
    run_python(python, names)
    assert np.array_equal(names["labels"], names["model"].labels_)
    assert len(names["found"].weights) == 5
    (tmp_path / "embeddings").mkdir()
    np.save("embeddings/0.npy", names["X"])
    run_shell(shell.replace("-k 50", "-k 5"), tmp_path)
    assert len(np.load("labels.npy")) == 2000


@pytest.mark.slow
def test_the_examples_of_wide_rows_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "wide.md").read_text(encoding="utf-8")
    # Unit rows have a test of their own.
    sections = [part for part in text.split("\n## ") if not part.startswith("Cosine")]
    names: dict[str, Any] = {}
    for language, code in re.findall(r"```(python|sh)\n(.*?)```", "".join(sections), re.DOTALL):
        if language == "sh":
            run_shell(code, tmp_path)
        else:
            run_python(code, names)
    assert names["both"].count == 2000
    assert names["d"] < 384
    assert names["labels"][0] != names["labels"][1]
    assert names["centroids"].shape == (3, 2**16)
    assert len(Path("wide.csv").read_text(encoding="utf-8").splitlines()) == 1 + 5


def test_the_examples_of_comparing_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    (python,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (shell,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    run_python(python, names)
    assert str(names["found"]) in text, "what is shown is what is printed"
    for day in ("monday", "tuesday"):
        names[day].save(f"{day}.ckm")
    run_shell(shell, tmp_path)
    assert (tmp_path / "found.json").stat().st_size > 100


@pytest.mark.slow
def test_the_examples_of_the_monitor_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    (tmp_path / "days").mkdir()
    for day in range(4):
        pd.DataFrame(rng.normal(size=(1000, 2))).to_csv(f"days/{day}.csv", index=False)
    text = (ROOT / "docs" / "monitor.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for language, code in re.findall(r"```(python|sh)\n(.*?)```", text, re.DOTALL):
        if language == "sh":
            run_shell(code, tmp_path)
        else:
            run_python(code, names)
    assert abs(names["change"].row - 15_000) <= 1000
    assert str(names["status"]) in text, "what is shown is what is printed"
    assert (tmp_path / "days.monitor").exists()


def test_the_examples_of_reports_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(example, "docs/report.md", "exec"), {})
    assert (tmp_path / "report.html").stat().st_size < 2_000_000
    assert (tmp_path / "clusters.png").exists()


def test_the_examples_of_mixtures_run() -> None:
    text = (ROOT / "docs" / "mixtures.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert examples
    for example in examples:
        exec(example, names)


@pytest.mark.usefixtures("fixed_noise")
def test_the_examples_of_privacy_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(example, names)
    assert capsys.readouterr().out.split() == ["1.0", "ok", "1.0", "ok", "5665", "0.99", "2"]
    assert np.abs(names["rest"].mean - names["rows"].mean(axis=0)).max() < 0.3


@pytest.mark.slow
def test_the_commands_of_privacy_run(tmp_path: Path) -> None:
    means = np.array([[0.0, 0.0], [15.0, 0.0], [0.0, 15.0]])
    rows = means[np.arange(5000) % 3] + np.random.default_rng(0).normal(size=(5000, 2))
    pd.DataFrame(rows, columns=["east", "north"]).to_csv(tmp_path / "rows.csv", index=False)
    text = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
    (shell,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    run_shell(shell, tmp_path)
    assert len((tmp_path / "centroids.csv").read_text(encoding="utf-8").splitlines()) == 1 + 3


def test_examples_are_short() -> None:
    assert len(EXAMPLES) > 20
    for _, code in EXAMPLES:
        assert len(code.strip().splitlines()) <= 6


def test_every_kind_of_file_is_documented() -> None:
    from ckm._sources.paths import READERS

    text = DOCUMENT.read_text(encoding="utf-8")
    for ending in READERS:
        assert ending in text or ending in (".arrows", ".ipc", ".hdf5")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    # Pages that the build makes are the business of test_site.py.
    made = ("measured/", "gallery/")
    files = [name for name in targets if "://" not in name and not name.startswith(made)]
    assert [target for target in files if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_in_commands_exist(page: Path) -> None:
    modules = re.findall(
        r"\b((?:benchmarks|experiments)\.(?!md\b)\w+)\b(?!\.)", page.read_text(encoding="utf-8")
    )
    assert [name for name in modules if not (ROOT / f"{name.replace('.', '/')}.py").exists()] == []
