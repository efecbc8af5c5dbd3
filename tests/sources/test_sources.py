"""What is particular to some sources: awkward files, folders, keys, pipes, queries, iterables. The
conformance suite has what all share.
"""

import importlib
import io
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import zarr
from every_source import (
    NAMES,
    Loader,
    as_table,
    folder_with_keys,
    parts,
    values,
    write_csv,
    write_npy,
    write_parquet,
)

import ckm
from ckm._core.frequencies import draw_frequencies
from ckm._core.sketch import Sketch
from ckm._sources import ColumnRequest, ReadSettings, open_source
from ckm.errors import (
    ColumnsWarning,
    DataError,
    HeadWarning,
    InputFileError,
    MismatchError,
    MissingPackageError,
    NonFiniteError,
    ParameterError,
)

LIKE = Sketch.empty(draw_frequencies(10, 3, seed=0), NAMES)
PLAIN = Sketch.empty(LIKE.frequencies)


def rows_of(
    data: Any,
    request: ColumnRequest = ColumnRequest(),  # noqa: B008
    settings: ReadSettings = ReadSettings(),  # noqa: B008
) -> np.ndarray:
    return np.concatenate([chunk.rows for chunk in open_source(data, request, settings).chunks()])


# Types and names


def test_columns_of_different_types_in_one_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {
        "east": rng.integers(0, 9, 100),
        "north": rng.normal(size=100).astype(np.float32),
        "height": rng.random(100) < 0.5,
    }
    X = np.stack([column.astype(np.float64) for column in columns.values()], axis=1)
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    for data in (
        pa.table(columns),
        pd.DataFrame(columns),
        pl.DataFrame(columns),
        pl.LazyFrame(columns),
        tmp_path / "x.parquet",
    ):
        assert ckm.sketch(data, like=LIKE) == ckm.sketch(X, like=LIKE)


def test_files_may_differ_in_precision(tmp_path: Path) -> None:
    X = values(100)
    whole = np.round(X * 10)
    for order in (1, -1):
        for i, (part, kind) in enumerate([(X, None), (whole, pa.int64())][::order]):
            pq.write_table(as_table(part, kind), tmp_path / f"{i}.parquet")
        together = ckm.sketch([tmp_path / "0.parquet", tmp_path / "1.parquet"], like=LIKE)
        assert together == ckm.sketch(np.concatenate([X, whole]), like=LIKE)


def test_nullable_pandas_columns() -> None:
    frame = pd.DataFrame(values(50).round(), columns=NAMES).convert_dtypes()
    assert {str(kind) for kind in frame.dtypes} == {"Int64"}
    assert ckm.sketch(frame, like=LIKE) == ckm.sketch(values(50).round(), like=LIKE)


def test_whole_numbers_beyond_2_to_53_are_rounded() -> None:
    """As everywhere in float64, and as the documentation says."""
    large = 2**53 + np.arange(6).reshape(2, 3)
    for data in (large, as_table(large), pd.DataFrame(large, columns=NAMES)):
        assert np.array_equal(rows_of(data).astype(np.float64), large.astype(np.float64))


def test_pandas_columns_that_are_numbers_are_not_names() -> None:
    assert ckm.sketch(pd.DataFrame(values(50)), like=PLAIN).columns is None
    assert ckm.sketch(pd.DataFrame(values(50)), like=LIKE) == ckm.sketch(values(50), like=LIKE)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_files_of_one_set_may_order_their_columns_differently(tmp_path: Path, suffix: str) -> None:
    from every_source import write_arrow

    X, write = (
        values(100),
        {".csv": write_csv, ".parquet": write_parquet, ".arrow": write_arrow}[suffix],
    )
    write(as_table(X[:40]), tmp_path / f"a{suffix}")
    write(as_table(X[40:]).select(["north", "height", "east"]), tmp_path / f"b{suffix}")
    assert ckm.sketch(str(tmp_path / f"*{suffix}"), like=LIKE) == ckm.sketch(X, like=LIKE)
    s = ckm.sketch(str(tmp_path / f"*{suffix}"), sketch_size=10, random_state=0)
    assert s == ckm.sketch(as_table(X), sketch_size=10, random_state=0)


