"""The description of the file format is enough to read files: a second reader, which does not know
ckm, finds in files of every version what ckm finds.
"""

import ast
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ckm

ROOT = Path(__file__).parents[2]
READER = ROOT / "docs" / "read_ckm.py"
GOLDEN = sorted((ROOT / "tests" / "core" / "golden").glob("*.ckm"))

reader = SimpleNamespace(**runpy.run_path(str(READER), run_name="read_ckm"))


def fresh(name: str, path: Path) -> Path:
    """A file that this version writes."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 100)) + 5 * rng.integers(3, size=(500, 1))
    options: dict[str, Any] = {
        "narrow": {"data": rows[:, :4], "standardize": True},
        "weighted": {"data": rows[:, :4], "sample_weight": rng.uniform(size=500)},
        "wide": {"data": rows},
        "structured": {"data": rows[:, :70], "distribution": "structured", "projection": None},
        "units of structured": {
            "data": rows[:, :70] * np.arange(1, 71),
            "distribution": "structured",
            "projection": None,
            "standardize": True,
        },
    }[name]
    made = ckm.sketch(n_clusters=3, random_state=0, **options)
    made.save(path)
    return path


FRESH = ["narrow", "weighted", "wide", "structured", "units of structured"]


def expected_mean(s: ckm.Sketch) -> np.ndarray:
    """The mean of the rows; of a private release, by its noised sums of columns alone."""
    bounds = s.frequencies.bounds
    if s.release is None or bounds is None:
        return s.mean
    return bounds.middle + bounds.half * s.release.column_means()[0]


def assert_same(path: Path) -> None:
    file = reader.read(path)
    s = ckm.load(path)
    assert np.array_equal(reader.characteristic_function(file), s.z)
    assert np.allclose(reader.frequencies(file), s.frequencies.omega, rtol=1e-14, atol=0)
    assert reader.size(file) == s.weight
    assert np.allclose(reader.mean(file), expected_mean(s), rtol=1e-12)
    assert (s.cells is None) == ("cells.mass" not in file.arrays)
    if s.cells is not None:
        mass, means = reader.cells(file)
        assert mass.sum() == pytest.approx(s.weight)
        assert np.allclose(mass @ means / mass.sum(), s.mean, rtol=1e-6, atol=1e-6)


def test_there_is_a_golden_file_of_every_version() -> None:
    versions = {reader.read(path).metadata["version"] for path in GOLDEN}
    assert versions == set(range(1, reader.NEWEST_VERSION + 1))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_files_say_the_same_to_both_readers(path: Path) -> None:
    assert_same(path)


@pytest.mark.parametrize("name", FRESH)
def test_fresh_files_say_the_same_to_both_readers(name: str, tmp_path: Path) -> None:
    assert_same(fresh(name, tmp_path / "fresh.ckm"))


def test_an_altered_byte_is_noticed(tmp_path: Path) -> None:
    data = bytearray(GOLDEN[0].read_bytes())
    data[-1] ^= 1
    (tmp_path / "altered.ckm").write_bytes(data)
    with pytest.raises(ValueError, match="checksum"):
        reader.read(tmp_path / "altered.ckm")


def test_the_second_reader_does_not_know_ckm() -> None:
    tree = ast.parse(READER.read_text(encoding="utf-8"))
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names | modules == {"hashlib", "json", "numpy", "pathlib", "struct", "sys", "typing"}
