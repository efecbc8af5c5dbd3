"""Bad rows, sizes and options on the command line: an exit status and one sentence that says what
was seen and what to do, no traceback.
"""

import pickle
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import fail, run

import ckm

K3 = ("-k", "3")


@pytest.fixture
def X(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Rows into which tests put bad values; data.npy and data.parquet hold them."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(200, 2))
    np.save("data.npy", X)
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), "data.parquet")
    return X


@pytest.fixture
def sketch_file(X: np.ndarray) -> Path:
    ckm.sketch(X, n_clusters=3, random_state=0).save("s.ckm")
    return Path("s.ckm")


@pytest.fixture
def unreadable(X: np.ndarray) -> None:
    """Put a missing value into the first row of data.npy: a command that reads it reports that,
    not what the test expects.
    """
    X[0, 0] = np.nan
    np.save("data.npy", X)


# Values


@pytest.mark.parametrize(
    ("value", "seen", "remedy"),
    [
        (np.nan, "NaN", "drop or fill"),
        (np.inf, "inf", "drop or clip"),
        (1e300, "1e+300, which overflows float32", "rescale"),
    ],
    ids=["nan", "infinity", "overflow"],
)
@pytest.mark.parametrize("command", ["fit", "sketch", "predict"])
def test_values_that_are_not_finite(
    X: np.ndarray, command: str, value: float, seen: str, remedy: str
) -> None:
    X[7, 1] = value
    np.save("bad.npy", X)
    Path("c.csv").write_text("cluster,weight,x0,x1\n0,1.0,0.0,0.0\n")
    more = {
        "fit": K3,
        "sketch": (*K3, "-o", "out.ckm"),
        "predict": ("-c", "c.csv", "-o", "out.npy"),
    }[command]
    message = fail(command, "bad.npy", *more)
    assert "Row 7, column 1" in message
    assert seen in message
    assert remedy in message
    assert not list(Path().glob("*out*"))
    assert not list(Path().glob(".*.part"))


def test_missing_value_in_a_table_is_named(X: np.ndarray) -> None:
    Path("gap.csv").write_text("east,north\n1,2\n,3\n4,5\n")
    assert "Row 1, column 'east' of gap.csv holds NaN" in fail("fit", "gap.csv", *K3)


def test_text_columns(X: np.ndarray) -> None:
    Path("names.csv").write_text("a,b,name\n1,2,x\n3,4,y\n")
    message = fail("fit", "names.csv", *K3, "--columns", "a,name")
    assert "Column 'name' of names.csv holds text" in message
    assert "--columns a,b" in message
    Path("words.csv").write_text("name,kind\nx,y\n")
    assert "In words.csv no column holds numbers (name: text, kind: text)" in fail(
        "fit", "words.csv", *K3
    )


def test_text_further_down_a_csv(X: np.ndarray) -> None:
    Path("late.csv").write_text("a,b\n" + "1,2\n" * 300_000 + "3,oops\n")
    message = fail("fit", "late.csv", *K3)
    assert "late.csv" in message
    assert "oops" in message


# Numbers of rows and clusters


def test_zero_rows_to_decode(X: np.ndarray) -> None:
    np.save("none.npy", X[:0])
    assert "zero rows" in fail("fit", "none.npy", *K3)
    ckm.sketch(X[:0], sketch_size=30, scale=1.0, random_state=0).save("none.ckm")
    message = fail("decode", "none.ckm", *K3)
    assert "zero rows" in message
    assert "add" in message


def test_one_row(X: np.ndarray) -> None:
    np.save("one.npy", X[:1])
    message = fail("fit", "one.npy", "-k", 1)
    assert "--scale" in message
    assert "row" in message


def test_all_rows_equal(X: np.ndarray) -> None:
    np.save("equal.npy", np.ones((50, 2)))
    message = fail("fit", "equal.npy", *K3)
    assert "equal" in message
    assert "--scale" in message


def test_fewer_rows_than_clusters(X: np.ndarray) -> None:
    np.save("few.npy", X[:3])
    message = fail("fit", "few.npy", "-k", 5)
    assert message == (
        "Error: The data (few.npy) has 3 rows, too few for --n-clusters 5; ask for at most 3, or "
        "add rows."
    )
    Path("few.csv").write_text("a,b\n1,2\n3,5\n")
    assert "The data (few.csv) has 2 rows, too few for --n-clusters 3" in fail(
        "fit", "few.csv", *K3
    )