def test_weights_are_not_clustered_and_must_be_weights(tmp_path: Path) -> None:
    table = as_table(values(50)).append_column("w", pa.array([1.0] * 49 + [-1.0]))
    path = write_parquet(table, tmp_path / "x.parquet")
    for data in (table, path, pl.LazyFrame(table), table.to_reader(), [table.to_pandas()]):
        with pytest.raises(
            DataError, match=r"Column 'w'.* must be finite and not negative; weight 49 is -1"
        ):
            ckm.sketch(data, weight_column="w", like=LIKE)
    with pytest.raises(
        ParameterError, match="no column 'v'; the columns are east, north, height, w"
    ):
        ckm.sketch(path, weight_column="v", like=LIKE)
    with pytest.raises(ParameterError, match="'w' holds the weights"):
        ckm.sketch(path, weight_column="w", columns=["east", "w"], sketch_size=10)
    with pytest.raises(
        ParameterError, match=r"weight_column='w' and sample_weight= are both given"
    ):
        ckm.sketch(path, weight_column="w", sample_weight=np.ones(50), like=LIKE)
    with pytest.raises(ParameterError, match=r"no column names, so none is 'w'"):
        ckm.sketch(values(50), weight_column="w", like=LIKE)
    with pytest.raises(ParameterError, match="nan must be 'error' or 'drop'; got 'fill'"):
        ckm.sketch(values(50), nan="fill", like=LIKE)


def test_a_bad_value_is_placed_in_its_file(tmp_path: Path) -> None:
    X = values(100).copy()
    X[63, 2] = np.inf
    for suffix, write in ((".csv", write_csv), (".parquet", write_parquet)):
        write(as_table(X[:50]), tmp_path / f"a{suffix}")
        write(as_table(X[50:]), tmp_path / f"b{suffix}")
        for options in ({"like": LIKE}, {"sketch_size": 10}, {"like": LIKE, "nan": "drop"}):
            with pytest.raises(
                NonFiniteError, match=rf"Row 13, column 'height' of .*b{suffix} holds inf"
            ) as caught:
                ckm.sketch(str(tmp_path / f"*{suffix}"), **options)
            assert caught.value.file == str(tmp_path / f"b{suffix}")


def test_places_stay_right_when_rows_before_were_dropped() -> None:
    X = values(100).copy()
    X[[3, 5], 0], X[63, 2] = np.nan, 1e300
    with pytest.raises(NonFiniteError, match=r"Row 63, column 2 holds 1e\+300"):
        ckm.sketch(X, like=LIKE, nan="drop")


# CSV


def as_csv(text: str | bytes, path: Path) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_csv_without_a_header(tmp_path: Path) -> None:
    path = write_csv(as_table(values()), tmp_path / "x.csv")
    path.write_text(path.read_text().split("\n", 1)[1])
    s = ckm.sketch(path, like=PLAIN)
    assert s.count == 3000
    assert s.columns == ("x0", "x1", "x2")
    assert np.array_equal(s.tally.sums, ckm.sketch(values(), like=PLAIN).tally.sums)


def test_csv_as_others_write_it(tmp_path: Path) -> None:
    """CRLF, a byte order mark, quoted names and numbers, blank lines, no line break at the end, CR
    alone.
    """
    plain = "east,north\n1,2\n3,4\n5,6\n"
    expected = [[1, 2], [3, 4], [5, 6]]
    for text in (
        plain,
        plain.replace("\n", "\r\n"),
        b"\xef\xbb\xbf" + plain.encode(),
        b"\xef\xbb\xbf" + plain.replace("\n", "\r\n").encode(),
        plain.rstrip("\n"),
        plain.replace("\n", "\n\n"),
        plain.replace("\n", "\r"),
        '"east","north"\n"1","2"\n3,4\n5,"6"\n',
        'east,"north"\n1,2\r\n3,4\n5,6',
    ):
        path = as_csv(text, tmp_path / "x.csv")
        assert rows_of(path).tolist() == expected
        assert open_source(path).columns == ("east", "north")
        assert rows_of(io.BytesIO(path.read_bytes())).tolist() == expected


