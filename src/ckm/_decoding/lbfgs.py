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
from ckm._util.jit import entry, leaf, summing

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


class _Descent:
    """The state of a descent between two evaluations of the cost: all arrays and numbers that the
    compiled `_advance` reads and writes.
    """

    def __init__(
        self,
        x: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        limits: Limits,
        settings: Settings,
    ) -> None:
        dimension = len(x)
        memory = settings.lbfgs_memory
        self.trial = np.minimum(np.maximum(x, lower), upper)
        # Where the descent is, and the best point along the line from there.
        self.x, self.best_x = np.empty((2, dimension))
        self.gradient, self.best_gradient = np.empty((2, dimension))
        self.numbers = np.zeros(_NUMBERS)
        self.counts = np.zeros(_COUNTS, np.int64)
        self._arguments = (
            self.trial,
            (self.x, self.gradient, self.best_x, self.best_gradient),
            (lower, upper),
            (np.empty((memory, dimension)), np.empty((memory, dimension))),
            (np.empty(dimension), np.empty(dimension), np.empty((memory, 2))),
            self.numbers,
            self.counts,
            _rules(limits, settings),
        )

    def advance(self, value: float, gradient: FloatArray) -> bool:
        """Take the cost and gradient at `trial`, and write the next point to evaluate there; False
        at the end.
        """
        return bool(_advance(value, gradient, *self._arguments))


# Places in `_Descent.numbers`: the cost where the descent is, the best cost along the line, the
# step length, and the scale of the inverse Hessian.
_VALUE, _BEST, _LENGTH, _SCALE, _NUMBERS = range(5)
# Places in `_Descent.counts`: whether the first evaluation is done, steps, steps remembered,
# evaluations along the line, whether one of them was better, steps in a row that gained nothing.
_STARTED, _STEPS, _MEMORY, _TRIALS, _HAS_BEST, _STALLED, _COUNTS = range(7)


def _rules(limits: Limits, settings: Settings) -> tuple[float, ...]:
    """When to end, and how to search along a line, as plain numbers."""
    return (
        float(limits.steps),
        settings.descent_gain if limits.gain is None else limits.gain,
        settings.descent_slope if limits.slope is None else limits.slope,
        float(limits.abort_above),
        float(settings.abort_check_step),
        float(limits.target),
        float(settings.max_line_evaluations),
        settings.sufficient_decrease,
        settings.max_slope_left,
        settings.step_growth,
        settings.min_step_shrinkage,
        settings.max_step_shrinkage,
    )


def descend(
    cost: Cost,
    x: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    limits: Limits,
    settings: Settings = DEFAULT,
) -> Point:
    """A local minimum of the cost over lower <= x <= upper, from x, as far as the limits go."""
    descent = _Descent(x, lower, upper, limits, settings)
    while descent.advance(*cost(descent.trial)):
        pass
    return Point(descent.x, float(descent.numbers[_VALUE]), descent.gradient)


@entry
def _advance(  # type: ignore[no-untyped-def]
    value, gradient, trial, points, bounds, memory, workspaces, numbers, counts, rules
):
    """One evaluation further: along the line, or on to a new one; False at the end."""
    x, x_gradient, best_x, best_gradient = points
    if counts[_STARTED] == 0:
        counts[_STARTED] = 1
        numbers[_VALUE] = value
        _copy(trial, x)
        _copy(gradient, x_gradient)
        return _start_line(trial, points, bounds, memory, workspaces, numbers, counts, rules)
    if _goes_on_along_line(value, gradient, trial, points, numbers, counts, rules):
        _move(x, numbers[_LENGTH], workspaces[0], bounds[0], bounds[1], trial)
        return True
    if counts[_HAS_BEST] == 0:
        if counts[_MEMORY] == 0:
            return False
        # What is remembered no longer fits; the steepest direction is left to try.
        counts[_MEMORY] = 0
        numbers[_SCALE] = 0.0
        return _start_line(trial, points, bounds, memory, workspaces, numbers, counts, rules)
    gained = numbers[_VALUE] - numbers[_BEST]
    _remember(points, memory, numbers, counts)
    _copy(best_x, x)
    _copy(best_gradient, x_gradient)
    numbers[_VALUE] = numbers[_BEST]
    stalls = gained <= rules[1] * max(abs(numbers[_VALUE]), 1.0)
    counts[_STALLED] = counts[_STALLED] + 1 if stalls else 0
    # A single one may be a step that the bounds cut short.
    if counts[_STALLED] == 2:
        return False
    return _start_line(trial, points, bounds, memory, workspaces, numbers, counts, rules)


