"""`Sketch`: the characteristic function of a data set at m frequencies, with bounds and moments."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ckm._core.cells import Cells, Design
from ckm._core.combining import agreed_columns, joint_cells, joint_pool, refuse_releases
from ckm._core.frequencies import Frequencies
from ckm._core.moments import SecondMoment
from ckm._core.pool import Pool
from ckm._core.release import Release
from ckm._core.summarising import summarise_sketch
from ckm._core.tally import UNIT, Tally
from ckm._messages import Argument
from ckm._util.arrays import ComplexArray, FloatArray, Frozen, read_only
from ckm._util.checks import EUCLIDEAN
from ckm._util.random import RandomState
from ckm._util.summary import Shown, Summary
from ckm.errors import DataError, ParameterError


@dataclass(frozen=True, eq=False, repr=False)
class Sketch(Frozen, Shown):
    """A summary of a data set, of a size that does not depend on the number of rows.

    A sketch holds the characteristic function of the data at m frequencies, the number of rows,
    and the bounds, mean and covariance of the columns. `ckm.sketch` makes one in a single pass, and
    `ckm.decode` finds clusters from it without the data.

    Sketches with the same frequencies can be added: ``a + b`` is the sketch of the rows of both.
    They can be subtracted: ``a + b - b`` has the same sums as ``a``. Two sketches are equal if
    their frequencies, columns, sums, weight, count and bounds are bit-identical; moments and pools
    are not compared. A sketch cannot be modified.

    Parameters
    ----------
    frequencies : Frequencies
        The frequencies at which the characteristic function is sampled.
    tally : Tally
        Sums, counts, bounds and moments.
    columns : tuple of str, optional
        The names of the data's columns.
    pool : Pool, optional
        A random sample of rows, if one was requested.
    cells : Cells, optional
        Counts, sums and squared lengths of the rows nearest to each of some anchors.
    release : Release, optional
        For a private release (`ckm.release`), its noised sums and its budget: all else follows
        from these and the frequencies.

    See Also
    --------
    ckm.sketch : Sketch data.
    ckm.decode : Find clusters from a sketch.
    ckm.merge : Add up many sketches.
    ckm.load : Read a sketch from a file.

    Examples
    --------
    >>> import numpy as np
    >>> import ckm
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> monday = ckm.sketch(X[:400], sketch_size=50, random_state=0)
    >>> tuesday = ckm.sketch(X[400:], like=monday)
    >>> (monday + tuesday).count
    1000
    >>> monday + tuesday == ckm.sketch(X, like=monday)
    True
    """

    frequencies: Frequencies
    tally: Tally
    columns: tuple[str, ...] | None = None
    pool: Pool | None = None
    cells: Cells | None = None
    release: Release | None = None

    def __post_init__(self) -> None:
        self.tally.require_capacity()

    @classmethod
    def empty(cls, frequencies: Frequencies, columns: Iterable[str] | None = None) -> "Sketch":
        """Make the sketch of zero rows, which is the identity of ``+``.

        Parameters
        ----------
        frequencies : Frequencies
            The frequencies, see `ckm.draw_frequencies`.
        columns : iterable of str, optional
            The names of the columns.

        Returns
        -------
        Sketch
            The empty sketch. As ``like=`` of `ckm.sketch` it determines the frequencies.

        Examples
        --------
        >>> import ckm
        >>> ckm.Sketch.empty(ckm.draw_frequencies(100, 3)).count
        0
        """
        names = None if columns is None else tuple(columns)
        return cls(frequencies, empty_tally(frequencies), names)

    @cached_property
    def z(self) -> ComplexArray:
        """The sketch proper, complex (m,).

        z_j = sum_l beta_l exp(-i omega_j^T (x_l - origin)) / sum_l beta_l (equation 3).
        """
        self._require_rows("has no z")
        cosines, sines = self.tally.sums.astype(np.float64) * (UNIT / self.weight)
        return read_only(cosines - 1j * sines)

    @property
    def count(self) -> int:
        """The number of rows; rows of weight zero are not counted."""
        return self.tally.count

    @property
    def weight(self) -> float:
        """The total weight of the rows: their number if they are unweighted."""
        return self.tally.weight

    @property
    def effective_size(self) -> float | None:
        """The number of unweighted rows whose mean varies as much as that of these rows.

        (sum of weights)^2 / (sum of squared weights): the number of rows if they are unweighted.
        None if it is not known, as for weighted rows in files of earlier versions.
        """
        return self.tally.effective_size

    @property
    def exact(self) -> bool:
        """Whether the sums are integers: identical for any order, split and merge of the rows."""
        return self.tally.exact

    @property
    def lower(self) -> FloatArray:
        """The smallest value of each column (n,); +inf without rows.

        An outer bound once rows were subtracted. Of rows that are projected, the bounds are those
        of their d projections.
        """
        return self.tally.lower

    @property
    def upper(self) -> FloatArray:
        """The largest value of each column (n,); -inf without rows.

        An outer bound once rows were subtracted. Of rows that are projected, the bounds are those
        of their d projections.
        """
        return self.tally.upper

    @cached_property
    def mean(self) -> FloatArray:
        """The weighted mean of the rows (n,)."""
        self._require_rows("has no mean")
        columns = self.tally.columns
        projection = self.frequencies.projection
        if columns is not None and projection is not None:
            return read_only(projection.absolute(columns.first / self.weight))
        return read_only(self.frequencies.origin + self.tally.first / self.weight)

    @property
    def projected_mean(self) -> FloatArray:
        """The mean in the coordinates of the frequencies: of what rows are projected to (d,)."""
        self._require_rows("has no mean")
        return np.asarray(self.frequencies.origin + self.tally.first / self.weight)

    @cached_property
    def covariance(self) -> FloatArray:
        """The weighted covariance of the rows (n, n).

        Only its diagonal (n,), the variances, if n (n + 1) > m or rows are projected.
        """
        columns = self.tally.columns
        if columns is not None:
            self._require_rows("has no covariance")
            mean = columns.first / self.weight
            return read_only(np.maximum(columns.second / self.weight - mean**2, 0.0))
        return read_only(self.central_moment.values)

    @cached_property
    def central_moment(self) -> SecondMoment:
        """The covariance as a value that is full or diagonal; of the projections of rows, if they
        are projected.
        """
        self._require_rows("has no covariance")
        shift = self.tally.first / self.weight
        moment = (self.tally.second_moment / self.weight).minus_outer(shift)
        return moment.without_negative()

    @property
    def nbytes(self) -> int:
        """The size of the sketch proper in bytes: 16 for each of its m complex numbers, and, if it
        has cells, what they and their anchors take.
        """
        size = 16 * self.frequencies.m
        if self.cells is None:
            return size
        anchors = self.cells.anchors
        width = anchors.n + len(anchors.wide_steps)
        return size + anchors.values.nbytes + 8 * len(anchors) * (width + 2)

    @property
    def design(self) -> Design:
        """The frequencies and the anchors, which ``like=`` passes on."""
        return Design(self.frequencies, None if self.cells is None else self.cells.anchors)

    def without_cells(self) -> "Sketch":
        """Remove the cells.

        Returns
        -------
        Sketch
            The same sketch without cells. A cell of a single row is that row.

        Examples
        --------
        >>> import numpy as np
        >>> import ckm
        >>> s = ckm.sketch(np.eye(4), sketch_size=8, scale=1.0, random_state=0)
        >>> s.without_cells().cells is None
        True
        """
        return self if self.cells is None else replace(self, cells=None)

    def without_pool(self) -> "Sketch":
        """Remove the pool of sampled rows.

        Returns
        -------
        Sketch
            The same sketch without sampled rows. Its bounds are still values of rows.

        Examples
        --------
        >>> import numpy as np
        >>> import ckm
        >>> s = ckm.sketch(np.eye(4), sketch_size=8, scale=1.0, pool=2, random_state=0)
        >>> len(s.pool), s.without_pool().pool
        (2, None)
        """
        return self if self.pool is None else replace(self, pool=None)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the sketch to one self-contained file, which `ckm.load` reads.

        The file holds rows of the data only if the sketch has a pool; but its bounds are values of
        rows, and the difference of two sketches can be a single row. It is written completely or
        not at all.

        Parameters
        ----------
        path : str or path-like
            The file, or its address (`s3://bucket/s.ckm`); an existing one is replaced.

        Raises
        ------
        ckm.errors.OutputError
            The file cannot be written.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> import ckm
        >>> s = ckm.sketch(np.eye(3), sketch_size=8, scale=1.0, random_state=0)
        >>> s.save(os.path.join(tempfile.mkdtemp(), "s.ckm"))
        """
        # Imported late: storage imports this module.
        from ckm._core.storage import save

        save(self, path)

    def plot_marginals(
        self,
        columns: Sequence[str | int] | None = None,
        *,
        data: ArrayLike | None = None,
        path: str | PathLike[str] | None = None,
        random_state: RandomState = None,
    ) -> Any:
        """Draw the distribution of columns, and of every two if there are at most five.

        Parameters
        ----------
        columns : sequence of str or int, optional
            Columns by name or by number; all of them if None, or the twelve of the largest
            variance if there are more.
        data : array (N, n), optional
            Rows to draw histograms of, for comparison.
        path : str or path-like, optional
            Where to save the plot, as PNG.
        random_state : None, int, Generator or RandomState, optional
            The seed of searches. None draws a new seed each time.

        Returns
        -------
        matplotlib.figure.Figure
            The plot. Needs matplotlib (`pip install "compressive-kmeans[plot]"`).

        See Also
        --------
        ckm.marginals : The same as arrays.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> s = ckm.sketch(X, n_clusters=3, random_state=0)
        >>> len(s.plot_marginals(random_state=0).axes)
        4
        """
        # Imported late: the one thing that a sketch asks of the packages above it.
        from ckm._display.plots_marginals import plot_marginals

        return plot_marginals(self, columns, data, path, random_state)

    def summary(self) -> Summary:
        """Tell what is printed of it: what it holds, and a row for each column.

        Returns
        -------
        Summary
            A title, a table and some sentences.
        """
        return summarise_sketch(self)

    def __add__(self, other: "Sketch") -> "Sketch":
        if not isinstance(other, Sketch):
            return NotImplemented
        refuse_releases("added", self, other)
        columns = agreed_columns(self, other)
        pool = joint_pool(self, other)
        cells = joint_cells(self, other, operator.add)
        return Sketch(self.frequencies, self.tally + other.tally, columns, pool, cells)

    def __radd__(self, other: object) -> "Sketch":
        """Let `sum` add sketches: it begins with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: "Sketch") -> "Sketch":
        """Remove rows that were added before; the pool is dropped, and bounds become outer ones."""
        if not isinstance(other, Sketch):
            return NotImplemented
        refuse_releases("subtracted", self, other)
        columns = agreed_columns(self, other)
        rest = (self.tally - other.tally).with_possible_moments(self.frequencies.origin)
        cells = joint_cells(self, other, operator.sub)
        if cells is not None and rest.count == 0:
            cells = Cells.empty(cells.anchors)
        return Sketch(self.frequencies, rest, columns, cells=cells)

    def scaled(self, factor: float) -> "Sketch":
        """Multiply the weights of all rows by a factor.

        ``today + past.scaled(0.99)`` forgets older rows gradually.

        Parameters
        ----------
        factor : float
            Above 0 and at most 1.

        Returns
        -------
        Sketch
            The sketch of the reweighted rows. Its sums are float64, its `count` is that share of
            the rows, rounded up, and its bounds are outer bounds. Once the total weight falls
            below 1e-200, the rows are forgotten: the sketch is empty.

        Raises
        ------
        ckm.errors.ParameterError
            The factor is out of range.

        Examples
        --------
        >>> import numpy as np
        >>> import ckm
        >>> s = ckm.sketch(np.eye(4), sketch_size=8, scale=1.0, random_state=0)
        >>> s.scaled(0.5).weight, s.scaled(0.5).count
        (2.0, 2)
        """
        if (
            isinstance(factor, bool)
            or not isinstance(factor, (int, float, np.integer, np.floating))
            or not 0 < factor <= 1
        ):
            raise ParameterError(
                "scaled takes a ",
                Argument("factor"),
                f" above 0 and at most 1; got {factor!r}.",
            )
        refuse_releases("scaled", self)
        tally = self.tally.scaled(float(factor))
        pool = None
        if self.pool is not None:
            is_forgotten = tally.count == 0
            pool = self.pool.emptied() if is_forgotten else self.pool.scaled(float(factor))
        cells = None
        if self.cells is not None:
            is_forgotten = tally.count == 0
            cells = Cells.empty(self.cells.anchors) if is_forgotten else self.cells.scaled(factor)
        return replace(self, tally=tally, pool=pool, cells=cells)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sketch) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        """What equality compares: everything that is exact. Moments and the pool are left out."""
        t = self.tally
        arrays = (t.sums.dtype.kind, t.sums.tobytes(), t.lower.tobytes(), t.upper.tobytes())
        cells = () if self.cells is None else self.cells.identity()
        bounded = () if t.bounded is None else t.bounded.identity()
        released = () if self.release is None else self.release.identity()
        own = (self.frequencies.fingerprint, self.columns, t.weight, t.count)
        return (*own, *arrays, *cells, *bounded, *released)

    def __repr__(self) -> str:
        f = self.frequencies
        pool_size = 0 if self.pool is None else len(self.pool)
        n_cells = 0 if self.cells is None else len(self.cells.anchors)
        n = f"{f.n}" if f.projection is None else f"{f.n_features} projected to {f.n}"
        metric = "" if f.metric == EUCLIDEAN else f"metric={f.metric!r}, "
        return (
            f"Sketch(m={f.m}, n={n}, count={self.count}, weight={self.weight:.12g}, "
            f"exact={self.exact}, distribution={f.distribution!r}, scale={f.scale:.6g}, "
            f"{metric}pool={pool_size}, cells={n_cells}, frequencies={f.fingerprint[:8]})"
        )

    def _require_rows(self, consequence: str) -> None:
        if self.count == 0:
            raise DataError(
                f"A sketch of zero rows {consequence}; add sketches of some rows to it first."
            )


def empty_tally(frequencies: Frequencies) -> Tally:
    """The tally of zero rows for these frequencies."""
    width = None if frequencies.projection is None else frequencies.n_features
    has_bounds = frequencies.bounds is not None
    return Tally.empty(frequencies.m, frequencies.n, width, has_bounds=has_bounds)
