"""Names of columns: those in a file of centroids are the data's, whatever they look like; they are
given on the command line as CSV; and at a terminal they are only text.
"""

import itertools
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import example_rows, fail, read_csv, run

NAMES = [("east", "north"), ("x0", "x1"), ("x1", "x0"), ("0", "1"), ("[1]", "[0]"), ("a,b", 'c"d')]


@pytest.fixture
def X(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Rows whose columns differ so much that a swap changes the labels; data.npy holds them."""
    monkeypatch.chdir(tmp_path)
    X = example_rows() * [1.0, 3.0] + [0.0, 100.0]
    np.save("data.npy", X)
    return X


def write(path: str, X: np.ndarray, names: tuple[str, ...], order: tuple[int, ...]) -> None:
    pq.write_table(pa.table([X[:, i] for i in order], names=[names[i] for i in order]), path)


def labels_of(data: str, centroids: str) -> list[int]:
    run("predict", data, "-c", centroids, "-o", "labels.npy")
    labels: list[int] = np.load("labels.npy").tolist()
    return labels


@pytest.mark.parametrize("kind", [".csv", ".json"])
@pytest.mark.parametrize("names", NAMES, ids="-".join)
def test_labels_do_not_depend_on_the_order_of_columns(
    X: np.ndarray, names: tuple[str, ...], kind: str
) -> None:
    write("data.parquet", X, names, (0, 1))
    run("fit", "data.parquet", "-k", 3, "-o", f"c{kind}")
    expected = labels_of("data.parquet", f"c{kind}")
    assert len(set(expected)) == 3
    for order in itertools.permutations(range(2)):
        write("other.parquet", X, names, order)
        assert labels_of("other.parquet", f"c{kind}") == expected
    # Rows without names are taken by position; other names are refused.
    assert labels_of("data.npy", f"c{kind}") == expected
    write("other.parquet", X, ("up", "down"), (0, 1))
    assert f"which c{kind} was made with: the data has up, down" in fail(
        "predict", "other.parquet", "-c", f"c{kind}"
    )


@pytest.mark.parametrize("kind", [".csv", ".json"])
def test_centroids_of_unnamed_columns_go_by_position(X: np.ndarray, kind: str) -> None:
    run("fit", "data.npy", "-k", 3, "-o", f"c{kind}")
    expected = labels_of("data.npy", f"c{kind}")
    for names in NAMES:
        write("data.parquet", X, names, (0, 1))
        assert labels_of("data.parquet", f"c{kind}") == expected


def test_names_that_stand_for_no_names_are_not_written_as_csv(X: np.ndarray) -> None:
    write("data.parquet", X, ("[0]", "[1]"), (0, 1))
    message = fail("fit", "data.parquet", "-k", 3, "-o", "c.csv")
    assert message == fail("fit", "data.parquet", "-k", 3)
    assert "Columns named [0], [1] cannot be written as CSV" in message
    run("fit", "data.parquet", "-k", 3, "-o", "c.json")
    expected = labels_of("data.parquet", "c.json")
    write("other.parquet", X, ("[0]", "[1]"), (1, 0))
    assert labels_of("other.parquet", "c.json") == expected


def test_labels_are_the_numbers_in_the_file_in_any_order_of_lines(X: np.ndarray) -> None:
    run("fit", "data.npy", "-k", 3, "-o", "c.csv")
    expected = labels_of("data.npy", "c.csv")
    header, *lines = Path("c.csv").read_text().splitlines()
    for order in itertools.permutations(lines):
        Path("sorted.csv").write_text("\n".join([header, *order]))
        assert labels_of("data.npy", "sorted.csv") == expected
    Path("fewer.csv").write_text("\n".join([header, lines[0], lines[2]]))
    assert "not numbered from 0 to 1" in fail("predict", "data.npy", "-c", "fewer.csv")
    Path("twice.csv").write_text("cluster,weight,a,a\n0,1,0,0\n")
    assert "two columns of the same name" in fail("predict", "data.npy", "-c", "twice.csv")


ODD_NAMES = ("a,b", 'c"d', " e", "f\ng", "")


def test_columns_of_any_name_can_be_chosen(X: np.ndarray) -> None:
    """A line of CSV names them: quotes protect commas, quotes, spaces and line breaks."""
    rows = np.random.default_rng(0).normal(size=(100, len(ODD_NAMES) + 1))
    write("odd.parquet", rows, (*ODD_NAMES, "plain"), tuple(range(len(ODD_NAMES) + 1)))
    for names in itertools.pairwise(ODD_NAMES):
        line = ",".join('"' + name.replace('"', '""') + '"' for name in names)
        run("fit", "odd.parquet", "-k", 2, "--columns", line, "-o", "c.csv", "--seed", 3)
        header, _ = read_csv(Path("c.csv").read_text())
        assert tuple(header[2:]) == names
    help_text = " ".join(run("fit", "--help")[0].split())
    assert """Quotes protect a comma in a name: '"a,b",c'""" in help_text


def test_messages_suggest_columns_as_a_shell_takes_them(X: np.ndarray) -> None:
    Path("text.csv").write_text('"a,b",c,name\n1,2,x\n3,4,y\n')
    message = fail("fit", "text.csv", "-k", 2, "--columns", "c,name")
    line = shlex.split(message.partition("--columns ")[2])[0].rstrip(".")
    run("fit", "text.csv", "-k", 1, "--columns", line, "--scale", 1, "-o", "c.csv")
    header, _ = read_csv(Path("c.csv").read_text())
    assert header[2:] == ["a,b", "c"]


CONTROLS = ("\x1b[31mred", "bell\x07", "back\x08", "\x9b2J", "\u202eright", "two\nlines", "\x7f")


def test_control_characters_do_not_reach_the_terminal(X: np.ndarray) -> None:
    rows = np.random.default_rng(0).normal(size=(50, len(CONTROLS)))
    write("odd.parquet", rows, CONTROLS, tuple(range(len(CONTROLS))))
    run("sketch", "odd.parquet", "-k", 1, "-o", "s.ckm")
    texts = [
        run("inspect", "s.ckm")[0],
        fail("fit", "odd.parquet", "-k", 1, "--columns", "none"),
        fail("fit", "odd.parquet", "-k", 1, "--columns", "\x1b[31m"),
        run("sketch", "odd.parquet", "-k", 1, "-o", "t.ckm", "-v")[1],
    ]
    for text in texts:
        assert text.replace("\n", "").isprintable(), text
    assert "\\x1b[31mred" in texts[0]