@leaf
def _start_line(  # type: ignore[no-untyped-def]
    trial, points, bounds, memory, workspaces, numbers, counts, rules
):
    """Write the first point along the next direction; False if the descent ends before."""
    steps, _, least_slope, abort_above, abort_step, target = rules[:6]
    x, gradient, _, _ = points
    lower, upper = bounds
    if counts[_STEPS] >= steps or numbers[_VALUE] <= target:
        return False
    direction, free, workspace = workspaces
    slope = _find_direction(
        x,
        gradient,
        lower,
        upper,
        memory[0],
        memory[1],
        counts[_MEMORY],
        numbers[_SCALE],
        direction,
        free,
        workspace,
    )
    is_aborted = counts[_STEPS] == abort_step and numbers[_VALUE] > abort_above
    if slope <= least_slope or is_aborted:
        return False
    counts[_STEPS] += 1
    counts[_TRIALS] = 0
    counts[_HAS_BEST] = 0
    numbers[_LENGTH] = 1.0
    if counts[_MEMORY] == 0:
        # Nothing is known yet: at most unit length.
        numbers[_LENGTH] = min(1.0, 1 / np.sqrt(_dot(direction, direction)))
    _move(x, numbers[_LENGTH], direction, lower, upper, trial)
    return True


@leaf
def _goes_on_along_line(  # type: ignore[no-untyped-def]
    value, gradient, trial, points, numbers, counts, rules
):
    """Whether to evaluate another point along the line, at the step length that this writes.

    The line ends where the cost is lower and less steep.
    """
    max_trials, decrease, slope_left, growth, min_shrinkage, max_shrinkage = rules[6:]
    x, x_gradient, best_x, best_gradient = points
    counts[_TRIALS] += 1
    before = _dot_difference(x_gradient, trial, x)
    after = _dot_difference(gradient, trial, x)
    rise = value - numbers[_VALUE]
    is_lower = before < 0 and rise <= decrease * before
    if is_lower and (counts[_HAS_BEST] == 0 or value < numbers[_BEST]):
        counts[_HAS_BEST] = 1
        numbers[_BEST] = value
        _copy(trial, best_x)
        _copy(gradient, best_gradient)
        if after >= slope_left * before:
            return False
        numbers[_LENGTH] *= growth
    elif counts[_HAS_BEST] == 1:
        return False
    elif rise > before:
        # To the minimum of the parabola through both values, but not too close to either.
        shrinkage = max(before / (2 * (before - rise)), min_shrinkage)
        numbers[_LENGTH] *= min(shrinkage, max_shrinkage)
    else:
        numbers[_LENGTH] *= max_shrinkage
    return counts[_TRIALS] < max_trials


@leaf
def _remember(points, memory, numbers, counts):  # type: ignore[no-untyped-def]
    """Remember the step to the best point, unless the cost is not convex along it."""
    x, gradient, best_x, best_gradient = points
    curvature, square = _curvature(points)
    if curvature > 0:
        steps, changes = memory
        step = steps[counts[_MEMORY] % len(steps)]
        change = changes[counts[_MEMORY] % len(steps)]
        for i in range(len(x)):
            step[i] = best_x[i] - x[i]
            change[i] = best_gradient[i] - gradient[i]
        numbers[_SCALE] = curvature / square
        counts[_MEMORY] += 1


@leaf
def _move(x, length, direction, lower, upper, trial):  # type: ignore[no-untyped-def]
    """The point at this length along the direction, projected onto the box."""
    for i in range(len(x)):
        trial[i] = min(max(x[i] + length * direction[i], lower[i]), upper[i])


@leaf
def _copy(source, target):  # type: ignore[no-untyped-def]
    for i in range(len(source)):
        target[i] = source[i]


@summing
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@summing
def _curvature(points):  # type: ignore[no-untyped-def]
    """The step to the best point times the change of the gradient, and the square of the change."""
    x, gradient, best_x, best_gradient = points
    product = 0.0
    square = 0.0
    for i in range(len(x)):
        change = best_gradient[i] - gradient[i]
        product += (best_x[i] - x[i]) * change
        square += change * change
    return product, square


@summing
def _dot_difference(a, b, c):  # type: ignore[no-untyped-def]
    """a . (b - c)."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * (b[i] - c[i])
    return total


@leaf
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