def test_a_header_and_no_rows(X: np.ndarray) -> None:
    Path("head.csv").write_text("a,b\n")
    message = fail("fit", "head.csv", *K3, "--save-sketch", "s.ckm")
    assert message == (
        "Error: The data (head.csv) has zero rows, so there is nothing to cluster; check what was "
        "read."
    )
    assert not Path("s.ckm").exists()


def test_files_that_are_not_what_the_command_reads(sketch_file: Path) -> None:
    assert "s.ckm holds a sketch where rows are expected; decode it" in fail(
        "fit", sketch_file, *K3
    )
    assert "data.npy is not a sketch" in fail("decode", "data.npy", *K3)


@pytest.mark.parametrize("clusters", ["0", "-2", "2.5", "many"])
def test_invalid_numbers_of_clusters(sketch_file: Path, clusters: str) -> None:
    for command in (
        ("fit", "data.npy"),
        ("sketch", "data.npy", "-o", "t.ckm"),
        ("decode", sketch_file),
    ):
        assert "--n-clusters" in fail(*command, "-k", clusters, status=2)


def test_sketch_too_small(sketch_file: Path) -> None:
    message = fail("fit", "data.npy", "-k", 20, "-m", 10)
    assert "m = 10" in message
    assert "--sketch-size 200" in message
    run("sketch", "data.npy", "-m", 30, "--cells", 0, "-o", "frequencies.ckm")
    assert "too small" in fail("decode", "frequencies.ckm", "-k", 50)


def test_sketch_of_unknown_size(X: np.ndarray) -> None:
    assert "-k" in fail("sketch", "data.npy", "-o", "t.ckm", status=2)


# Files of rows


@pytest.mark.parametrize("shape", [(200,), (10, 2, 2)], ids=["1-D", "3-D"])
def test_arrays_that_are_not_two_dimensional(X: np.ndarray, shape: tuple[int, ...]) -> None:
    np.save("odd.npy", np.zeros(shape))
    message = fail("fit", "odd.npy", *K3)
    assert f"{len(shape)}-D" in message
    assert "odd.npy" in message
    assert str(shape) in message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing.csv", "There is no file nothing.csv"),
        ("nothing-*.csv", "No file matches nothing-*.csv"),
        ("empty.csv", "empty.csv is empty (0 bytes)"),
        ("folder", "folder is a directory"),
        ("data.txt", "must end in .npy, .csv"),
        ("pickle.npy", "Cannot read pickle.npy"),
        ("short.npy", "Cannot read short.npy"),
        ("trash.parquet", "Cannot read trash.parquet"),
        ("ragged.csv", "row 1 (line 3) has 3 fields where the first line has 2; mend that line"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "predict"])
def test_files_that_cannot_be_read(X: np.ndarray, command: str, name: str, words: str) -> None:
    Path("empty.csv").touch()
    Path("folder").mkdir()
    Path("data.txt").write_text("1 2 3")
    Path("pickle.npy").write_bytes(pickle.dumps({"rows": [1, 2]}))
    Path("short.npy").write_bytes(Path("data.npy").read_bytes()[:300])
    Path("trash.parquet").write_bytes(b"not parquet " * 20)
    Path("ragged.csv").write_text("a,b\n1,2\n3,4,5\n")
    Path("c.csv").write_text("cluster,weight,a,b\n0,1.0,0.0,0.0\n")
    assert words in fail(command, name, *(K3 if command == "fit" else ("-c", "c.csv")))


def test_a_pickle_is_never_run(X: np.ndarray) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (Path("exploded"),)

    for name in ("bomb.npy", "bomb.ckm"):
        Path(name).write_bytes(pickle.dumps(Bomb()))
    fail("fit", "bomb.npy", *K3)
    assert "is not a sketch" in fail("decode", "bomb.ckm", *K3)
    assert not Path("exploded").exists()


def test_a_file_given_twice(sketch_file: Path) -> None:
    assert "given twice" in fail("fit", "data.npy", "*.npy", *K3)
    assert "given twice" in fail("merge", sketch_file, f"./{sketch_file}", "-o", "t.ckm")


