"""Minimise a smooth cost within bounds: L-BFGS on the free coordinates, projected onto the box
(Bertsekas, 1982).

SciPy's L-BFGS-B needs as many evaluations, but spends as much time around each of them as one
evaluation of a decoder's cost takes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ckm._decoding.settings import DEFAULT, Settings
from ckm._util.arrays import FloatArray
from ckm._util.jit import entry, summing

# Curvature along the free coordinates below which a remembered step is skipped, as a share of the
# squared change of the gradient: dividing by less would amplify rounding.
_MIN_CURVATURE = 1e-10

# From a point to the cost there and its gradient, which the cost function does not write to again.
Cost = Callable[[FloatArray], tuple[float, FloatArray]]


class Point(NamedTuple):
    """A point with its cost and gradient."""

    x: FloatArray
    value: float
    gradient: FloatArray


class Limits(NamedTuple):
    """When a descent ends.

    Parameters
    ----------
    steps : int
        The largest number of steps.
    gain : float, optional
        End after two steps in a row that gain at most this, times the cost where that is above one;
        `Settings.descent_gain` by default.
    slope : float, optional
        End where no component of the gradient within the bounds is larger; `Settings.descent_slope`
        by default.
    abort_above : float
        End after a few steps if the cost is still above this.
    target : float
        End once the cost is at most this.
    """

    steps: int
    gain: float | None = None
    slope: float | None = None
    abort_above: float = np.inf
    target: float = -np.inf


class _Memory:
    """The last steps and changes of the gradient, and workspaces of the two-loop recursion."""

    def __init__(self, size: int, dimension: int) -> None:
        self.steps = np.empty((size, dimension))
        self.changes = np.empty((size, dimension))
        self.direction = np.empty(dimension)
        self.free = np.empty(dimension)
        self.workspace = np.empty((size, 2))
        self.count = 0
        self.scale = 0.0

    def clear(self) -> None:
        """Forget all steps, so that the next direction is the steepest."""
        self.count = 0
        self.scale = 0.0

    def add(self, step: FloatArray, change: FloatArray) -> None:
        """Remember a step, unless the cost is not convex along it."""
        curvature = float(step @ change)
        if curvature > 0:
            self.scale = curvature / float(change @ change)
            self.steps[self.count % len(self.steps)] = step
            self.changes[self.count % len(self.steps)] = change
            self.count += 1

    def find_direction(self, at: Point, lower: FloatArray, upper: FloatArray) -> float:
        """Write the next direction; return the steepest slope within the bounds."""
        slope: float = _find_direction(
            at.x,
            at.gradient,
            lower,
            upper,
            self.steps,
            self.changes,
            self.count,
            self.scale,
            self.direction,
            self.free,
            self.workspace,
        )
        return slope

    @property
    def first_length(self) -> float:
        """The step length to try first: one, or a step of at most unit length at the start."""
        if self.count:
            return 1.0
        return min(1.0, 1 / float(np.sqrt(self.direction @ self.direction)))


def descend(
    cost: Cost,
    x: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    limits: Limits,
    settings: Settings = DEFAULT,
) -> Point:
    """A local minimum of the cost over lower <= x <= upper, from x, as far as the limits go."""
    x = np.minimum(np.maximum(x, lower), upper)
    at = Point(x, *cost(x))
    memory = _Memory(settings.lbfgs_memory, len(x))
    least_gain = settings.descent_gain if limits.gain is None else limits.gain
    least_slope = settings.descent_slope if limits.slope is None else limits.slope
    stalled = 0
    for i in range(limits.steps):
        if at.value <= limits.target:
            break
        slope = memory.find_direction(at, lower, upper)
        is_aborted = i == settings.abort_check_step and at.value > limits.abort_above
        if slope <= least_slope or is_aborted:
            break
        found = _search_line(cost, at, memory, lower, upper, settings)
        if found is None:
            if not memory.count:
                break
            # What is remembered no longer fits; the steepest direction is left to try.
            memory.clear()
            continue
        memory.add(found.x - at.x, found.gradient - at.gradient)
        gained = at.value - found.value
        at = found
        stalled = stalled + 1 if gained <= least_gain * max(abs(at.value), 1.0) else 0
        # A single one may be a step that the bounds cut short.
        if stalled == 2:
            break
    return at


def _search_line(
    cost: Cost,
    at: Point,
    memory: _Memory,
    lower: FloatArray,
    upper: FloatArray,
    settings: Settings,
) -> Point | None:
    """A point along the direction, projected onto the box, where the cost is lower and less steep;
    None if there is none.
    """
    best = None
    length = memory.first_length
    for _ in range(settings.max_line_evaluations):
        x = np.minimum(np.maximum(at.x + length * memory.direction, lower), upper)
        found = Point(x, *cost(x))
        step = x - at.x
        before = float(at.gradient @ step)
        after = float(found.gradient @ step)
        rise = found.value - at.value
        is_lower = before < 0 and rise <= settings.sufficient_decrease * before
        if is_lower and (best is None or found.value < best.value):
            best = found
            if after >= settings.max_slope_left * before:
                break
            length *= settings.step_growth
        elif best is not None:
            break
        elif rise > before:
            # To the minimum of the parabola through both values, but not too close to either.
            shrinkage = max(before / (2 * (before - rise)), settings.min_step_shrinkage)
            length *= min(shrinkage, settings.max_step_shrinkage)
        else:
            length *= settings.max_step_shrinkage
    return best


@entry
def _find_direction(  # type: ignore[no-untyped-def]
    x, gradient, lower, upper, steps, changes, count, scale, direction, free, workspace
):
    """Write the direction to go in (Nocedal's two loops) and which coordinates are free; return the
    steepest slope within the bounds.

    Coordinates at a bound are not free, nor are those that a step of `scale` times the gradient
    would take there: these go to their bound.
    """
    steepest = 0.0
    memory = len(steps)
    for i in range(len(x)):
        g = gradient[i]
        bound = lower[i] if gradient[i] > 0 else upper[i]
        free[i] = 1.0 if abs(bound - x[i]) > scale * abs(g) else 0.0
        direction[i] = -g * free[i]
        steepest = max(steepest, abs(g)) if bound != x[i] else steepest
    for i in range(min(count, memory)):
        _remove_curvature(
            steps[(count - 1 - i) % memory],
            changes[(count - 1 - i) % memory],
            free,
            direction,
            workspace[i],
        )
    for i in range(len(x)):
        direction[i] *= scale if count > 0 else 1.0
    for i in range(min(count, memory) - 1, -1, -1):
        _apply_curvature(
            steps[(count - 1 - i) % memory],
            changes[(count - 1 - i) % memory],
            free,
            direction,
            workspace[i],
        )
    for i in range(len(x)):
        if free[i] == 0:
            direction[i] = (lower[i] if gradient[i] > 0 else upper[i]) - x[i]
    return steepest


@summing
def _remove_curvature(step, change, free, direction, workspace):  # type: ignore[no-untyped-def]
    """The first loop: remove this step's curvature from the direction."""
    curvature = 0.0
    square = 0.0
    along = 0.0
    for i in range(len(step)):
        curvature += step[i] * change[i] * free[i]
        square += change[i] * change[i] * free[i]
        along += step[i] * direction[i]
    # Along the free coordinates there may be no curvature at all.
    workspace[0] = 1 / curvature if curvature > _MIN_CURVATURE * square else 0.0
    workspace[1] = workspace[0] * along
    for i in range(len(step)):
        direction[i] -= workspace[1] * change[i] * free[i]


@summing
def _apply_curvature(step, change, free, direction, workspace):  # type: ignore[no-untyped-def]
    """The second loop: apply the inverse of this step's curvature."""
    along = 0.0
    for i in range(len(step)):
        along += change[i] * direction[i]
    share = workspace[1] - workspace[0] * along
    for i in range(len(step)):
        direction[i] += share * step[i] * free[i]
