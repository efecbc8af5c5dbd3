"""Which frequencies, sums and pools can belong to a sketch: the checks of a file that is loaded.

The checksum of a file can be forged, so everything that decoders rely on is checked here. Each
check raises ValueError (or a subclass) for values that this library cannot have made.
"""

import math

import numpy as np

from ckm._core.bounds import GRID
from ckm._core.categories import coded_columns
from ckm._core.cells import MAX_EXPONENT, VARIANCE_BITS, Cells
from ckm._core.frequencies import Frequencies
from ckm._core.laws import find_law
from ckm._core.moments import moment_violation, second_moment_shape
from ckm._core.nested import NAME as NESTED
from ckm._core.pool import Pool
from ckm._core.tally import SUM_TOLERANCE, UNIT, Tally
from ckm._util.arrays import FloatArray

# The share of the squared range of the data by which moments may violate its bounds: ten times what
# `Sketch.__sub__` leaves.
_MOMENT_TOLERANCE = 1e-6
# The same for cells, of which a large number may have been subtracted in float64.
_CELL_TOLERANCE = 1e-4
# Weights and odds are sums and products of a few numbers, on a GPU in float32.
_WEIGHT_TOLERANCE = 1e-6
_LEAST_IMPORTANCE = 0.49
_FLOAT32_WEIGHT = 1e-30
# An exponential random number is the key of a row times its odds; larger ones are never drawn.
_LARGEST_EXPONENTIAL = 1e3
# Smaller ones are drawn for one row in a thousand at most, though some are rounded to zero.
_SMALLEST_EXPONENTIAL = 1e-15
_SMALL_SHARE = 1e-3


def check_frequencies(f: Frequencies) -> None:
    """Refuse frequencies that no law can have drawn at their scale."""
    if f.distribution != NESTED:
        find_law(f.distribution)
    elif f.bounds is None or f.seed is None:
        raise ValueError("nested frequencies are those of a public design, and have its seed")
    if (f.distribution == "structured") != (f.signs is not None):
        raise ValueError(f"{f.distribution} frequencies and their signs do not go together")
    f.require_possible_lengths()
    if f.preparation is not None:
        if any(j >= f.n_features for j in f.preparation.logged):
            raise ValueError(f"there is no column {f.preparation.logged[-1]} to prepare")
        if len(coded_columns(f.preparation.categories)) > f.n_features:
            raise ValueError("there are fewer columns than categories have")
        if f.preparation.is_robust and f.column_units is None:
            raise ValueError("robust units are units")


def check_tally(t: Tally, f: Frequencies) -> None:
    """Refuse sums that no rows could add up to."""
    shapes = (t.sums.shape, t.lower.shape, t.upper.shape, t.first.shape, t.second.shape)
    if shapes != ((2, f.m), (f.n,), (f.n,), (f.n,), second_moment_shape(f.m, f.n)):
        raise ValueError(f"shapes {shapes} do not fit {f.m} frequencies in dimension {f.n}")
    _check_columns(t, f)
    if not all(np.isfinite(array).all() for array in (t.sums, t.first, t.second)):
        raise ValueError("sums and moments must be finite")
    if t.count < 0 or not t.weight >= 0 or (t.count == 0) != (t.weight == 0):
        raise ValueError(f"count {t.count} and weight {t.weight} do not go together")
    if t.exact and t.weight != t.count:
        raise ValueError(f"{t.count} unweighted rows cannot weigh {t.weight}")
    t.require_capacity()
    _check_bounded(t, f)
    _check_squared_weight(t, 1 if f.bounds is None else f.bounds.row_copies)
    if t.count == 0:
        _check_empty(t)
        return
    cosines, sines = t.sums.astype(np.float64) * (UNIT / t.weight)
    if (np.hypot(cosines, sines) > 1 + SUM_TOLERANCE).any():
        raise ValueError("the sums are larger than the number of rows allows")
    _check_moments(t, f.origin)


def _check_bounded(t: Tally, f: Frequencies) -> None:
    """Refuse whole-number sums that rows within public bounds cannot have."""
    own = t.bounded
    if own is None:
        return
    if f.bounds is None or own.first.shape != (f.n,) or own.second.shape != (f.n,):
        raise ValueError("sums within bounds do not fit the bounds")
    most = min(GRID * t.count, np.iinfo(np.int64).max)
    if (own.first < -most).any() or (own.second < 0).any():
        raise ValueError("the sums within bounds are too small for the number of rows")
    if (own.first > most).any() or (own.second > most).any():
        raise ValueError("the sums within bounds are too large for the number of rows")
    if max(own.clipped, own.capped) > t.count or (own.user_cap == 0 and t.count > 0):
        raise ValueError("the rows that were clipped, or those of a user, do not fit their number")


