"""How chunks are split into blocks, and blocks are grouped into tasks."""

from collections.abc import Iterator

import numpy as np
import pytest

from ckm._sources import Chunk, Place
from ckm._sources.blocks import BLOCK_ROWS, Block, group_tasks, split_blocks


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


def test_tasks_get_smaller_towards_the_end() -> None:
    counts = sizes(group_tasks(split_blocks(chunks(100 * BLOCK_ROWS)), 2, 100 * BLOCK_ROWS))
    assert counts[0] == 6
    assert counts[-5:] == [1] * 5
    assert counts == sorted(counts, reverse=True)


def test_few_rows_make_tasks_of_one_block() -> None:
    assert sizes(group_tasks(split_blocks(chunks(8 * BLOCK_ROWS)), 2, 8 * BLOCK_ROWS)) == [1] * 8


def test_without_a_known_end_tasks_grow() -> None:
    counts = sizes(group_tasks(split_blocks(chunks(200 * BLOCK_ROWS)), 2))
    assert counts[:8] == [1] * 8
    assert counts == sorted(counts[:-1]) + counts[-1:]
    assert max(counts) == 6


def test_a_task_does_not_wait_for_the_next_chunk() -> None:
    blocks = split_blocks(chunks(*[2 * BLOCK_ROWS + 5] * 40))
    assert sizes(group_tasks(blocks, 1, 10**9)) == [3] * 40


def test_a_chunk_whose_rows_were_all_left_out_is_counted() -> None:
    read = Chunk(np.zeros((0, 1)), None, Place(0, 0), Place(0, 50))
    blocks = list(split_blocks([read, *chunks(3)]))
    assert [(block.number, len(block.rows), block.ends_chunk) for block in blocks] == [
        (0, 0, True),
        (1, 3, True),
    ]
    assert list(split_blocks(chunks(0))) == [], "nothing was read"
