"""A pool: a small sample of rows, of known chances, that merges as sketches do, by keeping the
smallest random keys.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ckm._util.arrays import Array, Frozen, read_only


@dataclass(frozen=True, eq=False)
class Pool(Frozen):
    """At most `capacity` of the `seen` rows, those with the smallest keys, in the order of their
    keys.

    A row gets the key E / odds with E exponential, which makes the pool a sample without
    replacement with probabilities that follow the odds (Efraimidis and Spirakis, 2006). The odds
    are the row's weight times how much it may matter, see `runners.local`. Given the largest key
    kept, the others are in the pool by independent chances that are known: so each stands for as
    much as one over its own.
    """

    rows: Array
    weights: Array
    odds: Array
    keys: Array
    capacity: int
    seen: int

    def __post_init__(self) -> None:
        for name in ("rows", "weights", "odds", "keys"):
            object.__setattr__(self, name, read_only(getattr(self, name), np.float64))

    @classmethod
    def empty(cls, capacity: int, n: int) -> "Pool":
        """A pool that has seen nothing."""
        return cls(np.empty((0, n)), np.empty(0), np.empty(0), np.empty(0), capacity, 0)

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        rows: Array,
        weights: Array | None,
        capacity: int,
        importance: Array | None = None,
    ) -> "Pool":
        """The pool of one piece of data; every weight and importance must be positive."""
        beta = np.ones(len(rows)) if weights is None else np.asarray(weights, np.float64)
        odds = beta if importance is None else beta * importance
        keys = rng.standard_exponential(len(rows)) / odds
        kept = _smallest(keys, capacity)
        return cls(rows[kept], beta[kept], odds[kept], keys[kept], capacity, len(rows))

    @property
    def is_complete(self) -> bool:
        """Whether no row has been left out so far."""
        return len(self.rows) == self.seen

    def __len__(self) -> int:
        return len(self.rows)

    def __add__(self, other: "Pool") -> "Pool":
        if not isinstance(other, Pool):
            return NotImplemented
        capacity = min(self.capacity, other.capacity)
        kept = _smallest(np.concatenate([self.keys, other.keys]), capacity)
        rows, weights, odds, keys = (
            np.concatenate([getattr(self, name), getattr(other, name)])[kept]
            for name in ("rows", "weights", "odds", "keys")
        )
        return Pool(rows, weights, odds, keys, capacity, self.seen + other.seen)

    def scaled(self, factor: float) -> "Pool":
        """Every row with its weight times `factor`: as if it had been drawn so."""
        return Pool(
            self.rows,
            factor * self.weights,
            factor * self.odds,
            self.keys / factor,
            self.capacity,
            self.seen,
        )

    def estimate(self) -> "Estimate":
        """The data as this pool knows it."""
        if self.is_complete:
            rows, weights = distinct_rows(self.rows, self.weights)
            return Estimate(rows, weights, np.ones(len(rows)), float(len(self)))
        if len(self) == 1:
            return Estimate(self.rows, self.weights, np.zeros(1), 1.0)
        # The last row only marks where the pool ends.
        chances = -np.expm1(-self.odds[:-1] * self.keys[-1])
        rows, inverse = np.unique(self.rows[:-1], axis=0, return_inverse=True)
        most = np.zeros(len(rows))
        np.maximum.at(most, inverse.ravel(), chances)
        weights = self.weights[:-1] / chances
        size = float(weights.sum() ** 2 / (weights**2).sum())
        return Estimate(
            rows, np.bincount(inverse.ravel(), weights, minlength=len(rows)), most, size
        )


class Estimate(NamedTuple):
    """Distinct rows in sorted order, the weight each stands for, the chance each had to be sampled
    (the largest of equal rows), and how many rows drawn evenly would say as much.
    """

    rows: Array
    weights: Array
    chances: Array
    size: float


def distinct_rows(rows: Array, weights: Array) -> tuple[Array, Array]:
    """The distinct rows in sorted order, with summed weights: the same for any order, and for
    repetition or weights.
    """
    order = np.argsort(rows[:, 0])
    first = rows[order, 0]
    if (first[1:] > first[:-1]).all():  # they are distinct, and sorted by the first column
        return np.ascontiguousarray(rows[order]), np.array(weights[order], np.float64)
    unique, inverse = np.unique(rows, axis=0, return_inverse=True)
    return unique, np.bincount(inverse.ravel(), weights=weights, minlength=len(unique))


def _smallest(keys: Array, capacity: int) -> Array:
    return np.argsort(keys, kind="stable")[:capacity]
