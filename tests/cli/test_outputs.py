"""Every file that a command writes: links stay links, and a replaced file keeps its permissions."""

import gc
import stat
from pathlib import Path

import numpy as np
import pytest
from command import example_rows, run

import ckm

DATA = "data.npy"
COMMANDS = {
    "sketch": ("sketch", DATA, "-k", 3, "-o", "out.ckm"),
    "merge": ("merge", "s.ckm", "t.ckm", "-o", "out.ckm"),
    "decode": ("decode", "s.ckm", "-k", 3, "-o", "out.csv"),
    "fit": ("fit", DATA, "-k", 3, "-o", "out.csv"),
    "predict to CSV": ("predict", DATA, "--centroids", "c.csv", "-o", "out.csv"),
    "predict to NumPy": ("predict", DATA, "--centroids", "c.csv", "-o", "out.npy"),
    "predict to Parquet": ("predict", DATA, "--centroids", "c.csv", "-o", "out.parquet"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_links_and_permissions_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[object, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    X = example_rows()
    np.save(DATA, X)
    s = ckm.sketch(X, n_clusters=3, random_state=0)
    s.save("s.ckm")
    ckm.sketch(X[:500], like=s).save("t.ckm")
    run("decode", "s.ckm", "-k", 3, "-o", "c.csv")
    Path("elsewhere").mkdir()
    output = Path(str(command[-1]))
    target = Path("elsewhere") / output.name
    target.write_bytes(b"old")
    target.chmod(0o600)
    output.symlink_to(target)
    run(*command)
    assert output.is_symlink()
    assert target.read_bytes() != b"old"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in Path("elsewhere").iterdir()] == [output.name]


@pytest.mark.parametrize("ending", ["csv", "npy", "parquet"])
def test_labels_of_bad_rows_leave_no_file_and_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Also when the unfinished writer is collected, which pytest would say."""
    monkeypatch.chdir(tmp_path)
    X = example_rows()
    np.save(DATA, X)
    run("fit", DATA, "-k", 3, "-o", "c.csv")
    X[7, 1] = np.nan
    np.save(DATA, X)
    _, err = run("predict", DATA, "-c", "c.csv", "-o", f"out.{ending}", expect=1)
    assert "Row 7, column 1" in err
    gc.collect()
    assert not list(tmp_path.glob("*out*"))