def test_line_breaks_and_commas_within_quotes(tmp_path: Path) -> None:
    rows = [(i, f'"line one,\nline {"two" * (i % 7)} and ""that"""', i / 4) for i in range(4000)]
    path = as_csv(
        "a,note,b\n" + "".join(f"{a},{note},{b}\n" for a, note, b in rows), tmp_path / "x.csv"
    )
    with pytest.warns(ColumnsWarning, match=r"note \(text\)"):
        found = rows_of(path, settings=ReadSettings(csv_block_bytes=2**15))
    assert np.array_equal(found, [(a, b) for a, _, b in rows])


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(tmp_path: Path) -> None:
    from ckm._sources.lines import split_lines

    text = b'1,5" wide\n' + b"2,plain\n" * 100_000
    assert b"".join(blocks := list(split_lines(io.BytesIO(text), 4096, "x"))) == text
    assert max(map(len, blocks)) < 20 * 4096


def test_a_whole_number_column_that_turns_fractional_far_down(tmp_path: Path) -> None:
    """CSV types are inferred from the first megabyte; what comes after must not be rounded, nor
    refused.
    """
    count = 300_000
    X = np.ones((count, 3))
    X[:, 1] = np.arange(count) % 10
    X[-1] = [0.5, 2.25, 1e-3]
    text = (
        "east,north,height\n"
        + "".join(f"1,{i % 10},1\n" for i in range(count - 1))
        + "0.5,2.25,0.001\n"
    )
    assert len(text) > 2**20
    assert ckm.sketch(as_csv(text, tmp_path / "x.csv"), like=LIKE) == ckm.sketch(X, like=LIKE)


def test_the_row_of_what_cannot_be_parsed(tmp_path: Path) -> None:
    settings = ReadSettings(csv_block_bytes=4096)
    good = "1.0,2.0\n" * 200_000
    late = as_csv("a,b\n" + good + "3,oops\n" + good, tmp_path / "late.csv")
    with pytest.raises(
        InputFileError, match=r"late.csv: in column 'b': row 200000:.*invalid value 'oops'"
    ):
        rows_of(late, settings=settings)
    ragged = as_csv("a,b\n" + good + "3\n" + good, tmp_path / "ragged.csv")
    with pytest.raises(
        InputFileError,
        match=r"ragged.csv: row 200000 \(line 200002\) has 1 fields where the first line has 2; mend",
    ):
        rows_of(ragged, settings=settings)
    quoted = as_csv('1,"2"\n\n3,"4\n"\n5,6,7\n', tmp_path / "quoted.csv")
    with pytest.raises(
        InputFileError,
        match=r"quoted.csv: row 2 \(line 5\) has 3 fields where the first line has 2; .* quotes around .* ',' in",
    ):
        rows_of(quoted, settings=settings)


@pytest.mark.parametrize(
    ("delimiter", "decimal"),
    [(",", "."), (";", "."), (";", ","), ("\t", "."), ("\t", ","), ("|", ".")],
)
@pytest.mark.parametrize("named", [True, False])
def test_fields_between_other_marks_than_commas(
    tmp_path: Path, delimiter: str, decimal: str, named: bool
) -> None:
    rows = [[1.5, -2.0, 3.25], [4.0, 5.5, 1e-3], [7.0, 8.0, 9.125]] * 50
    lines = [delimiter.join(str(x).replace(".", decimal) for x in row) for row in rows]
    text = "\n".join([delimiter.join(NAMES)] * named + lines)
    paths = [
        as_csv(text, tmp_path / name) for name in ("x.csv", "x.tsv")[: 1 + (delimiter == "\t")]
    ]
    for data in (*paths, io.BytesIO(text.encode())):
        source = open_source(data)
        assert source.columns == (NAMES if named else ("x0", "x1", "x2"))
        assert np.concatenate([chunk.rows for chunk in source.chunks()]).tolist() == rows


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        # the comma does not part the second line
        ("height, cm\tweight, kg\n1.5\t2\n", ("height, cm", "weight, kg")),
        ('"a;b",c\n1,2\n', ("a;b", "c")),
        ("a;b,c;d\n1,2\n", ("a;b", "c;d")),
        ("a|b\n1|2\n", ("a", "b")),
        ("a;b\n1;2;3\n", None),  # nor does the semicolon
        ("a\n1\n", ("a",)),
    ],
)
def test_which_mark_parts_fields(
    tmp_path: Path, text: str, columns: tuple[str, ...] | None
) -> None:
    path = as_csv(text, tmp_path / "x.csv")
    if columns is not None:
        assert open_source(path).columns == columns
        return
    with pytest.raises(DataError, match="no column holds numbers"):
        open_source(path)


