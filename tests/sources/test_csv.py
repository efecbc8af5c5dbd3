"""CSV as it comes: headers, delimiters, quotes, text among numbers, damaged lines."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from every_source import (
    LIKE,
    NAMES,
    PLAIN,
    as_csv,
    as_table,
    rows_of,
    values,
    write_csv,
)

import ckm
from ckm._sources import ColumnRequest, ReadSettings, open_source
from ckm.errors import (
    ColumnsWarning,
    DataError,
    InputFileError,
)


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
    from ckm._sources.records import split_records

    text = b'1,5" wide\n' + b"2,plain\n" * 100_000
    assert b"".join(blocks := list(split_records(io.BytesIO(text), 4096, "x", 2**16))) == text
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
        match=r"ragged.csv: row 200000 \(line 200002\) has 1 fields where the first line has 2; "
        r"mend",
    ):
        rows_of(ragged, settings=settings)
    quoted = as_csv('1,"2"\n\n3,"4\n"\n5,6,7\n', tmp_path / "quoted.csv")
    with pytest.raises(
        InputFileError,
        match=r"quoted.csv: row 2 \(line 5\) has 3 fields where the first line has 2; .* quotes "
        r"around .* ',' in",
    ):
        rows_of(quoted, settings=settings)


@pytest.mark.parametrize(
    ("delimiter", "decimal"),
    [(",", "."), (";", "."), (";", ","), ("\t", "."), ("\t", ","), ("|", ".")],
)
@pytest.mark.parametrize("named", [True, False])
def test_delimiters_other_than_commas(
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
def test_the_delimiter_is_found(tmp_path: Path, text: str, columns: tuple[str, ...] | None) -> None:
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
        match=r"x.csv: much \(text, such as '1,000'\), gap \(text, such as '-'\), "
        r"plain \(text\), day \(date",
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
    index = pd.Index([7, 5], name=name)
    stored = name or "__index_level_0__"
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


def test_fields_between_spaces_are_not_split(tmp_path: Path) -> None:
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
