"""How the local runner deals out blocks."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

from ckm._sources import Chunk, Place
from ckm._sources.blocks import BLOCK_ROWS, Block, group_tasks, split_blocks
from ckm._util.parallel import ordered_map


def chunks(*lengths: int) -> Iterator[Chunk]:
    row = 0
    for length in lengths:
        yield Chunk(
            np.broadcast_to(np.zeros(1), (length, 1)), None, Place(0, row), Place(0, row + length)
        )
        row += length


def sizes(tasks: Iterator[list[Block]]) -> list[int]:
    return [len(task) for task in tasks]


@pytest.mark.parametrize("n_rows", [None, 100 * BLOCK_ROWS + 1])
@pytest.mark.parametrize("n_threads", [1, 2, 16])
def test_every_block_comes_once_and_in_order(n_rows: int | None, n_threads: int) -> None:
    tasks = group_tasks(split_blocks(chunks(100 * BLOCK_ROWS + 1)), n_threads, n_rows)
    assert [block.number for task in tasks for block in task] == list(range(101))


def test_many_are_taken_at_once_and_fewer_towards_the_end() -> None:
    taken = sizes(group_tasks(split_blocks(chunks(100 * BLOCK_ROWS)), 2, 100 * BLOCK_ROWS))
    assert taken[0] == 6
    assert taken[-5:] == [1] * 5
    assert taken == sorted(taken, reverse=True)


def test_few_rows_are_dealt_out_one_by_one() -> None:
    assert sizes(group_tasks(split_blocks(chunks(8 * BLOCK_ROWS)), 2, 8 * BLOCK_ROWS)) == [1] * 8


def test_of_an_unknown_number_more_are_taken_with_time() -> None:
    taken = sizes(group_tasks(split_blocks(chunks(200 * BLOCK_ROWS)), 2))
    assert taken[:8] == [1] * 8
    assert taken == sorted(taken[:-1]) + taken[-1:]
    assert max(taken) == 6


def test_a_task_does_not_wait_for_the_next_chunk() -> None:
    blocks = split_blocks(chunks(*[2 * BLOCK_ROWS + 5] * 40))
    assert sizes(group_tasks(blocks, 1, 10**9)) == [3] * 40


def test_results_come_in_order_and_threads_are_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited, shutdown = [], ThreadPoolExecutor.shutdown

    def noted(self: ThreadPoolExecutor, wait: bool = True, **how: bool) -> None:
        waited.append(wait)
        shutdown(self, wait, **how)

    def work(item: int) -> int:
        time.sleep(0.02 * (item == 0))
        return item**2

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", noted)
    assert list(ordered_map(work, range(20), 2)) == [(item, item**2) for item in range(20)]
    assert waited == [False]


def test_a_stop_while_the_last_is_at_work_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    at_work, begun = list[int](), threading.Event()

    def work(item: int) -> None:
        at_work.append(item)
        begun.set()
        time.sleep(0.1)
        at_work.remove(item)

    def stop(future: Future[None]) -> None:
        begun.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", stop)
    with pytest.raises(KeyboardInterrupt):
        list(ordered_map(work, [0], 2))
    assert not at_work


@pytest.mark.parametrize("ended_by", ["error", "caller"])
def test_no_thread_is_at_work_once_the_map_has_ended(ended_by: str) -> None:
    begun, at_work = threading.Event(), set[int]()

    def work(item: int) -> int:
        if item == 0:
            begun.wait()
            if ended_by == "error":
                raise ValueError("the first")
            return item
        at_work.add(item)
        begun.set()
        time.sleep(0.1)
        at_work.remove(item)
        return item

    results = ordered_map(work, range(4), 2)
    if ended_by == "error":
        with pytest.raises(ValueError, match="the first"):
            next(results)
    else:
        next(results)
        results.close()
    assert not at_work
