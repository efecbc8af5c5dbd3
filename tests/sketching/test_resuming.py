"""A pass over files may stop anywhere and any number of times: the sketch is the same bytes."""

import gzip
import io
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

import ckm
from ckm._core.storage import serialise
from ckm._sketching.checkpoint import from_bytes
from ckm._sources import BEGINNING, Chunk, ColumnRequest, Place, ReadSettings, Source, open_source
from ckm._sources.records import split_records
from ckm._util.arrays import FloatArray

N_ROWS = 80_000
# Chunks of 5000 rows, of which four or so make a block. These sizes and those of the files do not
# divide one another.
SETTINGS = ReadSettings(chunk_bytes=5000 * 3 * 8, csv_block_bytes=100_001)
OPTIONS: dict[str, Any] = {"nan": "drop", "sketch_size": 20, "pool": 30, "random_state": 3}


def rows_and_weights() -> FloatArray:
    """Three columns, in which some values are missing, and a column of weights."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(N_ROWS, 4)).round(3)
    table[rng.integers(N_ROWS, size=300), 1] = np.nan
    table[:, 3] = rng.uniform(0.5, 2, size=N_ROWS)
    return table


TABLE = rows_and_weights()


def frame() -> pd.DataFrame:
    return pd.DataFrame(TABLE, columns=list("abcw"))


def write_npy(folder: Path) -> list[Path]:
    np.save(folder / "0.npy", TABLE[:50_000, :3])
    np.save(folder / "1.npy", TABLE[50_000:, :3])
    return [folder / "0.npy", folder / "1.npy"]


def write_csv(folder: Path) -> list[Path]:
    frame()[:50_000].to_csv(folder / "0.csv", index=False)
    frame()[50_000:].to_csv(folder / "1.csv", index=False, lineterminator="\r\n")
    return [folder / "0.csv", folder / "1.csv"]


def write_csv_gz(folder: Path) -> list[Path]:
    """Two members in one file, as `cat a.gz b.gz` makes it."""
    text = frame().to_csv(index=False).encode()
    path = folder / "0.csv.gz"
    path.write_bytes(gzip.compress(text[:1_000_000]) + gzip.compress(text[1_000_000:]))
    return [path]


def write_parquet(folder: Path) -> list[Path]:
    table = pa.Table.from_pandas(frame())
    pq.write_table(table[:60_000], folder / "0.parquet", row_group_size=13_333)
    pq.write_table(table[60_000:], folder / "1.parquet", row_group_size=1_234)
    return [folder / "0.parquet", folder / "1.parquet"]


def write_arrow(folder: Path) -> list[Path]:
    table = pa.Table.from_pandas(frame())
    with pa.ipc.new_file(str(folder / "0.arrow"), table.schema) as file:
        file.write_table(table[:50_000], max_chunksize=7_777)
        file.write_table(table[50_000:], max_chunksize=3_001)
    return [folder / "0.arrow"]


def write_arrow_stream(folder: Path) -> list[Path]:
    table = pa.Table.from_pandas(frame())
    with pa.ipc.new_stream(str(folder / "0.arrows"), table.schema) as file:
        file.write_table(table, max_chunksize=7_777)
    return [folder / "0.arrows"]


def write_hdf5(folder: Path) -> list[Path]:
    with h5py.File(folder / "0.h5", "w") as file:
        file.create_dataset("rows", data=TABLE[:, :3], chunks=(1_701, 3))
    return [folder / "0.h5"]


def write_zarr(folder: Path) -> list[Path]:
    array = zarr.open(
        str(folder / "0.zarr"), mode="w", shape=(N_ROWS, 3), chunks=(1_701, 3), dtype="f8"
    )
    array[:] = TABLE[:, :3]
    return [folder / "0.zarr"]


WEIGHTED = {"weight": "w", "columns": ["a", "b", "c"]}
KINDS: dict[str, tuple[Callable[[Path], list[Path]], dict[str, Any]]] = {
    "npy": (write_npy, {}),
    "csv": (write_csv, WEIGHTED),
    "csv.gz": (write_csv_gz, {"columns": ["a", "b", "c"]}),
    "parquet": (write_parquet, {"columns": ["a", "b", "c"]}),
    "weighted parquet": (write_parquet, WEIGHTED),
    "arrow": (write_arrow, WEIGHTED),
    "arrow stream": (write_arrow_stream, WEIGHTED),
    "hdf5": (write_hdf5, {}),
    "zarr": (write_zarr, {}),
}


class Stop(Exception):
    """Interrupts a pass in these tests."""


class StoppingSource(Source):
    """The rows of a source, until it has given some chunks."""

    def __init__(self, source: Source, n_chunks: int) -> None:
        self._source = source
        self._n_chunks = n_chunks
        self.columns = source.columns
        self.n_features = source.n_features
        self.n_rows = source.n_rows
        self.parts = source.parts

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        for number, chunk in enumerate(self._source.chunks(start)):
            if number == self._n_chunks:
                raise Stop
            yield chunk

    def sample_rows(self, *arguments: Any) -> Any:
        return self._source.sample_rows(*arguments)


# The others take half a minute more.
USUAL_KINDS = ("parquet", "csv", "npy")


@pytest.fixture(
    params=[
        kind if kind in USUAL_KINDS else pytest.param(kind, marks=pytest.mark.slow)
        for kind in KINDS
    ]
)
def source(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.chdir(tmp_path)
    write, wanted = KINDS[request.param]
    return open_source([str(path) for path in write(tmp_path)], ColumnRequest(**wanted), SETTINGS)


def sketch_until(source: Source, n_chunks: int) -> ckm.Sketch | None:
    """Resume the pass and stop it after `n_chunks`; the sketch if it reaches the end before."""
    stopping = StoppingSource(source, n_chunks)
    try:
        return ckm.sketch(
            stopping,
            **OPTIONS,
            n_jobs=1,
            checkpoint="s.part",
            checkpoint_interval=0.0,
            resume=True,
        )
    except Stop:
        return None


@pytest.mark.filterwarnings("ignore:Left out")
def test_any_stop_gives_the_same_bytes(source: Source) -> None:
    whole = serialise(ckm.sketch(source, **OPTIONS))
    n_chunks = len(list(source.chunks()))
    places = set()
    for stop in range(2, n_chunks + 1, max(1, n_chunks // 8)):
        Path("s.part").unlink(missing_ok=True)
        resumed = sketch_until(source, stop)
        if resumed is None:
            if Path("s.part").exists():
                places.add(from_bytes(Path("s.part").read_bytes()).place)
            resumed = sketch_until(source, n_chunks + 1)
        assert resumed is not None
        assert serialise(resumed) == whole, f"stopped after {stop} chunks"
    assert len(places) >= 3, "several of these stops leave different checkpoints"


@pytest.mark.filterwarnings("ignore:Left out")
@pytest.mark.parametrize("seed", range(2))
def test_any_number_of_stops_gives_the_same_bytes(source: Source, seed: int) -> None:
    whole = serialise(ckm.sketch(source, **OPTIONS))
    chance = random.Random(seed)
    resumed = None
    n_stops = -1
    while resumed is None:
        n_stops += 1
        assert n_stops < 100, "each stop is farther on than the one before"
        # Enough chunks that some of them end with a checkpoint.
        resumed = sketch_until(source, chance.randint(10, 14))
    assert serialise(resumed) == whole
    assert n_stops


def test_chunks_from_any_place_are_those_of_the_whole(source: Source) -> None:
    """The law behind it: where reading continues changes nothing in the chunks that follow."""
    chunks = list(source.chunks())
    for i, chunk in enumerate(chunks):
        later = list(source.chunks(chunk.after))
        assert [(x.start, x.after) for x in later] == [(x.start, x.after) for x in chunks[i + 1 :]]
        if later:
            assert np.array_equal(later[0].rows, chunks[i + 1].rows, equal_nan=True)


@pytest.mark.parametrize("seed", range(20))
def test_lines_from_any_place_are_cut_as_from_the_beginning(seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(chance.choices(['1,"', '",', "\n", "\r\n", "2.5", '"a\nb"'], k=400)).encode()
    size = chance.randint(3, 90)
    blocks = list(split_records(io.BytesIO(text), size, "text", 2**20, ","))
    assert b"".join(blocks) == text
    n_before = 0
    for i, block in enumerate(blocks):
        n_before += len(block)
        rest = io.BytesIO(text[n_before:])
        later = split_records(rest, size, "text", 2**20, ",", n_before)
        assert list(later) == blocks[i + 1 :]