def test_a_header_with_commas_in_a_tsv(tmp_path: Path) -> None:
    path = as_csv("a,x\tb,y\n1,5\t2,5\n", tmp_path / "x.tsv")
    assert open_source(path).columns == ("a,x", "b,y")
    assert rows_of(path).tolist() == [[1.5, 2.5]]


def test_text_among_numbers_is_shown(tmp_path: Path) -> None:
    path = as_csv(
        'a,much,gap,plain,day\n1,"1,000",2,x,2024-05-01\n3,"2,000",-,y7,2024-05-02\n',
        tmp_path / "x.csv",
    )
    with pytest.warns(
        ColumnsWarning,
        match=r"x.csv: much \(text, such as '1,000'\), gap \(text, such as '-'\), plain \(text\), day \(date",
    ):
        assert rows_of(path).tolist() == [[1], [3]]


@pytest.mark.parametrize("text", [",a,b\n0,1,2\n1,3,4\n", "a,b,\n1,2,\n3,4,\n"])
def test_numbers_without_a_name_are_left_out(tmp_path: Path, text: str) -> None:
    """As pandas writes the numbers of rows, and others a comma at the end of lines."""
    with pytest.warns(
        ColumnsWarning,
        match=r"Left out of .*x.csv: a column \(numbers without a name, perhaps of rows\); choose",
    ):
        assert rows_of(as_csv(text, tmp_path / "x.csv")).tolist() == [[1, 2], [3, 4]]
    assert rows_of(pd.DataFrame({"": [1.0, 2.0]})).tolist() == [[1], [2]], "where there are others"
    assert rows_of(tmp_path / "x.csv", ColumnRequest(columns=["", "a"])).shape == (2, 2), (
        "unless they are asked for"
    )


@pytest.mark.parametrize("name", ["id", None])
def test_the_index_of_a_data_frame_is_left_out(tmp_path: Path, name: str | None) -> None:
    """Pandas writes it as a column, which the frame itself does not have."""
    index, stored = pd.Index([7, 5], name=name), name or "__index_level_0__"
    frame = pd.DataFrame({"a": [1.0, 3.0], "b": [2.0, 4.0]}, index=index)
    frame.to_parquet(tmp_path / "x.parquet")
    table = pa.Table.from_pandas(frame)
    feather.write_feather(table, tmp_path / "x.arrow")
    for data in (
        tmp_path / "x.parquet",
        tmp_path / "x.arrow",
        table,
        table.to_reader(),
        ds.dataset(tmp_path / "x.parquet"),
    ):
        with pytest.warns(
            ColumnsWarning, match=rf"Left out of .*: {stored} \(a data frame's index\); choose"
        ):
            assert rows_of(data).tolist() == rows_of(frame).tolist()
    assert rows_of(tmp_path / "x.parquet", ColumnRequest(columns=["a", stored])).tolist() == [
        [1, 7],
        [3, 5],
    ], "unless it is asked for"
    assert rows_of(pa.Table.from_pandas(frame[[]])).tolist() == [[7], [5]], (
        "or there is nothing else"
    )
    plain = pd.DataFrame({"a": [1.0, 3.0]})  # its index is a range, and not stored
    plain.to_parquet(tmp_path / "plain.parquet")
    assert rows_of(tmp_path / "plain.parquet").tolist() == [[1], [3]]


