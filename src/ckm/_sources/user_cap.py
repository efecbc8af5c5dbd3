"""A cap on the rows of each user, for releases that protect users.

Of each user the first rows count, up to the cap, in the order in which they are read; the others
are left out. One counter per user is kept while rows are read, so that all rows of a user must be
in the same pass: two sketches, each with its own counters, may hold twice as many rows of a user.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ckm._messages import Argument
from ckm._sources.adapters import Adapter
from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._util.arrays import Array, BoolArray, FloatArray
from ckm.errors import DataError, NonFiniteError, ParameterError

_MAX_NUMBER = 2.0**53


class UserCapped(Adapter):
    """The first rows of each user in a source whose last column says whose row it is.

    That column is not among those of this source. `n_rows` is an upper bound. Users are whole
    numbers, below 2**53 so that each is one number in float64.

    Parameters
    ----------
    source : Source
        Rows whose last column is that of `ckm._sources.user_column.UserCap`.
    max_rows : int
        How many rows of a user count.

    Attributes
    ----------
    n_left_out : int
        How many rows the latest pass left out. It depends on the data: it is for its owner.
    """

    def __init__(self, source: Source, max_rows: int) -> None:
        super().__init__(source)
        self.n_features = source.n_features - 1
        self.columns = None if source.columns is None else source.columns[:-1]
        self.user_cap = max_rows
        self._max_rows = max_rows
        self.n_left_out = 0

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        if start != BEGINNING:
            raise ParameterError(
                "Reading cannot continue in the middle, where the rows of each user so far are not "
                "known; leave out ",
                Argument("checkpoint", ...),
                " or ",
                Argument("max_rows_per_user", ...),
                ".",
            )
        self.n_left_out = 0
        counts: dict[float, int] = {}
        for chunk in self.inside.chunks():
            kept = _first_rows(self._users(chunk), counts, self._max_rows)
            self.n_left_out += len(kept) - int(kept.sum())
            chunk = chunk._replace(rows=_contiguous(chunk.rows[:, :-1]))
            yield chunk if kept.all() else chunk.where(kept)

    def sample_rows(
        self, size: int, rng: np.random.Generator, weights: FloatArray | None = None
    ) -> tuple[Any, FloatArray]:
        """Draw rows of the source inside, whoever they are of."""
        rows, beta = self.inside.sample_rows(size, rng, weights)
        return rows[:, :-1], beta

    def _users(self, chunk: Chunk) -> FloatArray:
        users: FloatArray = np.asarray(chunk.rows[:, -1], np.float64)
        missing = np.isnan(users)
        if missing.any():
            row = int(np.argmax(missing))
            error = NonFiniteError(0, self.n_features, np.nan)
            raise chunk.locate_error(error, row, self.inside.columns)
        if not ((np.abs(users) < _MAX_NUMBER) & (users == np.rint(users))).all():
            raise DataError(
                "Users are whole numbers below 2**53, beyond which float64 cannot tell them apart, "
                "or text; the column of ",
                Argument("user_column", ...),
                " holds others: convert it to text.",
            )
        return users


def _contiguous(rows: Array) -> Array:
    """Rows in order of rows or of columns, as kernels take them; a copy only where needed."""
    is_contiguous = rows.flags.c_contiguous or rows.flags.f_contiguous
    return rows if is_contiguous else np.ascontiguousarray(rows)


def _first_rows(users: FloatArray, counts: dict[float, int], cap: int) -> BoolArray:
    """Which rows are among the first `cap` of their user; `counts` has the rows before, and
    afterwards these too.
    """
    found, numbers, sizes = np.unique(users, return_inverse=True, return_counts=True)
    before: Array = np.array([counts.get(user, 0) for user in found.tolist()], np.int64)
    # The rank of each row among those of its user: rows sorted by user stay in order.
    order = np.argsort(numbers, kind="stable")
    first = np.cumsum(sizes) - sizes
    ranks = np.empty(len(users), np.int64)
    ranks[order] = np.arange(len(users)) - np.repeat(first, sizes)
    counts.update(zip(found.tolist(), np.minimum(before + sizes, cap).tolist(), strict=True))
    return np.asarray(before[numbers] + ranks < cap)
