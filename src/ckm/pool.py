"""A pool: a small uniform sample of rows that merges as sketches do, by keeping the smallest random keys."""

from dataclasses import dataclass

import numpy as np

from ckm.readonly import Array, Frozen, read_only


@dataclass(frozen=True, eq=False)
class Pool(Frozen):
    """At most `capacity` of the `seen` rows, those with the smallest keys, in the order of their keys.

    A row of weight beta gets the key E / beta with E exponential, which makes the pool a sample without replacement with
    probabilities proportional to the weights (Efraimidis and Spirakis, 2006).
    """

    rows: Array
    weights: Array
    keys: Array
    capacity: int
    seen: int

    def __post_init__(self) -> None:
        for name in ("rows", "weights", "keys"):
            object.__setattr__(self, name, read_only(getattr(self, name), np.float64))

    @classmethod
    def empty(cls, capacity: int, n: int) -> "Pool":
        """A pool that has seen nothing."""
        return cls(np.empty((0, n)), np.empty(0), np.empty(0), capacity, 0)

    @classmethod
    def draw(cls, rng: np.random.Generator, rows: Array, weights: Array | None, capacity: int) -> "Pool":
        """The pool of one piece of data; every weight must be positive."""
        beta = np.ones(len(rows)) if weights is None else np.asarray(weights, np.float64)
        keys = rng.standard_exponential(len(rows)) / beta
        kept = _smallest(keys, capacity)
        return cls(rows[kept], beta[kept], keys[kept], capacity, len(rows))

    @property
    def complete(self) -> bool:
        """Whether no row has been left out so far."""
        return len(self.rows) == self.seen

    def __len__(self) -> int:
        return len(self.rows)

    def __add__(self, other: "Pool") -> "Pool":
        if not isinstance(other, Pool):
            return NotImplemented
        capacity = min(self.capacity, other.capacity)
        keys = np.concatenate([self.keys, other.keys])
        kept = _smallest(keys, capacity)
        rows = np.concatenate([self.rows, other.rows])[kept]
        weights = np.concatenate([self.weights, other.weights])[kept]
        return Pool(rows, weights, keys[kept], capacity, self.seen + other.seen)

    def distinct(self) -> tuple[Array, Array]:
        """The distinct rows, sorted, with their weights summed.

        A pool that holds every row keeps their weights; a sampled one has used them already to decide who is in it.
        """
        return distinct_rows(self.rows, self.weights if self.complete else np.ones(len(self)))


def distinct_rows(rows: Array, weights: Array) -> tuple[Array, Array]:
    """The distinct rows in sorted order, with summed weights: the same for any order, and for repetition or weights."""
    unique, inverse = np.unique(rows, axis=0, return_inverse=True)
    return unique, np.bincount(inverse.ravel(), weights=weights, minlength=len(unique))


def _smallest(keys: Array, capacity: int) -> Array:
    return np.argsort(keys, kind="stable")[:capacity]
