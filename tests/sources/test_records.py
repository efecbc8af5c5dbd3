"""Records of CSV: line breaks within quotes, lines that are too long, numbers in the first line."""

import csv
import gzip
import io
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from every_source import as_csv, rows_of
from hypothesis import example, given
from hypothesis import strategies as st

from ckm._sources import ColumnRequest, ReadSettings, open_source
from ckm._sources.records import first_record_end, split_records, split_runs
from ckm.errors import ColumnsWarning, InputFileError

NUMBERS = ColumnRequest(columns=["a", "b"])
NOTES = st.text(st.sampled_from('x",;\n\r" 5'), max_size=12)


def parsed(text: bytes, delimiter: str = ",") -> list[list[str]]:
    """The records, as Python's own reader finds them."""
    return list(csv.reader(io.StringIO(text.decode(), newline=""), delimiter=delimiter))


def written(rows: list[Any], delimiter: str = ",", quoting: int = csv.QUOTE_NONNUMERIC) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=quoting).writerows(rows)
    return file.getvalue()


@given(st.text(st.sampled_from('x",\n'), max_size=60), st.integers(1, 20))
def test_blocks_of_any_text_have_the_records_of_the_whole(text: str, size: int) -> None:
    """Also with quotes that are letters, and with quotes that are never closed."""
    data = text.encode()
    blocks = list(split_records(io.BytesIO(data), size, "x", 1000, ","))
    assert b"".join(blocks) == data
    assert [row for block in blocks for row in parsed(block)] == parsed(data)
    runs = list(split_runs(data, size, ","))
    assert b"".join(runs) == data
    assert [row for run in runs for row in parsed(run)] == parsed(data)
    end = first_record_end(data, ",")
    assert parsed(data[:end]) == parsed(data)[: bool(end)]


@given(
    notes=st.lists(st.tuples(NOTES, NOTES), min_size=1, max_size=30),
    size=st.integers(3, 200),
    delimiter=st.sampled_from([",", ";"]),
    quoting=st.sampled_from([csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL]),
)
@example(notes=[("", "")], size=3, delimiter=";", quoting=csv.QUOTE_NONNUMERIC)
def test_rows_with_quoted_text_in_blocks_of_any_size(
    tmp_path_factory: pytest.TempPathFactory,
    notes: list[tuple[str, str]],
    size: int,
    delimiter: str,
    quoting: int,
) -> None:
    rows = [(i + 0.5, one, two, -i) for i, (one, two) in enumerate(notes)]
    header = ("a", "note", 'a "long"\nname', "b")
    text = written([header, *rows], delimiter, quoting)
    path = as_csv(text, tmp_path_factory.mktemp("csv") / "x.csv")
    settings = ReadSettings(csv_block_bytes=size)
    expected = [[a, b] for a, _, _, b in rows]
    assert rows_of(path, NUMBERS, settings).tolist() == expected
    assert rows_of(io.BytesIO(text.encode()), NUMBERS, settings).tolist() == expected


