"""Names of files that no data can have: empty, the root folder, too long, not UTF-8, unreadable."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ckm
from ckm._sources.paths import resolve
from ckm.errors import InputFileError, MissingFileError, ParameterError

X = np.random.default_rng(0).normal(size=(50, 2))


def make() -> ckm.Sketch:
    return ckm.sketch(X, n_clusters=2, random_state=0)


EMPTY: dict[str, Callable[[], object]] = {
    "sketch": lambda: ckm.sketch("", n_clusters=2),
    "sketch of a list": lambda: ckm.sketch(["data.npy", ""], n_clusters=2),
    "sketch of an array inside": lambda: ckm.sketch("::rows", n_clusters=2),
    "like": lambda: ckm.sketch(X, like=""),
    "checkpoint": lambda: ckm.sketch("data.npy", n_clusters=2, checkpoint=""),
    "resume": lambda: ckm.sketch("data.npy", n_clusters=2, checkpoint="", resume=True),
    "load": lambda: ckm.load(""),
    "save": lambda: make().save(""),
    "fit": lambda: ckm.CompressiveKMeans(2).fit(""),
    "predict": lambda: ckm.decode(make(), 2, random_state=0).predict(""),
}


@pytest.mark.parametrize("use", EMPTY.values(), ids=EMPTY)
def test_an_empty_name_is_an_error(
    use: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", X)
    with pytest.raises(ParameterError, match="name of a file is empty"):
        use()
    assert os.listdir() == ["data.npy"]


def test_the_root_of_all_folders_is_not_data() -> None:
    with pytest.raises(ParameterError, match="root of all folders"):
        resolve(["/"])


def test_long_and_foreign_names(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"Cannot read .*aaa\.csv: .*; check the name"):
        resolve([tmp_path / ("a" * 300 + ".csv")])
    with pytest.raises(MissingFileError, match="No file matches"):
        resolve([tmp_path / ("a" * 300 + "*.csv")])
    path = tmp_path / os.fsdecode(b"\xff.csv")
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputFileError, match="is not UTF-8"):
        ckm.sketch(path, n_clusters=1)


def test_folders_give_the_files_in_them_in_order(tmp_path: Path) -> None:
    names = [
        "a/b.csv",
        "a/c/d.csv",
        "a.csv",
        "b.zarr/c/0.csv",
        "e/.hidden/f.csv",
        "e/_g.csv",
        "h.txt",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a\n1\n")
    found = [path.relative_to(tmp_path).as_posix() for path in resolve([tmp_path])]
    assert found == ["a/b.csv", "a/c/d.csv", "a.csv", "b.zarr"]


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read anything"
)
def test_a_folder_that_cannot_be_read_is_not_left_out(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "locked").mkdir(mode=0)
    with pytest.raises(InputFileError, match=r"Cannot read the folder .*locked"):
        resolve([tmp_path])


def test_a_sketch_that_no_memory_holds() -> None:
    for size in (10**12, 10**30):
        with pytest.raises(ParameterError, match=r"needs .* GB or more, and this machine has"):
            ckm.sketch(X, sketch_size=size)
