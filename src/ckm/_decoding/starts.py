"""Where step 1 starts: Range, Sample and K++ (Section 4.2 of the paper)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ckm._kmeans.init import draw_in_proportion
from ckm._util.arrays import Array
from ckm.errors import ParameterError

# A strategy draws one start, given the centroids found so far (k, n).
Start = Callable[[np.random.Generator, Array], Array]


class Rows(NamedTuple):
    """Distinct rows of the data with the weight each stands for, and the chance each had to be
    among them: one for all of them when no row of the data is missing. They say as much as `size`
    rows drawn evenly.
    """

    values: Array
    weights: Array
    chances: Array
    size: float

    @property
    def complete(self) -> bool:
        """Whether no row of the data is missing."""
        return bool((self.chances == 1).all())

    @property
    def shares(self) -> Array:
        """The weights as shares of their sum."""
        return np.asarray(self.weights / self.weights.sum())

    def only(self, kept: Array) -> "Rows":
        """Some of the rows."""
        return Rows(self.values[kept], self.weights[kept], self.chances[kept], self.size)


INITS = ("range", "sample", "k++")
FROM_ROWS = ("sample", "k++")


def range_start(lower: Array, upper: Array) -> Start:
    """Range: uniform in the box."""
    return lambda rng, C: rng.uniform(lower, upper)


def sample_start(rows: Array, weights: Array) -> Start:
    """Sample: a row of the data, drawn with its weight."""
    p = weights / weights.sum()
    return lambda rng, C: rows[rng.choice(len(rows), p=p)]


def plusplus_start(rows: Array, weights: Array) -> Start:
    """K++: a row drawn in proportion to its weight and its squared distance to the nearest centroid
    so far.
    """
    sample = sample_start(rows, weights)

    def start(rng: np.random.Generator, C: Array) -> Array:
        if not len(C):
            return sample(rng, C)
        # Deviation: the paper's text says inversely proportional to the distance, a slip; Arthur
        # and Vassilvitskii's rule is meant.
        squares = ((rows[:, None, :] - C) ** 2).sum(axis=2).min(axis=1)
        masses = weights * squares
        if not masses.sum() > 0:
            return sample(rng, C)
        drawn: Array = rows[draw_in_proportion(masses, rng.random(1))[0]]
        return drawn

    return start


def require_init(init: str, has_rows: bool) -> None:
    """Refuse an unknown strategy, and one that wants rows where there are none."""
    if not isinstance(init, str) or init not in ("auto", *INITS):
        raise ParameterError(
            f"There is no init {' '.join(repr(init).split())}; choose one of {', '.join(map(repr, ('auto', *INITS)))}."
        )
    if init in FROM_ROWS and not has_rows:
        raise ParameterError(
            f"init={init!r} starts from rows, and this sketch holds none; sketch with pool=1000, or use init='range'."
        )


def make_start(init: str, lower: Array, upper: Array, rows: Rows | None) -> Start:
    """The strategy called `init`; "auto" is Sample where there are rows, else Range."""
    require_init(init, rows is not None)
    if rows is None or init == "range":
        return range_start(lower, upper)
    return (plusplus_start if init == "k++" else sample_start)(rows.values, rows.weights)
