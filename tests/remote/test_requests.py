"""What is requested: no more bytes than are needed, in few requests, in bounded memory."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import ckm
from ckm._sources import ColumnRequest, ReadSettings, open_source
from ckm._sources import parquet as parquet_source

pytestmark = pytest.mark.xdist_group("remote")


def wide_table(count: int = 20_000, columns: int = 20) -> pa.Table:
    X = np.random.default_rng(0).normal(size=(count, columns))
    return pa.table({f"x{i}": X[:, i] for i in range(columns)})


def bytes_of(server: Any, name: str) -> int:
    return sum(item.bytes_sent for item in server.faults.requests("GET", name))


def test_only_the_columns_that_are_asked_for(s3: Any, tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    pq.write_table(wide_table(), path, row_group_size=5000, use_dictionary=False)
    address = s3.upload(path)
    s3.faults.clear()
    ckm.sketch(address, sketch_size=10, scale=1.0, columns=["x3", "x4"], random_state=0)
    # Two of twenty columns, for the pilot and for the pass, and the footers.
    assert bytes_of(s3, "wide") < 0.35 * path.stat().st_size


def test_the_columns_of_a_row_group_are_requested_together(s3: Any, tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    pq.write_table(wide_table(), path, row_group_size=5000, use_dictionary=False)
    source = open_source(s3.upload(path))
    s3.faults.clear()
    assert sum(len(chunk.rows) for chunk in source.chunks()) == 20_000
    assert s3.faults.count("GET", "wide") <= 4 + 2, "row groups, and the footer"


def test_small_record_batches_are_requested_together(s3: Any, tmp_path: Path) -> None:
    path = tmp_path / "small.arrow"
    table = wide_table(3000, 2)
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    address = s3.upload(path)
    s3.faults.clear()
    source = open_source(address)
    assert sum(len(chunk.rows) for chunk in source.chunks()) == 3000
    assert s3.faults.count("GET", "small") <= 8, "not for each of thirty batches"


def test_a_large_row_group_is_requested_in_pieces(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_source, "_REQUESTED_BYTES", 2**20)
    monkeypatch.setattr(parquet_source, "_BUFFER_BYTES", 2**15)
    path = tmp_path / "wide.parquet"
    pq.write_table(wide_table(), path, use_dictionary=False)
    source = open_source(s3.upload(path))
    s3.faults.clear()
    rows = np.concatenate([chunk.rows for chunk in source.chunks()])
    assert np.array_equal(rows, np.column_stack(wide_table().columns))
    sizes = [item.bytes_sent for item in s3.faults.requests("GET", "wide")]
    assert max(sizes) <= 2**20


@pytest.mark.slow
@pytest.mark.parametrize("store", ["s3", "web"])
def test_a_pilot_reads_a_part(store: str, s3: Any, web: Any, tmp_path: Path) -> None:
    server = {"s3": s3, "web": web}[store]
    path = tmp_path / "long.npy"
    np.save(path, np.random.default_rng(0).normal(size=(2**20, 2)))
    source = open_source(server.upload(path), settings=ReadSettings(sampled_bytes=2**22))
    server.faults.clear()
    source.sample(500, np.random.default_rng(0))
    assert bytes_of(server, "long") < 0.3 * path.stat().st_size
    assert server.faults.count("HEAD") == 0


@pytest.mark.slow
@pytest.mark.parametrize("store", ["s3", "web"])
def test_a_pilot_of_lines_reads_a_part(store: str, s3: Any, web: Any, tmp_path: Path) -> None:
    server = {"s3": s3, "web": web}[store]
    path = tmp_path / "long.csv"
    rows = np.random.default_rng(0).normal(size=(400_000, 2))
    pyarrow.csv.write_csv(pa.table({"a": rows[:, 0], "b": rows[:, 1]}), path)
    local = open_source(path, settings=ReadSettings(csv_run_bytes=2**14))
    source = open_source(server.upload(path), settings=ReadSettings(csv_run_bytes=2**14))
    server.faults.clear()
    drawn, _ = source.sample(500, np.random.default_rng(0))
    assert np.array_equal(drawn, local.sample(500, np.random.default_rng(0))[0])
    assert bytes_of(server, "long") < 0.7 * path.stat().st_size
    assert server.faults.count("HEAD") <= 1


def test_a_pass_that_continues_starts_where_it_stopped(web: Any, tmp_path: Path) -> None:
    path = tmp_path / "long.npy"
    np.save(path, np.random.default_rng(0).normal(size=(200_000, 2)))
    settings = ReadSettings(chunk_bytes=2**18)
    source = open_source(web.upload(path), settings=settings)
    *_, last = source.chunks()
    web.faults.clear()
    assert sum(len(chunk.rows) for chunk in source.chunks(last.start)) == len(last.rows)
    assert bytes_of(web, "long") < 2**20
    assert all(re.match(r"bytes=\d+-\d+$", item.range or "") for item in web.faults.seen)


def test_names_of_columns_are_seen_without_reading_rows(s3: Any, tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    pq.write_table(wide_table(), path, use_dictionary=False)
    address = s3.upload(path)
    s3.faults.clear()
    assert open_source(address, ColumnRequest(["x1"])).n_rows == 20_000
    assert bytes_of(s3, "wide") <= 2**17
