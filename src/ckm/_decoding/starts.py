"""Where step 1 of Algorithm 1 starts: Range, Sample and K++ (Section 4.2 of the paper), or at given
centroids.
"""

from collections.abc import Callable

import numpy as np

from ckm._core.defaults import DEFAULT_POOL
from ckm._decoding.sample import SampledRows
from ckm._kmeans.init import draw_in_proportion
from ckm._messages import Argument
from ckm._util.arrays import FloatArray
from ckm._util.checks import check_whole_number
from ckm.errors import ParameterError

# A strategy draws one start, given the centroids found so far (k, n).
Start = Callable[[np.random.Generator, FloatArray], FloatArray]

# A strategy by name, or centroids (K, n) in the problem's coordinates to start from.
Init = str | FloatArray

INITS = ("range", "sample", "k++", "random", "k-means++")
# scikit-learn's names of two strategies.
_SYNONYMS = {"random": "sample", "k-means++": "k++"}
FROM_ROWS = ("sample", "k++", *_SYNONYMS)
# Runs that n_init="auto" stands for where starts are random, as in scikit-learn.
_RANDOM_RUNS = 10


def range_start(lower: FloatArray, upper: FloatArray) -> Start:
    """Range: uniform in the box."""
    return lambda rng, C: rng.uniform(lower, upper)


def sample_start(rows: FloatArray, weights: FloatArray) -> Start:
    """Sample: a row of the data, drawn with its weight."""
    p = weights / weights.sum()
    return lambda rng, C: rows[rng.choice(len(rows), p=p)]


def plusplus_start(rows: FloatArray, weights: FloatArray) -> Start:
    """K++: a row drawn in proportion to its weight and its squared distance to the nearest centroid
    so far.
    """
    sample = sample_start(rows, weights)

    def start(rng: np.random.Generator, C: FloatArray) -> FloatArray:
        if not len(C):
            return sample(rng, C)
        # Deviation: the paper's text says inversely proportional to the distance, a slip; Arthur
        # and Vassilvitskii's rule is meant.
        squares = ((rows[:, None, :] - C) ** 2).sum(axis=2).min(axis=1)
        masses = weights * squares
        if not masses.sum() > 0:
            return sample(rng, C)
        drawn: FloatArray = rows[draw_in_proportion(masses, rng.random(1))[0]]
        return drawn

    return start


def given_start(centroids: FloatArray) -> Start:
    """The given centroid (of K) that is farthest from those found so far."""

    def start(rng: np.random.Generator, C: FloatArray) -> FloatArray:
        squares = ((centroids[:, None, :] - C) ** 2).sum(axis=2).min(axis=1, initial=np.inf)
        farthest: FloatArray = centroids[np.argmax(squares)]
        return farthest

    return start


def resolve_n_init(n_init: int | str, is_random: bool) -> int:
    """The number of runs; "auto" is several if starts are random, as in scikit-learn."""
    if isinstance(n_init, str) and n_init == "auto":
        return _RANDOM_RUNS if is_random else 1
    return check_whole_number(n_init, "n_init", 1)


def is_random(init: object) -> bool:
    """Whether starts are random rows, or what a function returns."""
    return callable(init) or (isinstance(init, str) and _SYNONYMS.get(init, init) == "sample")


def require_init(init: object, has_rows: bool) -> None:
    """Refuse an unknown strategy, and one that needs rows if there are none."""
    if not isinstance(init, str) or init not in ("auto", *INITS):
        given = " ".join(repr(init).split())
        choices = ", ".join(map(repr, ("auto", *INITS)))
        raise ParameterError(
            "There is no ",
            Argument("init"),
            f" {given}; choose one of {choices}, or give centroids.",
        )
    if init in FROM_ROWS and not has_rows:
        raise ParameterError(
            Argument("init", init),
            " starts from rows, and this sketch holds none; sketch with ",
            Argument("pool", DEFAULT_POOL),
            ", or use ",
            Argument("init", "range"),
            ".",
        )


def make_start(init: Init, lower: FloatArray, upper: FloatArray, rows: SampledRows | None) -> Start:
    """The strategy called `init`; "auto" is Sample if there are rows, else Range."""
    if isinstance(init, np.ndarray):
        return given_start(init)
    require_init(init, rows is not None)
    if rows is None or init == "range":
        return range_start(lower, upper)
    if _SYNONYMS.get(init, init) == "k++":
        return plusplus_start(rows.values, rows.weights)
    return sample_start(rows.values, rows.weights)