def test_readers_of_other_libraries(tmp_path: Path) -> None:
    table = as_table(values(3000))
    pq.write_table(table, tmp_path / "x.parquet")
    table.to_pandas().to_csv(tmp_path / "x.csv", index=False)
    expected = ckm.sketch(tmp_path / "x.parquet", like=LIKE)
    with pd.read_csv(tmp_path / "x.csv", chunksize=700) as pieces:
        assert ckm.sketch(pieces, like=LIKE) == expected
    table.to_pandas().to_json(
        tmp_path / "x.jsonl", orient="records", lines=True, double_precision=15
    )
    with pd.read_json(tmp_path / "x.jsonl", lines=True, chunksize=700) as pieces:
        assert ckm.sketch(pieces, like=LIKE).count == 3000
    with pq.ParquetFile(tmp_path / "x.parquet") as file:
        assert ckm.sketch(file, like=LIKE) == expected
        assert rows_of(file, ColumnRequest(columns=list(NAMES[:1]))).shape == (3000, 1), (
            "again, and some columns"
        )


def test_fields_between_spaces_are_not_told_apart(tmp_path: Path) -> None:
    path = as_csv("a b\n1 2\n", tmp_path / "x.csv")
    with pytest.raises(
        DataError,
        match=r"a b: text, such as '1 2', without a comma, semicolon, tab or \| between fields",
    ):
        open_source(path)


def test_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    empty = [as_csv("east,north,height\n", tmp_path / f"{i}.csv") for i in range(2)]
    assert open_source(empty).n_rows == 0
    assert ckm.sketch(empty, like=LIKE).count == 0
    assert (
        open_source([*empty, as_csv("east,north,height\n1,2,3\n", tmp_path / "2.csv")]).n_rows
        is None
    )
    with pytest.raises(
        DataError, match=r"zero rows \(n_samples=0\), so there is nothing to cluster; check"
    ):
        ckm.CompressiveKMeans(2).fit(empty)


def test_compressed_files_that_are_cut_short(tmp_path: Path) -> None:
    from every_source import write_compressed

    for suffix in (".csv.gz", ".csv.zst"):
        path = write_compressed(as_table(values(2000)), tmp_path / f"x{suffix}")
        path.write_bytes(path.read_bytes()[:-2000])
        with pytest.raises(InputFileError, match=rf"Cannot read .*x{suffix}"):
            ckm.sketch(path, like=LIKE)


# Files, folders, keys


