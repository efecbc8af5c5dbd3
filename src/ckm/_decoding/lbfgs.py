"""Descend a smooth cost within bounds: L-BFGS on the coordinates that are free, projected onto the
box (Bertsekas, 1982).

SciPy's L-BFGS-B needs as many evaluations, and around each of them as long again as an evaluation
of a decoder's cost takes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ckm._util.arrays import Array
from ckm._util.jit import entry, summing

# From a point to the cost there and its gradient, which is not written to again.
Cost = Callable[[Array], tuple[float, Array]]

_MEMORY = 20  # steps that are remembered
_FEW = 10  # steps
_TRIES = 20  # evaluations along one direction
# shares of the slope at first: a step gains at least the one of it, and leaves at most the other
_ENOUGH, _FLATTER = 1e-4, 0.9
_FARTHER = 4.0  # times, where the cost still falls as steeply as at first


class Point(NamedTuple):
    """A point with its cost and gradient."""

    x: Array
    value: float
    gradient: Array


class Limits(NamedTuple):
    """When to end: after so many steps, after two in a row that gain at most `gain` each (times the
    cost, where that is above one), where no slope is above `slope`, where the cost is still above
    `hope` after a few steps, or where it is at most `enough`.
    """

    steps: int
    gain: float = 1e-9
    slope: float = 1e-8
    hope: float = np.inf
    enough: float = -np.inf


def descend(cost: Cost, x: Array, lower: Array, upper: Array, limits: Limits) -> Point:
    """A local minimum of the cost over lower <= x <= upper, started at x, as far as the limits go."""
    x = np.minimum(np.maximum(x, lower), upper)
    at, kept, vain, scale = Point(x, *cost(x)), 0, 0, 0.0
    steps, changes, direction, free, room = (
        *np.empty((2, _MEMORY, len(x))),
        *np.empty((2, len(x))),
        np.empty((_MEMORY, 2)),
    )
    for i in range(limits.steps):
        if at.value <= limits.enough:
            break
        steepest = _direct(
            at.x, at.gradient, lower, upper, steps, changes, kept, scale, direction, free, room
        )
        if steepest <= limits.slope or (i == _FEW and at.value > limits.hope):
            break
        found = _search(
            cost,
            at,
            direction,
            lower,
            upper,
            1.0 if kept else min(1.0, 1 / float(np.sqrt(direction @ direction))),
        )
        if found is None:
            if not kept:
                break
            kept, scale = 0, 0.0  # what is remembered no longer fits; the steepest direction does
            continue
        step, change = found.x - at.x, found.gradient - at.gradient
        curvature = step @ change
        if curvature > 0:
            scale = curvature / (change @ change)
            steps[kept % _MEMORY], changes[kept % _MEMORY] = step, change
            kept += 1
        gained, at = at.value - found.value, found
        vain = vain + 1 if gained <= limits.gain * max(abs(at.value), 1.0) else 0
        if vain == 2:  # one may be a step that bounds cut short
            break
    return at


def _search(
    cost: Cost, at: Point, direction: Array, lower: Array, upper: Array, size: float
) -> Point | None:
    """A point along the direction, bent at the bounds, where the cost is lower and less steep; None
    if there is none.
    """
    best = None
    for _ in range(_TRIES):
        x = np.minimum(np.maximum(at.x + size * direction, lower), upper)
        found, step = Point(x, *cost(x)), x - at.x
        before, after = at.gradient @ step, found.gradient @ step
        rise = found.value - at.value
        if before < 0 and rise <= _ENOUGH * before and (best is None or found.value < best.value):
            best = found
            if after >= _FLATTER * before:
                break
            size *= _FARTHER
        elif best is not None:
            break
        # to the lowest point of the parabola through both values, but not too close to either
        else:
            size *= min(max(before / (2 * (before - rise)), 0.1), 0.5) if rise > before else 0.5
    return best


@entry
def _direct(x, gradient, lower, upper, steps, changes, kept, scale, direction, free, room):  # type: ignore[no-untyped-def]
    """Writes the direction to go in (Nocedal's two loops) and which coordinates are free; returns
    the steepest slope within the bounds.

    Not free are those at a bound, and those that a step along the gradient alone, `scale` times it,
    would take there: they go there.
    """
    steepest, memory = 0.0, len(steps)
    for i in range(len(x)):
        g, bound = gradient[i], lower[i] if gradient[i] > 0 else upper[i]
        free[i] = 1.0 if abs(bound - x[i]) > scale * abs(g) else 0.0
        direction[i] = -g * free[i]
        steepest = max(steepest, abs(g)) if bound != x[i] else steepest
    for i in range(min(kept, memory)):
        _forget(
            steps[(kept - 1 - i) % memory],
            changes[(kept - 1 - i) % memory],
            free,
            direction,
            room[i],
        )
    for i in range(len(x)):
        direction[i] *= scale if kept > 0 else 1.0
    for i in range(min(kept, memory) - 1, -1, -1):
        _recall(
            steps[(kept - 1 - i) % memory],
            changes[(kept - 1 - i) % memory],
            free,
            direction,
            room[i],
        )
    for i in range(len(x)):
        if free[i] == 0:
            direction[i] = (lower[i] if gradient[i] > 0 else upper[i]) - x[i]
    return steepest


@summing
def _forget(step, change, free, direction, room):  # type: ignore[no-untyped-def]
    """Take out of the direction what this step has seen of the curvature."""
    curvature, square, along = 0.0, 0.0, 0.0
    for i in range(len(step)):
        curvature += step[i] * change[i] * free[i]
        square += change[i] * change[i] * free[i]
        along += step[i] * direction[i]
    # in the coordinates that are free there may be none
    room[0] = 1 / curvature if curvature > 1e-10 * square else 0.0
    room[1] = room[0] * along
    for i in range(len(step)):
        direction[i] -= room[1] * change[i] * free[i]


@summing
def _recall(step, change, free, direction, room):  # type: ignore[no-untyped-def]
    """And put in what it says instead."""
    along = 0.0
    for i in range(len(step)):
        along += change[i] * direction[i]
    share = room[1] - room[0] * along
    for i in range(len(step)):
        direction[i] += share * step[i] * free[i]
