"""`Sketch`: a data set's characteristic function at m frequencies, with what rides along. A frozen
value that adds.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ckm._core.frequencies import Frequencies
from ckm._core.moments import SecondMoment
from ckm._core.pool import Pool
from ckm._core.tally import UNIT, Tally
from ckm._util.arrays import Array, Frozen, read_only
from ckm.errors import DataError, MismatchError, ParameterError


@dataclass(frozen=True, eq=False)
class Sketch(Frozen):
    """What one pass over the data leaves behind; its size does not depend on the number of rows.

    Sketches of different rows with the same frequencies add up to the sketch of all the rows: `a +
    b`, or `ckm.merge`. `a + b - b` has the sums of `a`.

    Parameters
    ----------
    frequencies : Frequencies
        Where the characteristic function is sampled.
    tally : Tally
        The sums, counts, bounds and moments.
    columns : tuple of str, optional
        The data's column names.
    pool : Pool, optional
        A sample of rows, only when it was asked for.

    Examples
    --------
    >>> import ckm, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> monday = ckm.sketch(X[:400], sketch_size=50, random_state=0)
    >>> tuesday = ckm.sketch(X[400:], like=monday)
    >>> (monday + tuesday).count
    1000
    """

    frequencies: Frequencies
    tally: Tally
    columns: tuple[str, ...] | None = None
    pool: Pool | None = None

    @classmethod
    def empty(cls, frequencies: Frequencies, columns: Iterable[str] | None = None) -> "Sketch":
        """The sketch of no rows: the identity of `+`."""
        names = None if columns is None else tuple(columns)
        return cls(frequencies, Tally.empty(frequencies.m, frequencies.n), names)

    @cached_property
    def z(self) -> Array:
        """The normalised sketch, m complex numbers: z_j = sum_l beta_l exp(-i omega_j^T (x_l -
        origin)) / sum_l beta_l.
        """
        self._require_rows("has no z")
        cosines, sines = self.tally.sums.astype(np.float64) * (UNIT / self.weight)
        return read_only(cosines - 1j * sines)

    @property
    def count(self) -> int:
        """The number of rows (rows of weight zero are not counted)."""
        return self.tally.count

    @property
    def weight(self) -> float:
        """The total weight: the number of rows when they were unweighted."""
        return self.tally.weight

    @property
    def exact(self) -> bool:
        """Whether the sums are exact integers: the same bits for any order, split and merge of the
        rows.
        """
        return self.tally.exact

    @property
    def lower(self) -> Array:
        """Smallest value of each column (+inf without rows); an outer bound once rows were
        subtracted.
        """
        return self.tally.lower

    @property
    def upper(self) -> Array:
        """Largest value of each column (-inf without rows); an outer bound once rows were
        subtracted.
        """
        return self.tally.upper

    @cached_property
    def mean(self) -> Array:
        """The weighted mean of the rows (n,)."""
        self._require_rows("has no mean")
        return read_only(self.frequencies.origin + self.tally.first / self.weight)

    @cached_property
    def covariance(self) -> Array:
        """The weighted covariance: (n, n), or its diagonal (n,) where n is large against m."""
        return read_only(self.central_moment.values)

    @cached_property
    def central_moment(self) -> SecondMoment:
        """The weighted covariance as a value that is full or diagonal."""
        self._require_rows("has no covariance")
        shift = self.tally.first / self.weight
        return (self.tally.second_moment / self.weight).minus_outer(shift)

    @property
    def nbytes(self) -> int:
        """The size of the sketch proper: m complex numbers of 16 bytes."""
        return 16 * self.frequencies.m

    def without_pool(self) -> "Sketch":
        """The same sketch, holding no rows."""
        return self if self.pool is None else replace(self, pool=None)

    def save(self, path: str | Path) -> None:
        """Write the sketch to one self-contained file, see `ckm.load`. Rows are written only if it
        has a pool.
        """
        from ckm._core.storage import save  # storage knows sketches, not the other way round

        save(self, path)

    def __add__(self, other: "Sketch") -> "Sketch":
        if not isinstance(other, Sketch):
            return NotImplemented
        columns = self._agreed_columns(other)
        return Sketch(self.frequencies, self.tally + other.tally, columns, self._joint_pool(other))

    def __sub__(self, other: "Sketch") -> "Sketch":
        """Forget rows that were added before. The pool is dropped, and bounds become outer bounds."""
        if not isinstance(other, Sketch):
            return NotImplemented
        columns = self._agreed_columns(other)
        return Sketch(self.frequencies, self.tally - other.tally, columns)

    def scaled(self, factor: float) -> "Sketch":
        """The same rows with their weights times `factor`, above 0 and at most 1: `today +
        past.scaled(0.99)` forgets bit by bit.

        The sums are float64 from then on, `count` is the share of rows that is left (rounded up),
        and bounds are outer bounds: they never shrink.

        >>> import ckm, numpy as np
        >>> s = ckm.sketch(np.eye(4), sketch_size=8, scale=1.0, random_state=0)
        >>> s.scaled(0.5).weight, s.scaled(0.5).count
        (2.0, 2)
        """
        if (
            isinstance(factor, bool)
            or not isinstance(factor, (int, float, np.integer, np.floating))
            or not 0 < factor <= 1
        ):
            raise ParameterError(f"scaled takes a factor above 0 and at most 1; got {factor!r}.")
        pool = None if self.pool is None else self.pool.scaled(float(factor))
        return replace(self, tally=self.tally.scaled(float(factor)), pool=pool)

    def __eq__(self, other: object) -> bool:
        """Same frequencies, sums, weight, count and bounds, bit for bit. Moments and the pool are
        left out.
        """
        return isinstance(other, Sketch) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        t = self.tally
        arrays = (t.sums.dtype.kind, t.sums.tobytes(), t.lower.tobytes(), t.upper.tobytes())
        return (self.frequencies.fingerprint, self.columns, t.weight, t.count, *arrays)

    def __repr__(self) -> str:
        f = self.frequencies
        return (
            f"Sketch(m={f.m}, n={f.n}, count={self.count}, weight={self.weight:.12g}, exact={self.exact}, "
            f"distribution={f.distribution!r}, scale={f.scale:.6g}, pool={0 if self.pool is None else len(self.pool)}, "
            f"frequencies={f.fingerprint[:8]})"
        )

    def _require_rows(self, consequence: str) -> None:
        if self.count == 0:
            raise DataError(
                f"A sketch of zero rows {consequence}; add sketches of some rows to it first."
            )

    def _joint_pool(self, other: "Sketch") -> Pool | None:
        """Both pools together: a sample of some of the rows is not a sample of all, but no rows
        need no sample.
        """
        if self.pool is not None and other.pool is not None:
            return self.pool + other.pool
        return self.pool if other.count == 0 else other.pool if self.count == 0 else None

    def _agreed_columns(self, other: "Sketch") -> tuple[str, ...] | None:
        mine, theirs = self.frequencies.fingerprint, other.frequencies.fingerprint
        if mine != theirs:
            raise MismatchError(
                f"These sketches use different frequencies ({mine[:8]}... and {theirs[:8]}...: {_differences(self, other)}) "
                f"and cannot be combined; sketch both with like=first."
            )
        if self.columns is not None and other.columns is not None and self.columns != other.columns:
            raise MismatchError(
                f"These sketches have different columns ({', '.join(self.columns)} and {', '.join(other.columns)}) "
                f"and cannot be combined; sketch both with the same columns= in the same order."
            )
        return self.columns if self.columns is not None else other.columns


def _differences(a: Sketch, b: Sketch) -> str:
    """What sets the frequencies of two sketches apart, in words."""
    f, g = a.frequencies, b.frequencies
    if a.columns is not None and b.columns is not None and a.columns != b.columns:
        return f"columns {', '.join(a.columns)} and {', '.join(b.columns)}"
    if f.n != g.n:
        return f"{f.n} and {g.n} columns"
    if f.m != g.m:
        return f"{f.m} and {g.m} of them"
    if f.distribution != g.distribution:
        return f"{f.distribution} and {g.distribution}"
    if (f.units is None) != (g.units is None):
        return "columns of one are standardised, those of the other as they were"
    if f.seed != g.seed:
        return f"seeds {f.seed} and {g.seed}"
    return f"each was drawn for its own rows, at the scales {f.scale:.6g} and {g.scale:.6g}"


def merge(sketches: Iterable[Sketch]) -> Sketch:
    """The sketch of all the rows behind `sketches`, which must share their frequencies: the same as
    adding them up.

    >>> import ckm, numpy as np
    >>> a = ckm.sketch(np.eye(3), sketch_size=8, scale=1.0, random_state=0)
    >>> ckm.merge([a, a, a]).count
    9
    """
    if isinstance(sketches, Sketch):
        raise ParameterError(
            "merge takes a list of sketches; got one. Give it with others: ckm.merge([a, b])."
        )
    parts = list(sketches)
    if not parts:
        raise DataError("There is nothing to merge; give at least one sketch.")
    for part in parts:
        if not isinstance(part, Sketch):
            raise ParameterError(
                f"merge takes sketches; got {type(part).__name__} ({str(part)[:60]!r}); ckm.load reads one from a file."
            )
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
