"""Reading ahead in a thread gives the same items and errors, and leaves no thread behind."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from every_source import as_table, values, write_csv, write_parquet

import ckm
from ckm._sources import BEGINNING, Chunk, Place, Source
from ckm._sources.prefetch import MIN_ROWS, prefetch, read
from ckm.errors import CkmError, DataError, NonFiniteError


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "ckm-reader"]


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    yield
    assert readers() == []


def test_items_come_in_order() -> None:
    assert list(prefetch(iter(range(1000)))) == list(range(1000))
    assert list(prefetch(iter(()))) == []


def test_another_thread_is_a_few_items_ahead() -> None:
    produced: list[int] = []

    def numbers() -> Iterator[int]:
        for i in range(100):
            assert threading.current_thread().name == "ckm-reader"
            produced.append(i)
            yield i

    for i in prefetch(numbers(), ahead=3):
        deadline = time.monotonic() + 10
        while len(produced) < min(i + 4, 100) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(produced) == min(i + 4, 100)  # three ahead of the one at hand, and never more


def test_errors_of_the_thread_are_raised() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise DataError("the second is missing")

    items = prefetch(numbers())
    assert next(items) == 1
    with pytest.raises(DataError, match="the second is missing") as caught:
        next(items)
    assert any(entry.name == "numbers" for entry in caught.traceback)
    assert list(items) == []


def test_stopping_early_ends_the_thread() -> None:
    closed = threading.Event()

    def numbers() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    items = prefetch(numbers())
    next(items)
    items.close()
    assert closed.wait(10)
    never_started = prefetch(numbers())
    never_started.close()
    for _ in prefetch(numbers()):
        break  # and forgotten


def test_closing_does_not_wait_for_a_reader_that_never_ends() -> None:
    never = threading.Event()

    def numbers() -> Iterator[int]:
        yield 1
        never.wait()

    items = prefetch(numbers())
    next(items)
    began = time.monotonic()
    items.close()
    assert time.monotonic() - began < 30
    assert len(readers()) == 1
    never.set()
    readers()[0].join(10)


class Counted(Source):
    """Counts the batches that were read."""

    def __init__(self, batches: list[np.ndarray], fail_at: int = -1) -> None:
        self.columns = None
        self.n_features = batches[0].shape[1]
        self.n_rows = sum(map(len, batches))
        self._batches = batches
        self._fail_at = fail_at
        self.read = 0

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        row = 0
        for i, rows in enumerate(self._batches):
            if i == self._fail_at:
                raise DataError("Cannot read on.")
            self.read += 1
            yield Chunk(rows, None, Place(row=row), Place(row=row + len(rows)))
            row += len(rows)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_sketch_that_fails_stops_the_reader(n_jobs: int) -> None:
    batches = [np.ones((20_000, 2)) for _ in range(200)]
    batches[3] = batches[3].copy()
    batches[3][17, 1] = np.nan
    source = Counted(batches)
    with pytest.raises(NonFiniteError, match="Row 60017, column 1"):
        ckm.sketch(source, like=ckm.draw_frequencies(4, 2), n_jobs=n_jobs)
    assert source.read < 50


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_source_that_fails_fails_the_sketch(n_jobs: int) -> None:
    with pytest.raises(DataError, match=r"Cannot read on\."):
        ckm.sketch(
            Counted([np.ones((20_000, 2))] * 9, fail_at=7),
            like=ckm.draw_frequencies(4, 2),
            n_jobs=n_jobs,
        )


def test_small_chunks_are_joined_and_keep_their_places() -> None:
    X = np.arange(6 * MIN_ROWS, dtype=float).reshape(-1, 2)
    sizes = [1, 0, 5, 100, 7000, 9000, 20_000, 3, 0]
    batches = np.split(X, np.cumsum(sizes))
    chunks = list(read(Counted(batches)))
    assert np.array_equal(np.concatenate([chunk.rows for chunk in chunks]), X)
    for chunk, after in pairwise(chunks):  # a large one is not copied to join it
        assert len(chunk.rows) + len(after.rows) > 2 * MIN_ROWS
    row = 0
    for chunk in chunks:
        assert chunk.start.row == row
        row += len(chunk.rows)
        assert chunk.after.row == row


def test_files_are_read_by_one_thread_and_not_joined_across(tmp_path: Path) -> None:
    X = values(300)
    paths = [
        write_parquet(as_table(part), tmp_path / f"{i}.parquet")
        for i, part in enumerate(np.split(X, 3))
    ]
    chunks = list(read(ckm._sources.open_source(paths)))
    assert [chunk.name for chunk in chunks] == list(map(str, paths))
    assert readers() == []


def test_interrupting_a_pipe_that_is_silent(tmp_path: Path) -> None:
    """The reader waits for input that does not come; Ctrl-C still ends everything quietly."""
    command = [
        sys.executable,
        "-c",
        "from ckm._cli.app import main; main()",
        "sketch",
        "-",
        "-m",
        "10",
        "-o",
        str(tmp_path / "s.ckm"),
    ]
    # More than a pipe holds: once it is written, the reader is at work.
    head = write_csv(as_table(values(20_000)), tmp_path / "x.csv").read_bytes()
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); " + command[2]
    with subprocess.Popen(
        [command[0], "-c", code, *command[3:]], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(head)
        process.stdin.flush()
        time.sleep(1)
        process.send_signal(2)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.decode() == "Interrupted.\n"


def test_reading_ahead_gives_bit_identical_sketches(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(200_000, 3)).astype(np.float32)
    path = write_parquet(
        pa.table({name: X[:, i] for i, name in enumerate("abc")}),
        tmp_path / "x.parquet",
        row_group_size=30_000,
    )
    f = ckm.draw_frequencies(20, 3)
    one = ckm.sketch(path, like=f, n_jobs=1, pool=50, random_state=0)
    two = ckm.sketch(path, like=f, n_jobs=2, pool=50, random_state=0)
    assert one == two
    assert np.array_equal(one.tally.sums, ckm.sketch(X, like=f).tally.sums)
    assert one.pool is not None
    assert two.pool is not None
    assert np.array_equal(one.pool.rows, two.pool.rows)
    assert np.array_equal(one.tally.first, two.tally.first)


def test_errors_of_the_reader_are_errors_of_ckm(tmp_path: Path) -> None:
    path = write_parquet(as_table(values()), tmp_path / "x.parquet")
    data = path.read_bytes()
    path.write_bytes(data[:4] + b"\xff" * 40 + data[44:])
    with pytest.raises(CkmError, match=r"Cannot read .*x\.parquet"):
        ckm.sketch(path, like=ckm.draw_frequencies(4, 3))


ENDING = """
import sys, time
import pyarrow as pa
from ckm._sources.prefetch import prefetch

class Slow:
    closed = False
    def read(self, size):
        time.sleep({seconds})
        return b""
    def close(self):
        self.closed = True

def items():
    yield 1
    pa.PythonFile(Slow(), mode="r").read(5)
    print("has read", flush=True)
    yield 2

kept = prefetch(items(), may_block={may_block})
next(kept)
time.sleep(0.2)
if {closes}:
    kept.close()
sys.kept = kept
"""


@pytest.mark.slow
@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize(("seconds", "may_block"), [(2.0, False), (600.0, True)])
def test_the_interpreter_ends_after_its_readers(
    closes: bool, seconds: float, may_block: bool
) -> None:
    """A thread that returns from Arrow to an interpreter that is ending aborts the process. Only
    one that may wait forever is left alone.
    """
    code = ENDING.format(seconds=seconds, may_block=may_block, closes=closes)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("" if may_block else "has read\n")
