"""float16 becomes float32 exactly: every one of the 65536 numbers."""

import numpy as np
import pytest

from ckm._sources.blocks import as_floats
from ckm._util.halves import widen_halves

EVERY = np.arange(2**16, dtype=np.uint16).view(np.float16)


def test_every_number_is_that_of_numpy() -> None:
    expected = EVERY.astype(np.float32)
    found = widen_halves(EVERY)
    known = ~np.isnan(expected)
    assert np.array_equal(found.view(np.uint32)[known], expected.view(np.uint32)[known])
    assert np.isnan(found[~known]).all()


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5000, 3)])
def test_tables_of_any_layout(shape: tuple[int, int]) -> None:
    rows = np.random.default_rng(0).normal(size=shape).astype(np.float16)
    swapped = rows.astype(rows.dtype.newbyteorder())
    for table in (rows, np.asfortranarray(rows), rows[::2], swapped):
        found = as_floats(table)
        assert found.dtype == np.float32
        assert found.flags.c_contiguous
        assert np.array_equal(found, table.astype(np.float32))