def test_a_pattern_finds_files_in_folders(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    write_npy(values()[:1000], tmp_path / "a" / "1.npy")
    write_npy(values()[1000:], tmp_path / "a" / "b" / "2.npy")
    for data in (str(tmp_path / "**" / "*.npy"), tmp_path, str(tmp_path) + "/"):
        assert ckm.sketch(data, like=LIKE) == ckm.sketch(values(), like=LIKE)


def test_a_name_with_brackets_is_a_name_first(tmp_path: Path) -> None:
    path = write_npy(values(), tmp_path / "x[1].npy")
    assert ckm.sketch(str(path), like=LIKE).count == 3000


def test_folders_hold_one_kind_of_file(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="is a directory without a file"):
        ckm.sketch(tmp_path, like=LIKE)
    write_npy(values(), tmp_path / "x.npy")
    (tmp_path / "README.txt").write_text("Not data.")
    (tmp_path / ".hidden.csv").write_text("a\n1\n")
    assert ckm.sketch(tmp_path, like=LIKE).count == 3000
    write_csv(as_table(values()), tmp_path / "x.csv")
    with pytest.raises(ParameterError, match=r"several kinds \(.csv, .npy\)"):
        ckm.sketch(tmp_path, like=LIKE)


def test_keys_in_the_names_of_folders(tmp_path: Path) -> None:
    X = values(500)
    hive = folder_with_keys(as_table(X), tmp_path)
    assert ckm.sketch(hive, like=LIKE) == ckm.sketch(X, like=LIKE)
    with pytest.warns(
        ColumnsWarning, match=r"year \(a key of folders\), kind \(a key of folders\)"
    ):
        assert open_source(hive).columns == NAMES
    years = np.repeat([2020, 2021, 2022, 2023], [10, 0, 1, 489])
    assert np.array_equal(
        rows_of(hive, ColumnRequest(["north", "year"])), np.stack([X[:, 1], years], axis=1)
    )
    assert np.array_equal(rows_of(f"{hive}/*/*/*.parquet", ColumnRequest(["year"]))[:, 0], years)
    with pytest.raises(DataError, match=r"Column 'kind' of .* holds text"):
        open_source(hive, ColumnRequest(["kind"]))
    (tmp_path / "hive" / "year=2020").rename(tmp_path / "hive" / "year=__HIVE_DEFAULT_PARTITION__")
    with pytest.raises(NonFiniteError, match=r"Row 0, column 'year' of .*NaN"):
        ckm.sketch(hive, columns=["north", "year"], sketch_size=4)


def test_arrays_on_disk_are_read_not_mapped(tmp_path: Path) -> None:
    """A map would count as memory of the process until the machine runs out of it."""
    rows = next(iter(open_source(write_npy(values(), tmp_path / "x.npy")).chunks())).rows
    assert rows.base is None or not isinstance(rows.base, np.memmap)
    assert not isinstance(rows, np.memmap)


def test_which_array_in_a_file(tmp_path: Path) -> None:
    X = values(50)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a/rows"], file["b"], file["flat"], file["names"] = (
            X,
            2 * X,
            X[:, 0],
            np.array([b"x", b"y"]),
        )
    group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w")
    group.create_array("a/rows", data=X)
    group.create_array("b", data=2 * X)
    for name, what in (("x.h5", "dataset"), ("x.zarr", "array")):
        assert np.array_equal(rows_of(f"{tmp_path / name}::a/rows"), X)
        assert np.array_equal(rows_of(f"{tmp_path / name}::/b"), 2 * X)
        with pytest.raises(
            InputFileError,
            match=rf"{what}s that are tables of numbers: a/rows, b; name one, as .*{name}::a/rows",
        ):
            open_source(tmp_path / name)
        with pytest.raises(InputFileError, match=rf"no {what} 'c'; it has a/rows, b"):
            open_source(f"{tmp_path / name}::c")
        with pytest.raises(ParameterError, match="no column names"):
            open_source(f"{tmp_path / name}::b", ColumnRequest(["b"]))
    with pytest.raises(DataError, match=r"flat has shape \(50,\)"):
        open_source(f"{tmp_path / 'x.h5'}::flat")
    as_csv("not it", tmp_path / "bad.h5")
    with pytest.raises(InputFileError, match=r"Cannot read .*bad.h5.*not an HDF5 file"):
        open_source(tmp_path / "bad.h5")
    (tmp_path / "bad.zarr").mkdir()
    with pytest.raises(InputFileError, match=r"Cannot read .*bad.zarr.*not a Zarr store"):
        open_source(tmp_path / "bad.zarr")


@pytest.mark.parametrize(("package", "name"), [("h5py", "x.h5"), ("zarr", "x.zarr")])
def test_a_package_that_is_missing_is_named(
    package: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_csv("anything", tmp_path / name)
    monkeypatch.setitem(sys.modules, package, None)
    extra = {"h5py": "hdf5", "zarr": "zarr"}[package]
    with pytest.raises(
        MissingPackageError,
        match=rf"needs {package}, which is not installed: pip install 'compressive-kmeans\[{extra}\]'",
    ):
        ckm.sketch(tmp_path / name, like=LIKE)


def test_feather_of_the_first_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="Feather's first version"):
        open_source(as_csv(b"FEA1....", tmp_path / "x.feather"))


# Pipes and streams


def test_standard_input_of_another_process(tmp_path: Path) -> None:
    X = values(2000)
    code = "import ckm; print(ckm.sketch('-', sketch_size=10, random_state=0).tally.sums.sum())"
    expected = str(ckm.sketch(as_table(X), sketch_size=10, random_state=0).tally.sums.sum())
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, as_table(X).schema) as writer:
        writer.write_table(as_table(X), max_chunksize=100)
    text = write_csv(as_table(X), tmp_path / "x.csv").read_bytes()
    for data in (text, stream.getvalue(), pa.compress(text, "gzip", asbytes=True)):
        done = subprocess.run(
            [sys.executable, "-c", code], input=data, capture_output=True, check=False, timeout=120
        )
        assert (done.stdout.decode().strip(), done.stderr.decode()) == (expected, "")


