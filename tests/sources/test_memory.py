"""Large record batches of Arrow: memory stays bounded, and what is too large is named."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from every_source import rows_of

from ckm._sources import ReadSettings, open_source
from ckm.errors import InputFileError

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
