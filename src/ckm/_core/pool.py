"""A pool: a small random sample of rows that merges as sketches do.

Each row gets a random key, and a pool keeps the rows with the smallest keys. The pool of two sets
of rows is therefore found from their two pools.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ckm._util.arrays import Array, FloatArray, Frozen, IntArray, read_only

# The smallest weight of a row in a pool, so that weights stay positive and keys finite when weights
# are tiny or scaled often.
SMALLEST_WEIGHT = 1e-300


@dataclass(frozen=True, eq=False)
class Pool(Frozen):
    """The rows with the smallest keys, at most `capacity` of the `seen` ones, sorted by key.

    The key of a row is E / odds, where E is exponential. This makes the pool a sample without
    replacement with probabilities that follow the odds (Efraimidis and Spirakis, 2006). The odds
    are the weight of the row times its importance, see `ckm._kernels.cpu.kernel`. Given the
    largest key in the pool, the other rows were included independently of each other, with known
    probabilities; each represents one over its probability.

    Parameters
    ----------
    rows : float64 array (size, n)
        The rows.
    weights : float64 array (size,)
        Their weights in the data.
    odds : float64 array (size,)
        Weights times importance.
    keys : float64 array (size,)
        Their keys, in increasing order.
    capacity : int
        The largest size.
    seen : int
        The number of rows of the data.
    """

    rows: FloatArray
    weights: FloatArray
    odds: FloatArray
    keys: FloatArray
    capacity: int
    seen: int

    def __post_init__(self) -> None:
        values = {
            "rows": self.rows,
            "weights": np.maximum(self.weights, SMALLEST_WEIGHT),
            "odds": np.clip(self.odds, SMALLEST_WEIGHT, 1 / SMALLEST_WEIGHT),
            "keys": np.minimum(self.keys, 1 / SMALLEST_WEIGHT),
        }
        for name, array in values.items():
            object.__setattr__(self, name, read_only(array, np.float64))

    @classmethod
    def empty(cls, capacity: int, n: int) -> "Pool":
        """The pool of zero rows."""
        return cls(np.empty((0, n)), np.empty(0), np.empty(0), np.empty(0), capacity, 0)

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        rows: Array,
        weights: Array | None,
        capacity: int,
        importance: Array | None = None,
        limit: float = np.inf,
    ) -> "Pool":
        """The pool of some rows (N, n); weights (N,) and importance (N,) must be positive.

        Rows with keys from `limit` on are left out: a full pool that this one will be joined with
        has smaller ones.
        """
        beta = np.ones(len(rows)) if weights is None else np.asarray(weights, np.float64)
        odds = beta if importance is None else beta * importance
        with np.errstate(over="ignore"):
            keys = rng.standard_exponential(len(rows)) / odds
        below = np.flatnonzero(keys < limit) if np.isfinite(limit) else slice(None)
        kept = _smallest(keys[below], capacity)
        kept = kept if isinstance(below, slice) else below[kept]
        return cls(rows[kept], beta[kept], odds[kept], keys[kept], capacity, len(rows))

    @property
    def is_complete(self) -> bool:
        """Whether the pool holds every row of the data."""
        return len(self.rows) == self.seen

    def __len__(self) -> int:
        return len(self.rows)

    def __add__(self, other: "Pool") -> "Pool":
        if not isinstance(other, Pool):
            return NotImplemented
        capacity = min(self.capacity, other.capacity)
        seen = self.seen + other.seen
        if not len(other) and capacity == self.capacity:
            return replace(self, seen=seen)
        # Both are sorted: a stable sort merges two such runs in linear time.
        kept = np.argsort(np.concatenate([self.keys, other.keys]), kind="stable")[:capacity]
        return Pool(
            _taken(self.rows, other.rows, kept),
            _taken(self.weights, other.weights, kept),
            _taken(self.odds, other.odds, kept),
            _taken(self.keys, other.keys, kept),
            capacity,
            seen,
        )

    @property
    def limit(self) -> float:
        """The key that rows must be below to have a place in the pool."""
        return float(self.keys[-1]) if len(self) == self.capacity else np.inf

    def emptied(self) -> "Pool":
        """The pool of zero rows with the same capacity."""
        return Pool.empty(self.capacity, self.rows.shape[1])

    def scaled(self, factor: float) -> "Pool":
        """The pool of the same rows with their weights times `factor`."""
        return Pool(
            self.rows,
            factor * self.weights,
            factor * self.odds,
            np.minimum(self.keys, factor / SMALLEST_WEIGHT) / factor,
            self.capacity,
            self.seen,
        )

    def estimate(self) -> "Estimate":
        """The data as far as this pool represents it."""
        if self.is_complete:
            rows, weights = distinct_rows(self.rows, self.weights)
            return Estimate(rows, weights, np.ones(len(rows)), float(len(self)), 0.0)
        if len(self) == 1:
            return Estimate(self.rows, self.weights, np.zeros(1), 1.0, float(self.weights[0]))
        # The last row only marks where the pool ends: given its key, the others are independent.
        chances = -np.expm1(-self.odds[:-1] * self.keys[-1])
        weights = self.weights[:-1] / chances
        rows, inverse = _unique_rows(self.rows[:-1])
        largest_chances = np.zeros(len(rows))
        np.maximum.at(largest_chances, inverse, chances)
        sums = _sum_groups(inverse, weights, len(rows))
        is_single = np.bincount(inverse, minlength=len(rows)) == 1
        return Estimate(
            rows, sums, largest_chances, _effective_size(weights), float(sums[is_single].sum())
        )


class Estimate(NamedTuple):
    """A weighted sample that stands for the data.

    Parameters
    ----------
    rows : float64 array (size, n)
        Distinct rows, sorted.
    weights : float64 array (size,)
        The weight that each represents.
    chances : float64 array (size,)
        The probability that each was sampled; the largest one of equal rows.
    size : float
        The effective sample size: (sum w)^2 / sum w^2.
    unseen : float
        About the weight of the data's rows that are unlike all of these. A row that the pool holds
        once represents as much as such rows are missed (Good, 1953).
    """

    rows: FloatArray
    weights: FloatArray
    chances: FloatArray
    size: float
    unseen: float


def distinct_rows(rows: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The distinct rows, sorted, and the sum of the weights of each.

    The order of rows does not matter, nor whether a row is repeated or has a larger weight.
    """
    order = np.argsort(rows[:, 0])
    first = rows[order, 0]
    # Rows whose first values all differ are distinct, and sorted by the first column.
    if (first[1:] > first[:-1]).all():
        return np.ascontiguousarray(rows[order]), np.array(weights[order], np.float64)
    unique, inverse = _unique_rows(rows)
    return unique, _sum_groups(inverse, weights, len(unique))