def test_columns_that_are_not_there(X: np.ndarray) -> None:
    message = fail("fit", "data.parquet", *K3, "--columns", "a,z")
    assert "'z'" in message
    assert "a, b" in message
    assert "no column names" in fail("fit", "data.npy", *K3, "--columns", "a")


# Sketches that do not belong together


def test_wrong_columns_against_like(X: np.ndarray) -> None:
    ckm.sketch("data.parquet", n_clusters=3, random_state=0).save("s.ckm")
    pq.write_table(pa.table({"a": X[:, 0], "c": X[:, 1]}), "other.parquet")
    message = fail("sketch", "other.parquet", "--like", "s.ckm", "-o", "t.ckm")
    assert "'b'" in message
    assert "a, c" in message
    np.save("wide.npy", np.zeros((5, 3)))
    message = fail("sketch", "wide.npy", "--like", "s.ckm", "-o", "t.ckm")
    assert "3 columns" in message
    assert "has 2" in message
    assert not Path("t.ckm").exists()


def test_like_contradicted(sketch_file: Path) -> None:
    assert "--sketch-size 7 contradicts --like" in fail(
        "sketch", "data.npy", "--like", sketch_file, "-m", 7, "-o", "t.ckm"
    )


def test_merging_different_frequencies(X: np.ndarray) -> None:
    a, b = (ckm.sketch(X, n_clusters=3, random_state=seed) for seed in (0, 1))
    a.save("a.ckm"), b.save("b.ckm")
    message = fail("merge", "a.ckm", "b.ckm", "-o", "t.ckm")
    assert a.frequencies.fingerprint[:8] in message
    assert b.frequencies.fingerprint[:8] in message
    assert "--like first" in message
    assert message.startswith(
        "Error: Cannot merge b.ckm with a.ckm. These sketches use different frequencies"
    )
    assert "seeds 0 and 1" in message
    assert not Path("t.ckm").exists()


def test_predicting_other_columns(X: np.ndarray) -> None:
    Path("c.csv").write_text("cluster,weight,a,z\n0,1.0,0.0,0.0\n")
    message = fail("predict", "data.parquet", "-c", "c.csv")
    assert "'z'" in message
    assert "c.csv has a, z" in message
    Path("wide.csv").write_text("cluster,weight,x0,x1,x2\n0,1.0,0.0,0.0,0.0\n")
    assert "data.npy has 2 columns where wide.csv has 3" in fail(
        "predict", "data.npy", "-c", "wide.csv"
    )


# Options

# An option that is wrong by itself is wrong usage, whatever else the line says.
WRONG_OPTIONS = {
    "fit data.npy": (
        "-k 0",
        "-k x",
        "-k 2 --seed -1",
        "-k 2 --jobs 0",
        "-k 2 --device abacus",
        "-k 2 --distribution magic",
        "-k 2 --decoder magic",
        "-k 2 --init magic",
        "-k 2 --n-init 0",
        "-k 2 --scale -1",
        "-k 2 --nan maybe",
        "-k 2 --pool -1",
        "-k 2 --polish -1",
        "-k 2 -m 0",
        "-k 2 --columns '\"a'",
        "-k 2 --columns ''",
        "-k 2 -o out.txt",
        "-k 2 --save-sketch out.txt",
        "-k 2 --nothing",
    ),
    "sketch data.npy -o out.ckm": (
        "",
        "-k 2 --device abacus",
        "-k 2 --jobs 0",
        "-k 2 --distribution magic",
        "-k 2 --nan maybe",
        "-k 2 --resume",
        "-k 2 --engine magic",
        "-k 2 --scheduler here",
    ),
    "decode s.ckm": ("-k 0", "-k 2 --jobs 0", "-k 2 --device abacus", "-k 2 -o out.txt"),
    "predict data.npy -c c.csv": ("--jobs 0", "--nan maybe", "-o out.txt"),
}