def test_a_named_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    text = write_csv(as_table(values()), tmp_path / "x.csv").read_bytes()
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(text))
    writer.start()
    s = ckm.sketch(tmp_path / "pipe", like=LIKE)
    writer.join()
    assert s == ckm.sketch(values(), like=LIKE)


def test_what_a_pipe_cannot_be(tmp_path: Path) -> None:
    parquet = write_parquet(as_table(values(5)), tmp_path / "x.parquet").read_bytes()
    for data, words in (
        (parquet, "holds Parquet"),
        (b"", "is empty"),
        (b"\xff\xff\xff\xff\x10", "Cannot read"),
    ):
        with pytest.raises(InputFileError, match=words):
            open_source(io.BytesIO(data))
    with pytest.raises(InputFileError, match=r"open for text; open it for bytes"):
        open_source(io.StringIO("a,b\n1,2\n"))
    with pytest.raises(ParameterError, match=r"Standard input \(-\) or a pipe is read on its own"):
        open_source(["-", str(tmp_path / "x.parquet")])


# Queries


def test_a_query_of_duckdb() -> None:
    import duckdb

    X = values(5000)
    db = duckdb.connect()
    db.register("t", as_table(X))
    relation = db.sql("select east, north, height, 'word' as more from t where east > 0")
    with pytest.warns(ColumnsWarning, match=r"more \(text\)"):
        s = ckm.sketch(relation, sketch_size=10, random_state=0)
    assert s == ckm.sketch(as_table(X[X[:, 0] > 0]), sketch_size=10, random_state=0)


def test_filters_of_datasets_and_lazy_frames_hold_in_samples_too(tmp_path: Path) -> None:
    X = values()
    paths = parts(write_parquet, as_table(X), tmp_path, ".parquet")
    kept = X[X[:, 0] > 0]
    for data in (
        ds.dataset(paths).filter(ds.field("east") > 0),
        pl.scan_parquet(paths).filter(pl.col("east") > 0),
    ):
        source = open_source(data)
        assert np.array_equal(np.concatenate([chunk.rows for chunk in source.chunks()]), kept)
        assert source.sample(500, np.random.default_rng(0))[0][:, 0].min() > 0
        assert ckm.sketch(data, like=LIKE) == ckm.sketch(kept, like=LIKE)


def test_a_cursor_is_read_by_the_thread_that_made_it() -> None:
    """SQLite insists on it."""
    cursor = sqlite3.connect(":memory:").cursor()
    cursor.execute("create table t (a, b, name)")
    cursor.executemany("insert into t values (?, ?, ?)", [(i, i / 4, "x") for i in range(30_000)])
    X = np.array([(i, i / 4) for i in range(30_000)])
    f = ckm.draw_frequencies(10, 2)
    with pytest.warns(ColumnsWarning, match=r"name \(text\)"):
        named = ckm.sketch(cursor.execute("select * from t"), like=f)
    assert named.columns == ("a", "b")
    assert np.array_equal(named.tally.sums, ckm.sketch(X, like=f).tally.sums)
    batches = iter(lambda: cursor.fetchmany(1000), [])
    cursor.execute("select a, b from t")
    assert ckm.sketch(batches, like=f) == ckm.sketch(X, like=f)
    with pytest.raises(DataError, match="execute a query"):
        ckm.sketch(sqlite3.connect(":memory:").cursor(), like=f)
    cursor.execute("update t set b = 'oops' where a = 12345")
    with pytest.raises(DataError, match=r"among rows 0 to 30000, is not a number .*oops"):
        ckm.sketch(cursor.execute("select a, b from t"), like=f)


# Iterables


def test_tensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    X = torch.tensor(values())
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X), batch_size=7)
    for data in (
        X,
        X.requires_grad_(),
        [X.detach()[:5], X.detach()[5:]],
        loader,
        iter(loader),
        torch.utils.data.DataLoader(X.detach(), 64),
    ):
        assert ckm.sketch(data, like=LIKE) == ckm.sketch(values(), like=LIKE)
    halves = X.detach().round().bfloat16()
    assert ckm.sketch(halves, like=LIKE) == ckm.sketch(values().round(), like=LIKE)