def _check_squared_weight(t: Tally, most: int) -> None:
    """Refuse squares that no weights of this sum have; weights of exact sums are at most `most`."""
    if t.exact:
        squares = t.squared_weight
        if squares is None or not t.count <= squares <= most * t.count:
            raise ValueError(f"squared weights {squares} do not fit {t.count} rows")
        return
    size = t.effective_size
    if size is None:
        return
    slack = 1 + _WEIGHT_TOLERANCE
    # Scaling makes the count smaller than the number of rows.
    if size * slack < 1 or (t.tight and size > t.count * slack):
        raise ValueError(f"squared weights {t.squared_weight} do not fit {t.count} rows")


def _check_columns(t: Tally, f: Frequencies) -> None:
    """Refuse sums over columns that cannot be those of rows that were projected."""
    if (t.columns is None) != (f.projection is None):
        raise ValueError("a projection and sums over columns go together")
    if t.columns is None or f.projection is None:
        return
    first = t.columns.first
    second = t.columns.second
    if first.shape != (f.n_features,) or second.shape != first.shape:
        raise ValueError(f"sums over columns must be {f.n_features} numbers")
    if not (np.isfinite(first).all() and np.isfinite(second).all()) or (second < 0).any():
        raise ValueError("sums over columns must be finite, and squares not negative")
    if t.count == 0:
        if first.any() or second.any():
            raise ValueError("a sketch of zero rows must be empty")
        return
    # The square of a mean is at most the mean of squares.
    if (first**2 > t.weight * second * (1 + _MOMENT_TOLERANCE) + _MOMENT_TOLERANCE).any():
        raise ValueError("the means of columns are too large for their squares")
    kept = f.projection.kept
    if kept is not None and not 0 <= kept <= 1:
        raise ValueError("a projection keeps a share of the variance")


def _check_moments(t: Tally, origin: FloatArray) -> None:
    """Refuse bounds that are not bounds, and moments that rows between them cannot have."""
    if not (
        np.isfinite(t.lower).all() and np.isfinite(t.upper).all() and (t.lower <= t.upper).all()
    ):
        raise ValueError("the bounds are not bounds")
    lower = t.lower - origin
    upper = t.upper - origin
    # Kernels refuse rows that are not finite in float32.
    if not np.isfinite(np.concatenate([lower, upper]).astype(np.float32)).all():
        raise ValueError("the bounds are too far from the origin for float32")
    mean = t.first / t.weight
    second = t.second_moment / t.weight
    if moment_violation(mean, second, lower, upper) > _MOMENT_TOLERANCE:
        raise ValueError("the moments are not those of rows within the bounds")
    if t.exact and t.tight:
        # The rows at both bounds are there, and their variance is at least this.
        least = (upper - lower) ** 2 / (2 * t.count)
        reach = np.maximum(np.abs(lower), np.abs(upper))
        variances = second.minus_outer(mean).diagonal
        if (variances < least * (1 - _MOMENT_TOLERANCE) - _MOMENT_TOLERANCE * reach**2).any():
            raise ValueError("the variances are too small for the bounds")


def _check_empty(t: Tally) -> None:
    """Refuse a tally of zero rows that is not the identity of `+`."""
    empty = Tally.empty(t.sums.shape[1], len(t.first))
    for name in ("sums", "lower", "upper", "first", "second"):
        if not np.array_equal(getattr(t, name), getattr(empty, name)):
            raise ValueError("a sketch of zero rows must be empty")


def check_pool(pool: Pool, n: int, t: Tally) -> None:
    """Refuse a pool that cannot have been sampled from the rows of this tally."""
    size = min(pool.capacity, pool.seen)
    # Scaling makes the count smaller than the number of rows that the pool was sampled from.
    if pool.seen < t.count or (t.exact and pool.seen != t.count):
        raise ValueError("the pool does not fit the number of rows")
    if (t.count == 0) != (pool.seen == 0):
        raise ValueError("the pool does not fit the number of rows")
    if pool.rows.shape != (size, n):
        raise ValueError("the pool does not fit the sketch")
    if not pool.weights.shape == pool.keys.shape == pool.odds.shape == (size,):
        raise ValueError("the pool does not fit the sketch")
    arrays = (pool.rows, pool.weights, pool.odds, pool.keys)
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("the pool's rows, weights, odds and keys must be finite")
    if (pool.rows < t.lower).any() or (pool.rows > t.upper).any():
        raise ValueError("the pool's rows are not within the bounds")
    _check_pool_weights(pool, t)
    _check_pool_keys(pool)


def _check_pool_weights(pool: Pool, t: Tally) -> None:
    """Refuse weights that are not those of some rows of the tally."""
    if (pool.weights <= 0).any() or (pool.odds <= 0).any():
        raise ValueError("the pool's weights and odds must be positive")
    is_unimportant = pool.odds < _LEAST_IMPORTANCE * pool.weights
    if (is_unimportant & (pool.weights > _FLOAT32_WEIGHT)).any():
        raise ValueError("the pool's odds do not fit its weights")
    if t.exact and (pool.weights != 1).any():
        raise ValueError("the pool of unweighted rows must be unweighted")
    sampled = float(pool.weights.sum())
    if sampled > t.weight * (1 + _WEIGHT_TOLERANCE):
        raise ValueError("the pool weighs more than all rows")
    if pool.is_complete and sampled < t.weight * (1 - _WEIGHT_TOLERANCE):
        raise ValueError("the pool of all rows weighs less than they do")


