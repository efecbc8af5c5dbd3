"""Rows of a tensor divided by their lengths, where they are, with the arithmetic of `unit_rows`."""

from typing import Any

import torch

from ckm._sources.unit_rows import DOWN, LARGE, SMALL, UP

# Numbers in float64 that are computed at a time: 512 MB. There is a launch for each column of so
# many numbers, which they are to outweigh.
NUMBERS_AT_ONCE = 2**26


def unit_tensor(x: Any) -> Any:
    """The rows of a tensor (b, n) of torch divided by their lengths, in float32, where they are."""
    unit = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    step = max(1, NUMBERS_AT_ONCE // x.shape[1])
    for start in range(0, len(x), step):
        unit[start : start + step] = _unit_piece(x[start : start + step])
    return unit


def _unit_piece(x: Any) -> Any:
    """The same for a few rows, which are copied to float64 with columns next to each other."""
    columns = x.t().double().contiguous()
    squares = _sum_columns(columns)
    if not bool(((squares >= SMALL) & (squares <= LARGE)).all()):
        power = torch.ones_like(squares)
        power[squares < SMALL] = UP
        # Also where the sum is not a number.
        power[~(squares <= LARGE)] = DOWN
        columns = columns * power
        squares = _sum_columns(columns)
    is_ordinary = (squares > 0) & torch.isfinite(squares)
    unit = (columns * (1.0 / squares.sqrt())).float()
    if not bool(is_ordinary.all()):
        kept = torch.where(torch.isfinite(columns), torch.zeros_like(columns), columns)
        unit = torch.where(is_ordinary, unit, kept.float())
    return unit.t()


def _sum_columns(columns: Any) -> Any:
    """Squares added up column by column: a sum of torch would have an order of its own."""
    total = torch.zeros(columns.shape[1], dtype=torch.float64, device=columns.device)
    for squares in columns.square():
        total += squares
    return total