def test_batches_that_do_not_fit_together() -> None:
    X, frame = values(50), pd.DataFrame(values(50), columns=NAMES)
    cases: list[tuple[Any, type[Exception], str]] = [
        ([X, X[:, :2]], MismatchError, "2 columns where the first has 3"),
        ([X, frame], MismatchError, "Some batches are data frames"),
        (iter([frame, X]), MismatchError, "Some batches are data frames"),
        ([frame, frame[["east", "north"]]], ParameterError, "no column 'height'"),
        (iter([X[0]]), DataError, r"A batch has shape \(3,\)"),
        (iter([[X, X[:, 0]]]), DataError, r"A batch has 2 arrays, of which one"),
        (iter([]), DataError, "gives no batch"),
        (iter([["a", "b"]]), DataError, r"shape \(2,\)"),
        (lambda: 3, DataError, "returned int, not an iterable"),
        ({"a": [1.0]}, DataError, "Got a dict where rows are expected"),
        ([X, X.astype(str)], DataError, "A batch holds text"),
    ]
    for data, error, words in cases:
        with pytest.raises(error, match=words):
            ckm.sketch(data, like=PLAIN)


def test_a_function_must_begin_anew() -> None:
    made = iter([values(10), values(10)])
    with pytest.raises(DataError, match="the same iterator twice"):
        ckm.sketch(lambda: made, sketch_size=10, random_state=0)


def test_a_function_is_called_once_for_each_pass() -> None:
    calls = []

    def batches() -> Iterator[np.ndarray]:
        calls.append(1)
        yield values(10)

    ckm.sketch(batches, like=PLAIN)
    assert len(calls) == 1
    ckm.sketch(batches, sketch_size=10, random_state=0)
    assert len(calls) == 3  # the pilot and the pass


def test_what_can_be_read_once_says_that_its_head_decided() -> None:
    X = np.sort(np.random.default_rng(0).normal(size=(3_000_000, 2)), axis=0)
    batches = np.array_split(X, 100)
    with pytest.warns(HeadWarning, match=r"read once only.*first [\d,]+ rows.*like="):
        s = ckm.sketch(iter(batches), sketch_size=10, random_state=0)
    assert s.count == len(X)
    assert s.frequencies.origin.max() < -0.1
    assert np.array_equal(s.tally.sums, ckm.sketch(X, like=s).tally.sums)
    # all of it is the head: nothing to warn of
    ckm.sketch(iter(batches[:2]), sketch_size=10, random_state=0)
    assert ckm.sketch(iter(batches), like=s) == s
    assert (
        abs(ckm.sketch(Loader(batches), sketch_size=10, random_state=0).frequencies.origin).max()
        < 0.1
    )


def test_the_head_does_not_stay_in_memory() -> None:
    alive = 0

    class Counted(np.ndarray):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def batches() -> Iterator[np.ndarray]:
        nonlocal alive
        for _ in range(300):
            alive += 1
            yield np.random.default_rng(0).normal(size=(20_000, 10)).view(Counted)
            most.append(alive)

    most: list[int] = []
    with pytest.warns(HeadWarning):
        ckm.sketch(batches(), sketch_size=5, random_state=0, n_jobs=1)
    head = 32 * 2**20 // (20_000 * 10 * 8) + 1
    assert max(most) < 4 * head
    assert max(most[200:]) < 0.5 * head + 30


def no_libraries(code: str) -> str:
    names = "pyarrow,h5py,zarr,polars,duckdb,torch,pandas,narwhals,scipy.sparse"
    code += f"\nimport sys; print([m for m in '{names}'.split(',') if m in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def test_nothing_is_imported_that_is_not_read_with(tmp_path: Path) -> None:
    path = write_npy(values(), tmp_path / "x.npy")
    assert (
        no_libraries(
            "import numpy as np; from ckm._sources import open_source; open_source(np.eye(3))"
        )
        == "[]"
    )
    assert (
        no_libraries(
            f"from ckm._sources import open_source; list(open_source({str(path)!r}).chunks())"
        )
        == "[]"
    )


def test_every_kind_of_reader_is_a_module() -> None:
    from ckm._sources import paths

    for name in set(paths.READERS.values()):
        opener: Callable[..., Any] = importlib.import_module(f"ckm._sources.{name}").open_files
        assert callable(opener)