@pytest.mark.parametrize("note", ["one\ntwo", 'of "any"\nlength\n' * 20_000])
def test_line_breaks_within_quotes_of_files_over_a_megabyte(tmp_path: Path, note: str) -> None:
    rows = [(i, note, i / 4) for i in range(1 + 2_500_000 // len(note))]
    text = written([("a", "note", "b"), *rows])
    path = as_csv(text, tmp_path / "x.csv")
    expected = [[a, b] for a, _, b in rows]
    assert rows_of(path, NUMBERS).tolist() == expected
    assert rows_of(path, NUMBERS, ReadSettings(csv_block_bytes=9_999)).tolist() == expected
    sample, _ = open_source(path, NUMBERS).sample(7, np.random.default_rng(0))
    assert set(map(tuple, sample)) <= set(map(tuple, expected))


def test_rows_longer_than_a_piece_that_a_thread_parses(tmp_path: Path) -> None:
    text = "a,note,b\n" + "".join(f"{i},{'x' * 1_500_000},{-i}\n" for i in range(3))
    path = as_csv(text, tmp_path / "x.csv")
    assert rows_of(path, NUMBERS).tolist() == [[0, 0], [1, -1], [2, -2]]


def test_a_quote_that_is_a_letter(tmp_path: Path) -> None:
    rows = "".join(f'{i},{i}" wide,{i}\n' for i in range(5000))
    path = as_csv(f"a,note,b\n{rows}", tmp_path / "x.csv")
    found = rows_of(path, NUMBERS, ReadSettings(csv_block_bytes=1000, max_line_bytes=2000))
    assert found.tolist() == [[i, i] for i in range(5000)]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_what_is_too_long_is_named(tmp_path: Path, suffix: str) -> None:
    settings = ReadSettings(csv_block_bytes=1000, max_line_bytes=10_000)
    good = "1,2\n" * 300_000
    for long, words in (
        ("3," * 10_000, r"the line that begins with '3,3,.*' is longer than 10,000 bytes; write"),
        ('3,"note\n' + good, r"begins with '3,\"note.*' has a quote that is not closed within 10,"),
    ):
        path = tmp_path / f"x{suffix}"
        data = f"a,b\n{good}{long}".encode()
        path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
        with pytest.raises(InputFileError, match=rf"Cannot read .*x{suffix}: .*{words}"):
            rows_of(path, settings=settings)
        with pytest.raises(InputFileError, match=words):
            rows_of(io.BytesIO(path.read_bytes()), settings=settings)


def test_memory_is_bounded_for_a_line_without_end(tmp_path: Path) -> None:
    """A small compressed file of one line of 400 MB, with the default settings."""
    path = tmp_path / "x.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(100):
            file.write(b"1," * 2**21)
    code = (
        "import resource, sys; from ckm._sources import open_source\n"
        "import pyarrow.csv\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: open_source(sys.argv[1])\n"
        "except Exception as error: print(type(error).__name__)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, check=True, timeout=120
    )
    name, megabytes = done.stdout.split()
    assert name == b"InputFileError"
    assert int(megabytes) < 250


def test_quoted_numbers_above_others_are_names(tmp_path: Path) -> None:
    text = '"2019","2020"\n1,2\n3,4\n'
    path = as_csv(text, tmp_path / "x.csv")
    for data in (path, io.BytesIO(text.encode())):
        source = open_source(data)
        assert source.columns == ("2019", "2020")
    assert rows_of(path).tolist() == [[1, 2], [3, 4]]
    all_quoted = as_csv('"1","2"\n"3","4"\n', tmp_path / "y.csv")
    assert rows_of(all_quoted).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("names", ["2019,2020", "0,1"])
def test_integers_above_numbers_with_decimals_are_names(tmp_path: Path, names: str) -> None:
    path = as_csv(f"{names}\n1.5,2.0\n3.5,1e-3\nnan,4.25\n", tmp_path / "x.csv")
    with pytest.warns(
        ColumnsWarning, match=rf"first line of .*x.csv \({names}\) is taken for the names .*decim"
    ):
        source = open_source(path)
    assert source.columns == tuple(names.split(","))
    assert sum(len(chunk.rows) for chunk in source.chunks()) == 3


def test_default_names_of_a_data_frame_above_integers_are_pointed_out(tmp_path: Path) -> None:
    path = as_csv("0,1\n5,7\n8,9\n", tmp_path / "x.csv")
    with pytest.warns(ColumnsWarning, match=r"x.csv \(0,1\) is taken for a row, .*put quotes"):
        assert len(rows_of(path)) == 3


@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3.5,4\n",  # integers further down too
        "1.0,2.5\n3.5,4.5\n",
        "5,5\n3.5,4.5\n",  # names differ
        "7,3\n5,2\n",
        "1.5,,2.5\n3.5,4.5,6.5\n",  # a missing value
    ],
)
def test_a_first_line_of_numbers_is_a_row(tmp_path: Path, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source = open_source(as_csv(text, tmp_path / "x.csv"))
        assert source.columns is not None
        assert source.columns[0] == "x0"
        assert sum(len(chunk.rows) for chunk in source.chunks()) == 2