@pytest.mark.parametrize("start", WRONG_OPTIONS)
def test_an_option_that_is_wrong_by_itself_is_wrong_usage(
    sketch_file: Path, unreadable: None, start: str
) -> None:
    for option in WRONG_OPTIONS[start]:
        fail(*shlex.split(start), *shlex.split(option), status=2)
    # Before any file is looked for.
    missing = start.replace("data.npy", "none.npy").replace("s.ckm", "none.ckm")
    for option in WRONG_OPTIONS[start]:
        if "out.txt" not in option:
            fail(*shlex.split(missing), *shlex.split(option), status=2)


EMPTY_NAMES = (
    ("fit", "", "-k", 2),
    ("fit", "data.npy", "", "-k", 2),
    ("fit", "data.npy", "-k", 2, "-o", ""),
    ("fit", "data.npy", "-k", 2, "--save-sketch", ""),
    ("fit", "data.npy", "-k", 2, "--columns", ""),
    ("fit", "data.npy", "-k", 2, "--weight-column", ""),
    ("sketch", "", "-k", 2, "-o", "t.ckm"),
    ("sketch", "data.npy", "-k", 2, "-o", ""),
    ("sketch", "data.npy", "-k", 2, "-o", "t.ckm", "--checkpoint", ""),
    ("sketch", "data.npy", "-o", "t.ckm", "--like", ""),
    ("sketch", "data.npy", "-k", 2, "-o", "t.ckm", "--engine", "dask", "--scheduler", ""),
    ("merge", "", "-o", "t.ckm"),
    ("merge", "s.ckm", "", "-o", "t.ckm"),
    ("decode", "", "-k", 2),
    ("decode", "s.ckm", "-k", 2, "-o", ""),
    ("predict", "", "-c", "c.csv"),
    ("predict", "data.npy", "-c", ""),
    ("predict", "data.npy", "-c", "c.csv", "-o", ""),
    ("inspect", ""),
    ("demo", "--folder", ""),
)


@pytest.mark.parametrize("command", EMPTY_NAMES, ids=lambda command: " ".join(map(repr, command)))
def test_an_empty_name_is_an_error(sketch_file: Path, command: tuple[object, ...]) -> None:
    Path("c.csv").write_text("cluster,weight,a,b\n0,1.0,0.0,0.0\n")
    before = sorted(Path().iterdir())
    fail(*command, status=2)
    assert sorted(Path().iterdir()) == before


def test_a_folder_that_is_everything_is_an_error(X: np.ndarray) -> None:
    for name in ("/", "//", "/../"):
        assert "the root of all folders" in fail("fit", name, *K3)
    assert "empty" in fail("fit", "::rows", *K3)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--decoder", "magic", "'auto', 'density', 'clompr'"),
        ("--init", "magic", "'auto', 'range', 'sample', 'k++'"),
        ("--scale", "wide", "'auto' nor a positive variance"),
        ("--scale", "-1", "'auto' nor a positive variance"),
        ("--seed", "-1", "--seed"),
        ("--n-init", "0", "--n-init"),
        ("--pool", "-1", "--pool"),
    ],
)
def test_options_out_of_range(
    X: np.ndarray, unreadable: None, option: str, value: str, words: str
) -> None:
    assert words in fail("fit", "data.npy", *K3, option, value, status=2)


def test_starting_from_rows_that_were_not_sampled(sketch_file: Path, unreadable: None) -> None:
    assert "--pool 1000" in fail("fit", "data.npy", *K3, "--pool", 0, "--init", "sample", status=2)
    assert "--pool 1000" in fail("decode", sketch_file, *K3, "--init", "k++", status=2)


def test_unknown_distribution_and_threads(X: np.ndarray) -> None:
    assert "'adapted-radius'" in fail("fit", "data.npy", *K3, "--distribution", "magic", status=2)
    assert "--n-jobs must be" in fail("fit", "data.npy", *K3, "--jobs", 0, status=2)


def test_demo_in_a_folder_that_cannot_be_made(X: np.ndarray) -> None:
    assert "--folder" in fail("demo", "--folder", "data.npy")


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "data.npy", *K3),
        ("sketch", "data.npy", *K3, "-o", "t.ckm"),
        ("decode", "s.ckm", *K3),
    ],
)
def test_an_unknown_device(command: tuple[str, ...], sketch_file: Path) -> None:
    assert "There is no device 'abacus'; choose one of 'auto'" in fail(
        *command, "--device", "abacus", status=2
    )
    assert not Path("t.ckm").exists()
