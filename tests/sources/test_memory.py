"""Large record batches of Arrow: memory stays bounded, and what is too large is named."""

import io
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from every_source import rows_of

from ckm._sources import ColumnRequest, ReadSettings, open_source
from ckm.errors import CkmError, InputFileError

SETTINGS = ReadSettings(chunk_bytes=2**16, mapped_bytes=2**20, max_batch_bytes=2**20)
TABLE = pa.table({name: np.arange(500_000.0) + i for i, name in enumerate("ab")})


def written(is_file: bool, max_chunksize: int | None = None) -> bytes:
    """The table as an Arrow file or stream, by default in one batch of 8 MB."""
    sink = io.BytesIO()
    new = pa.ipc.new_file if is_file else pa.ipc.new_stream
    with new(sink, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=max_chunksize)
    return sink.getvalue()


@pytest.mark.parametrize("is_file", [True, False])
def test_a_large_batch_of_a_file_is_not_read_as_a_whole(tmp_path: Path, is_file: bool) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(written(is_file))
    before = pa.total_allocated_bytes()
    rows = 0
    for chunk in open_source(path, settings=SETTINGS).chunks():
        assert chunk.rows.base is not None
        assert chunk.rows.base.nbytes <= 2**16
        assert pa.total_allocated_bytes() - before < 2**20
        assert np.array_equal(chunk.rows[:, 0] + 1, chunk.rows[:, 1])
        rows += len(chunk.rows)
    assert rows == TABLE.num_rows


def test_a_batch_from_a_pipe_that_is_too_large_is_named() -> None:
    with pytest.raises(
        InputFileError, match=r"the stream: a record batch has 8,\d+,\d+ bytes, and at most 1,048,5"
    ):
        rows_of(io.BytesIO(written(is_file=False)), settings=SETTINGS)
    small = rows_of(io.BytesIO(written(is_file=False, max_chunksize=10_000)), settings=SETTINGS)
    assert len(small) == TABLE.num_rows


def test_pieces_of_a_batch_are_those_of_the_whole() -> None:
    """Also without rows, and with a last piece that is smaller."""
    for count in (0, 1, 4096, 5000):
        reader = TABLE.slice(0, count).to_reader()
        found = [chunk.rows for chunk in open_source(reader, settings=SETTINGS).chunks()]
        assert sum(map(len, found)) == count
        assert all(len(rows) == 4096 for rows in found[:-1])


# Compressed batches: a few bytes may hold any number of zeros.

ZEROS = pa.table({"a": np.zeros(500_000), "b": np.zeros(500_000), "text": ["x" * 40] * 500_000})


def compressed(
    is_file: bool, codec: str = "zstd", table: pa.Table = ZEROS, **options: Any
) -> bytes:
    sink = io.BytesIO()
    new = pa.ipc.new_file if is_file else pa.ipc.new_stream
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table, **options)
    return sink.getvalue()


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
@pytest.mark.parametrize("is_file", [True, False])
def test_a_batch_that_is_large_after_decompression_is_named(
    tmp_path: Path, is_file: bool, codec: str
) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(compressed(is_file, codec))
    assert path.stat().st_size < 2**22
    before = pa.total_allocated_bytes()
    with pytest.raises(
        InputFileError,
        match=r"batch has \d+,\d+,\d+ bytes after decompression, and at most 1,048,5",
    ):
        rows_of(path, settings=SETTINGS, request=ColumnRequest(["a", "b"]))
    assert pa.total_allocated_bytes() - before < 2**20


def test_a_batch_from_a_pipe_that_is_large_after_decompression_is_named() -> None:
    data = compressed(is_file=False, table=ZEROS.select(["a", "b"]))
    assert len(data) < 2**12
    with pytest.raises(InputFileError, match=r"stream: .* 8,\d+,\d+ bytes after decompression"):
        rows_of(io.BytesIO(data), settings=SETTINGS)
    small = compressed(is_file=False, table=ZEROS.select(["a", "b"]), max_chunksize=10_000)
    assert len(rows_of(io.BytesIO(small), settings=SETTINGS)) == ZEROS.num_rows


def test_only_the_columns_that_are_read_count(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(compressed(is_file=True, max_chunksize=50_000))
    small = ReadSettings(chunk_bytes=2**16, max_batch_bytes=2**20)
    assert len(rows_of(path, settings=small, request=ColumnRequest(["a", "b"]))) == ZEROS.num_rows
    tiny = ReadSettings(chunk_bytes=2**16, max_batch_bytes=2**19)
    with pytest.raises(InputFileError, match="after decompression"):
        rows_of(path, settings=tiny, request=ColumnRequest(["a", "b"]))


def test_a_dictionary_that_is_large_after_decompression_is_named(tmp_path: Path) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x" * 2**21, "y"]))
    path = tmp_path / "x.arrow"
    path.write_bytes(compressed(True, table=pa.table({"a": [1.0, 2.0], "w": words})))
    with pytest.raises(InputFileError, match=r"2,0\d+,\d+ bytes after decompression"):
        rows_of(path, settings=SETTINGS, request=ColumnRequest(["a"]))
    assert len(rows_of(path, request=ColumnRequest(["a"]))) == 2


@pytest.mark.parametrize("codec", ["zstd", "lz4", "uncompressed"])
def test_files_of_others_are_read(tmp_path: Path, codec: str) -> None:
    """Also those of polars, with types whose buffers are not counted here."""
    frame = pl.DataFrame(
        {"a": np.arange(9.0), "w": [["x"], []] * 4 + [None], "t": list("abcdefghi"), "b": [2.0] * 9}
    )
    frame.write_ipc(tmp_path / "x.arrow", compression=codec)
    frame.write_ipc_stream(tmp_path / "x.arrows", compression=codec)
    for name in ("x.arrow", "x.arrows"):
        found = rows_of(tmp_path / name, request=ColumnRequest(["b", "a"]))
        assert np.array_equal(found, np.column_stack([np.full(9, 2.0), np.arange(9.0)]))


@pytest.mark.slow
@pytest.mark.parametrize("is_file", [True, False])
def test_damaged_metadata_is_an_error_of_ours(tmp_path: Path, is_file: bool) -> None:
    """Every byte of a small file, changed in several ways."""
    table = pa.table({"a": np.arange(20.0), "w": pa.array(list("ab") * 10).dictionary_encode()})
    data = compressed(is_file, table=table, max_chunksize=10)
    path = tmp_path / "x.arrow"
    for at in range(8, len(data)):
        for value in (0, 1, 0x7F, 0xFF, data[at] ^ 0x10):
            path.write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
            with suppress(CkmError):
                # Some bytes make it a file without rows.
                for chunk in open_source(path, ColumnRequest(["a"])).chunks():
                    assert chunk.rows.shape[1] == 1


def test_a_dictionary_that_is_missing_is_an_error_of_ours(tmp_path: Path) -> None:
    """The number of the dictionary in the metadata, changed."""
    table = pa.table({"a": np.arange(20.0), "w": pa.array(list("ab") * 10).dictionary_encode()})
    data = compressed(is_file=True, table=table, max_chunksize=10)
    path = tmp_path / "x.arrow"
    path.write_bytes(data[:276] + bytes([24]) + data[277:])
    with pytest.raises(InputFileError, match="Dictionary with id 0 not found"):
        rows_of(path, request=ColumnRequest(["a"]))
