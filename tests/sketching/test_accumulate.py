"""Accumulation: states add up in the order of the data, whatever the threads do."""

from typing import Any

import numpy as np
import pytest
from by_kernel import FailingKernel

import ckm
from ckm._core.cells import Design
from ckm._core.drawing import draw_frequencies
from ckm._kernels import Kernel, load_kernel
from ckm._sketching.accumulate import BlockSketcher, State, accumulate
from ckm._sources import Chunk, Place
from ckm._sources.blocks import split_blocks
from ckm.errors import NonFiniteError

ROWS_PER_BLOCK = 50
X = np.random.default_rng(0).normal(size=(1000, 3))
FREQUENCIES = draw_frequencies(20, 3, spread=2.0, seed=0)


def chunks(rows: np.ndarray = X, weights: np.ndarray | None = None, size: int = 120) -> Any:
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        stop = min(start + size, len(rows))
        beta = None if weights is None else weights[part]
        yield Chunk(rows[part], beta, Place(row=start), Place(row=stop))


def run(
    kernel: Kernel | None = None, *, data: Any = None, capacity: int = 10, **options: Any
) -> State:
    sketch_block = BlockSketcher(
        kernel or load_kernel("cpu"), Design(FREQUENCIES), capacity, seed=3
    )
    blocks = split_blocks(chunks() if data is None else data, size=ROWS_PER_BLOCK)
    return accumulate(sketch_block, blocks, State.empty(Design(FREQUENCIES), capacity), **options)


def assert_same(a: State, b: State) -> None:
    for name in ("sums", "lower", "upper", "first", "second"):
        assert getattr(a.tally, name).tobytes() == getattr(b.tally, name).tobytes()
    assert a.pool is not None
    assert b.pool is not None
    assert a.pool.rows.tobytes() == b.pool.rows.tobytes()
    assert (a.blocks, a.rows, a.dropped, a.place) == (b.blocks, b.rows, b.dropped, b.place)


@pytest.mark.parametrize("n_threads", [2, 5])
def test_threads_change_nothing(n_threads: int) -> None:
    assert_same(run(n_threads=n_threads), run())


def test_every_chunk_ends_in_a_state() -> None:
    states = list[State]()
    last = run(on_state=states.append)
    assert [state.rows for state in states] == [*range(120, 1000, 120), 1000]
    assert [state.tally.count for state in states] == [state.rows for state in states]
    assert_same(states[-1], last)
    assert last.place == Place(row=1000)


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_pass_that_fails_can_be_resumed_from_its_last_state(
    n_threads: int, error: BaseException
) -> None:
    states = list[State]()
    with pytest.raises(type(error)):
        run(FailingKernel(8, error), n_threads=n_threads, on_state=states.append)
    last = states[-1]
    assert 0 < last.rows < 1000
    sketch_block = BlockSketcher(load_kernel("cpu"), Design(FREQUENCIES), 10, seed=3)
    rest = (chunk for chunk in chunks() if chunk.start.row >= last.place.row)
    blocks = split_blocks(rest, last.blocks, ROWS_PER_BLOCK)
    assert_same(accumulate(sketch_block, blocks, last, n_threads=n_threads), run())


def test_parts_add_up_to_the_whole() -> None:
    first = run(data=list(chunks())[:4])
    second = run(data=list(chunks())[4:])
    whole = run()
    total = first + second
    assert total.tally.sums.tobytes() == whole.tally.sums.tobytes()
    assert (total.rows, total.blocks, total.pool.seen) == (1000, whole.blocks, 1000)


def test_rows_of_weight_zero_count_as_absent() -> None:
    weights = np.ones(len(X))
    weights[::3] = 0
    spoilt = X.copy()
    spoilt[::3] = np.nan
    found = run(data=chunks(spoilt, weights))
    assert found.tally.count == (weights > 0).sum()
    assert np.array_equal(found.tally.sums, run(data=chunks(X[weights > 0])).tally.sums)


def test_an_error_names_the_row_of_the_data() -> None:
    weights = np.ones(len(X))
    weights[:300:2] = 0
    spoilt = X.copy()
    spoilt[301, 2] = np.inf
    with pytest.raises(NonFiniteError, match="Row 301, column 2"):
        run(data=chunks(spoilt, weights))


def test_without_capacity_there_is_no_pool() -> None:
    assert run(capacity=0).pool is None


@pytest.mark.parametrize("missing", [10, 600_000])
def test_rows_that_are_all_dropped_are_counted(missing: int) -> None:
    """Also if they fill a chunk of their own, or all there is."""
    gap = np.full((missing, 2), np.nan)
    rows = np.random.default_rng(0).normal(size=(40, 2))
    options: dict[str, Any] = {"sketch_size": 5, "scale": 1.0, "nan": "drop"}
    words = f"Left out {missing:,} of {missing + 40:,} rows"
    for data in (np.concatenate([gap, rows]), [gap, rows], [rows, gap]):
        with pytest.warns(ckm.errors.MissingRowsWarning, match=words):
            assert ckm.sketch(data, **options).count == 40
    with pytest.warns(ckm.errors.MissingRowsWarning, match=f"Left out {missing:,} of {missing:,}"):
        assert ckm.sketch([gap], **options).count == 0