def _check_pool_keys(pool: Pool) -> None:
    """Refuse keys that are not exponential random numbers divided by the odds, in order."""
    if (pool.keys < 0).any() or (np.diff(pool.keys) < 0).any():
        raise ValueError("the pool is not in the order of its keys")
    exponentials = pool.keys * pool.odds
    if (exponentials > _LARGEST_EXPONENTIAL).any():
        raise ValueError("the pool's keys do not fit its odds")
    # A pool of all rows was not selected for small keys.
    n_small = int((exponentials < _SMALLEST_EXPONENTIAL).sum())
    if pool.is_complete and n_small > math.ceil(_SMALL_SHARE * len(pool)):
        raise ValueError("the pool's keys do not fit its odds")
    # The largest key tells how likely the other rows were sampled, and so what they represent.
    if len(pool) and not np.isfinite(pool.estimate().size):
        raise ValueError("the pool's keys do not fit its odds")


def check_cells(cells: Cells, f: Frequencies, t: Tally) -> None:
    """Refuse cells that are not those of the rows of this tally."""
    anchors = cells.anchors
    s = len(anchors)
    shapes = (anchors.values.shape, anchors.exponents.shape, *(a.shape for a in cells.arrays[:3]))
    if s == 0 or shapes != ((s, f.n), (f.n,), (s,), (s, f.n), (s,)):
        raise ValueError(f"shapes {shapes} do not fit cells in dimension {f.n}")
    if not np.isfinite(anchors.values).all() or not np.isfinite(anchors.halves).all():
        raise ValueError("the anchors must be finite")
    _check_wide(cells, f)
    wide = () if anchors.wide_exponents is None else anchors.wide_exponents
    exponents = [*map(int, anchors.exponents), *map(int, wide), anchors.square_exponent]
    if max(map(abs, exponents)) > MAX_EXPONENT + VARIANCE_BITS:
        raise ValueError("the grids of the cells are out of range")
    if not 0 <= anchors.spread < np.inf:
        raise ValueError("the spread of the anchors must be a finite mean of squares")
    _check_cell_mass(cells, t)
    _check_cell_sums(cells, f, t)


def _check_wide(cells: Cells, f: Frequencies) -> None:
    """Refuse sums in all columns that do not fit rows that were projected."""
    exponents = cells.anchors.wide_exponents
    if (exponents is None) != (cells.wide is None):
        raise ValueError("sums in all columns and their grids go together")
    if exponents is None or cells.wide is None:
        return
    width = f.n_features
    if f.projection is None or exponents.shape != (width,):
        raise ValueError("sums in all columns are for rows that are projected")
    if cells.wide.shape != (len(cells.anchors), width):
        raise ValueError(f"sums in all columns must have {width} columns")
    if (cells.wide[cells.mass == 0] != 0).any():
        raise ValueError("cells without rows must be empty")


def _check_cell_mass(cells: Cells, t: Tally) -> None:
    """Refuse cells that do not share out the rows of this tally."""
    if len({array.dtype.kind == "f" for array in cells.arrays}) > 1:
        raise ValueError("the cells must be all whole numbers, or none")
    if not cells.exact and not all(np.isfinite(array).all() for array in cells.arrays):
        raise ValueError("the cells must be finite")
    if (cells.mass < 0).any() or (cells.squares < 0).any():
        raise ValueError("the cells must not be negative")
    total = cells.mass.sum()
    if t.exact and not (cells.exact and total == t.count):
        raise ValueError("the cells do not hold all rows")
    if abs(float(total) - t.weight) > _WEIGHT_TOLERANCE * t.weight:
        raise ValueError("the cells do not weigh what all rows do")


def _check_cell_sums(cells: Cells, f: Frequencies, t: Tally) -> None:
    """Refuse sums that rows within the bounds cannot have."""
    is_empty = cells.mass == 0
    if (cells.sums[is_empty] != 0).any() or (cells.squares[is_empty] != 0).any():
        raise ValueError("cells without rows must be empty")
    if is_empty.all():
        return
    anchors = cells.anchors
    mass, means, _ = cells.statistics()
    lower = t.lower - f.origin
    upper = t.upper - f.origin
    slack = anchors.steps + _CELL_TOLERANCE * np.maximum(np.abs(lower), np.abs(upper))
    if (means < lower - slack).any() or (means > upper + slack).any():
        raise ValueError("the means of the cells are not within the bounds")
    lengths = cells.squares[~is_empty].astype(np.float64) / mass * anchors.square_step
    least = ((means * anchors.metric) ** 2).sum(axis=1)
    most = ((np.maximum(np.abs(lower), np.abs(upper)) * anchors.metric) ** 2).sum()
    room = anchors.square_step + _CELL_TOLERANCE * most
    if (lengths < least - room).any() or (lengths > most + room).any():
        raise ValueError("the squares of the cells do not fit their means and the bounds")