def _unique_rows(rows: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct rows, sorted, and which of them each row is.

    `np.unique` compares whole rows as structures, where NumPy turns a Ctrl-C into a TypeError.
    """
    order = _sorting_order(rows)
    ordered = rows[order]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = np.cumsum(is_first) - 1
    return ordered[is_first], inverse


def _sorting_order(rows: FloatArray) -> IntArray:
    """The order that sorts rows by their first column, equal ones by their second, and so on."""
    order = np.argsort(rows[:, 0], kind="stable")
    compared = 1
    while compared < rows.shape[1]:
        ordered = rows[order, :compared]
        is_equal = (ordered[1:] == ordered[:-1]).all(axis=1)
        is_tied = np.append(is_equal, False) | np.insert(is_equal, 0, False)
        if not is_tied.any():
            break
        # Few rows are equal in many columns: only these are compared further.
        compared = min(2 * compared, rows.shape[1])
        tied = order[is_tied]
        order[is_tied] = tied[np.lexsort(rows[tied, :compared].T[::-1])]
    return np.asarray(order)


def _effective_size(weights: FloatArray) -> float:
    """(sum w)^2 / sum w^2, without overflow or underflow of the squares."""
    _, exponent = np.frexp(weights.max())
    # A power of two, which changes no bit of the result.
    scaled = np.ldexp(weights, -exponent)
    return float(scaled.sum() ** 2 / (scaled**2).sum())


def _sum_groups(groups: IntArray, weights: FloatArray, count: int) -> FloatArray:
    """The sum of the weights of each of `count` groups."""
    return np.asarray(np.bincount(groups, weights, minlength=count), np.float64)


def _taken(first: FloatArray, second: FloatArray, kept: IntArray) -> FloatArray:
    """The values at positions `kept` of one array with another after it, which is not made: large
    pools are joined with few rows at a time.
    """
    is_second = kept >= len(first)
    if not len(first):
        return np.asarray(second[kept])
    found = first.take(kept, axis=0, mode="clip")
    found[is_second] = second[kept[is_second] - len(first)]
    return np.asarray(found)


def _smallest(keys: FloatArray, capacity: int) -> IntArray:
    """The positions of the `capacity` smallest keys, in increasing order."""
    if capacity < len(keys):
        # All others need not be sorted.
        bound = np.partition(keys, capacity)[capacity]
        few = np.flatnonzero(keys <= bound)
        return few[np.argsort(keys[few], kind="stable")][:capacity]
    return np.argsort(keys, kind="stable")
