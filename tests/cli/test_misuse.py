"""Sixty ways to misuse the command line. Every message names what was seen, and the column or file,
and every option that it names can be typed where it is read.
"""

import contextlib
import io
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from command import write_example_files
from typer.main import get_command

import ckm
from ckm._cli.app import app

# A command, and what its message must name: what was seen, and where. Options are checked apart.
MISUSE: dict[str, tuple[str, ...]] = {
    # Names of files
    "fit nowhere.csv -k 3": ("nowhere.csv",),
    "fit 'none/*.parquet' -k 3": ("none/*.parquet",),
    "fit empty/ -k 3": ("empty",),
    "fit data.xlsx -k 3": ("data.xlsx", ".parquet"),
    "fit data.npy data.npy -k 3": ("data.npy", "twice"),
    "fit data.npy data.parquet -k 3": ("data.npy", "data.parquet"),
    "fit '' -k 3": ("empty", "variable"),
    "decode nowhere.ckm -k 3": ("nowhere.ckm",),
    "decode data.npy -k 3": ("data.npy",),
    "merge s.ckm nowhere.ckm -o m.ckm": ("nowhere.ckm",),
    "predict data.npy -c nowhere.csv": ("nowhere.csv",),
    "predict data.npy -c data.csv": ("data.csv", "east,north"),
    "inspect c.csv": ("c.csv",),
    "report nowhere.ckm -o r.html": ("nowhere.ckm",),
    # Outputs
    "fit data.npy -k 3 -o c.txt": ("c.txt", ".csv or .json or .parquet"),
    "fit data.npy -k 3 -o none/c.csv": ("none/c.csv",),
    "fit data.csv -k 3 -o data.csv": ("data.csv", "input"),
    "sketch data.npy -k 3 -o s.csv": ("s.csv", ".ckm"),
    "predict data.npy -c c.csv -o labels.txt": ("labels.txt", ".npy"),
    "fit data.csv -k 3 --log east -o d.csv": ("d.csv", "logarithms", ".json"),
    "fit data.csv -k 3 --log east -o d.parquet": ("d.parquet", "logarithms", ".json"),
    "report s.ckm -o r.pdf": ("r.pdf", ".html"),
    "curve s.ckm -o curve.svg": ("curve.svg", ".png"),
    "fit data.npy -k 3 --save-sketch s.txt": ("s.txt", ".ckm"),
    # Columns
    "fit data.csv -k 3 --columns east,west": ("data.csv", "'west'", "east, north"),
    "fit data.csv -k 3 --columns east,east": ("data.csv", "east", "twice"),
    "fit data.npy -k 3 --columns east": ("data.npy", "column names"),
    "fit mixed.csv -k 3 --columns east,kind": ("'kind'", "mixed.csv", "text"),
    "fit bad.csv -k 3": ("'north'", "bad.csv", "'unknown'", "row 41"),
    "fit bad.csv -k 3 --columns east,north": ("'north'", "'unknown'", "row 41"),
    "fit words.csv -k 3": ("words.csv", "kind: text"),
    "fit ragged.csv -k 3": ("ragged.csv", "row 1 (line 3)", "3 fields"),
    "fit data.csv -k 3 --weight-column mass": ("data.csv", "'mass'", "east, north"),
    "fit data.csv -k 3 --columns east,north --weight-column east": ("'east'", "weights"),
    "fit negative.csv -k 3 --weight-column mass": ("-1", "mass"),
    "sketch other.csv --like s.ckm -o t.ckm": ("other.csv", "'east'"),
    "predict other.csv -c c.csv": ("other.csv", "'east'"),
    "fit data.csv -k 3 --columns '\"a'": ('"a', "CSV"),
    # Values
    "fit gaps.csv -k 3": ("Row 1", "'north'", "gaps.csv", "NaN"),
    "predict gaps.csv -c c.csv": ("Row 1", "'north'", "NaN"),
    "fit infinite.npy -k 3": ("Row 7", "column 1", "inf"),
    "fit equal.npy -k 3": ("equal.npy", "rows are equal"),
    "fit few.npy -k 5": ("few.npy", "2 rows", "5"),
    "fit none.npy -k 3": ("none.npy", "zero rows"),
    # Numbers and names of options
    "fit data.npy": ("--n-clusters",),
    "fit data.npy -k 0": ("0", "--n-clusters"),
    "fit data.npy -k many": ("'many'", "auto"),
    "fit data.npy -k 3 --scale wide": ("'wide'", "--scale"),
    "fit data.npy -k 3 --metric l1": ("'l1'", "'cosine'"),
    "fit data.npy -k 3 --metric cosine --standardize": ("cosine",),
    "fit data.npy -k 3 --nan maybe": ("'maybe'", "drop"),
    "fit data.npy -k 3 --distribution magic": ("'magic'", "'gaussian'"),
    "fit data.npy -k 3 --decoder magic": ("'magic'", "'density'"),
    "fit data.npy -k 3 --pool 0 --init sample": ("sample",),
    "fit data.npy -k 3 --n-jobs 0": ("0", "--n-jobs"),
    "fit data.npy -k 3 --device abacus": ("abacus",),
    "fit data.npy -k 3 --projection some": ("'some'", "auto"),
    "fit data.npy -k 3 --colums east": ("--colums",),
    "sketch data.npy -o t.ckm": ("size of the sketch",),
    "sketch data.npy -k 3 -o t.ckm --resume": ("checkpoint",),
    "sketch data.npy -k 3 -o t.ckm --engine storm": ("'storm'", "dask"),
    "sketch data.npy -k 3 -o t.ckm --scheduler here:1": ("dask",),
    # Sketches that do not fit
    "merge s.ckm t2.ckm -o m.ckm": ("t2.ckm", "s.ckm", "different"),
    "decode tiny.ckm -k 40": ("tiny.ckm", "20 frequencies", "40"),
    "curve tiny.ckm --max-clusters 400": ("tiny.ckm", "400"),
    "compare s.ckm t2.ckm": ("s.ckm", "t2.ckm", "different"),
    "report s.ckm --compare t2.ckm -o r.html": ("s.ckm", "t2.ckm", "different"),
    "mixture s.ckm -k some": ("some",),
    "decode s.ckm -k 3 --init k++": ("k++",),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files, good and bad."""
    folder = tmp_path_factory.mktemp("misuse")
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(100, 2)), rng.normal(size=(100, 2)) + 9])
    write_example_files(folder, X)
    (folder / "empty").mkdir()
    (folder / "data.xlsx").write_bytes(b"PK")
    numbers = [[str(i), str(i % 7)] for i in range(60)]
    numbers[41][1] = "unknown"
    texts = {
        "bad": "east,north\n" + "".join(",".join(row) + "\n" for row in numbers),
        "mixed": "east,north,kind\n1,2,x\n3,4,y\n5,1,z\n",
        "words": "name,kind\nx,y\n",
        "ragged": "east,north\n1,2\n3,4,5\n",
        "negative": "east,north,mass\n1,2,1\n3,4,-1\n5,6,1\n7,9,1\n",
        "other": "lat,lon\n1,2\n3,4\n5,6\n",
        "gaps": "east,north\n1,2\n3,\n5,6\n7,9\n",
    }
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    infinite = X.copy()
    infinite[7, 1] = np.inf
    arrays = {"infinite": infinite, "equal": np.ones((9, 2)), "few": X[:2], "none": X[:0]}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    table = pq.read_table(folder / "data.parquet")
    sketch = ckm.sketch(table, n_clusters=3, random_state=0)
    sketch.save(folder / "s.ckm")
    ckm.sketch(table, n_clusters=3, random_state=1).save(folder / "t2.ckm")
    ckm.sketch(table, sketch_size=20, cells=0, random_state=0).save(folder / "tiny.ckm")
    (folder / "c.csv").write_text("cluster,weight,east,north\n0,0.5,0,0\n1,0.5,9,9\n")
    return folder


def attempt(*arguments: str) -> tuple[str, str]:
    """Run a command that must fail, with the status of an error or of wrong usage."""
    out = io.StringIO()
    err = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        app(args=list(arguments), prog_name="ckm")
    assert ended.value.code in (1, 2)
    return out.getvalue(), err.getvalue()


def options_of(command: str) -> set[str]:
    group = get_command(app)
    return {name for p in group.commands[command].params for name in p.opts}  # type: ignore[attr-defined]


def test_there_are_sixty() -> None:
    assert len(MISUSE) >= 60


@pytest.mark.parametrize("line", MISUSE)
def test_a_message_says_what_was_seen_and_what_can_be_typed(
    line: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    command, *arguments = shlex.split(line)
    printed, err = attempt(command, *arguments)
    assert printed == ""
    assert "Traceback" not in err
    message = " ".join(err.split())
    for seen in MISUSE[line]:
        assert seen in message, message
    assert named_options(message, command) == set(), message


def named_options(message: str, command: str) -> set[str]:
    """The options in a message that cannot be typed: not those of the command, nor of one that is
    named before them.
    """
    lacking = set()
    for found in re.finditer(r"(?:ckm (\w+) )?(?<![\w-])(--[a-z][a-z-]+)", message):
        named, option = found.groups()
        if option not in options_of(named or command) | {"--colums", "--help"}:
            lacking.add(option)
    return lacking
