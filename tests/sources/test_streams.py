"""Data that comes in order: pipes, queries, iterables of batches."""

import contextlib
import io
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from every_source import (
    LIKE,
    NAMES,
    PLAIN,
    Loader,
    as_table,
    parts,
    values,
    write_csv,
    write_parquet,
)

import ckm
from ckm._sources import open_source
from ckm.errors import (
    ColumnsWarning,
    DataError,
    HeadWarning,
    InputFileError,
    MismatchError,
    ParameterError,
)


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


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        yield connection


def test_a_cursor_is_read_by_the_thread_that_made_it(database: sqlite3.Connection) -> None:
    """SQLite insists on it."""
    cursor = database.cursor()
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
        ckm.sketch(database.cursor(), like=f)
    cursor.execute("update t set b = 'oops' where a = 12345")
    with pytest.raises(DataError, match=r"among rows 0 to 30000, is not a number .*oops"):
        ckm.sketch(cursor.execute("select a, b from t"), like=f)


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
    X = values(50)
    frame = pd.DataFrame(X, columns=NAMES)
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


@pytest.mark.slow
def test_a_process_that_ends_right_after_reading_does_not_abort() -> None:
    """A thread of Arrow may hold what it parsed until the interpreter ends.

    If Python owned that memory, about one process in eight would abort.
    """
    code = "from ckm._cli.app import main; main()"
    command = [sys.executable, "-c", code, "fit", "-", "-k", "3", "--sse"]
    text = b"".join(b"%d.5,%d\n" % (i, i % 7) for i in range(500))
    for _ in range(20):
        done = subprocess.run(command, input=text, capture_output=True, check=False, timeout=120)
        assert (done.returncode, b"can be read only once" in done.stderr) == (2, True), done.stderr


def test_arrow_parses_memory_of_its_own() -> None:
    from ckm._sources.lines import _in_arrow_memory

    block = b"1,2\n" * 1000
    buffer = _in_arrow_memory(block)
    assert buffer.to_pybytes() == block
    assert buffer.address != pa.py_buffer(block).address
