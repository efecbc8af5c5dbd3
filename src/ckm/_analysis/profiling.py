"""`ckm.profile(sketch, solution)`: what each cluster is like, from a sketch alone or with the data.

Without the data, rows are drawn from the measure that was recovered from the sketch: the same
number from each of its Gaussians, weighted by their shares. With the data, shares, deviations and
examples are those of its rows.
"""

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckm._analysis.profile import Profile
from ckm._analysis.separation import border_gaps, silhouettes
from ckm._core.preparation import prepared, unprepared
from ckm._core.sketch import Sketch
from ckm._decoding.api import require_decodable
from ckm._decoding.solution import Solution, centroids_of
from ckm._kmeans.assign import Centroids
from ckm._kmeans.search import CpuSearch
from ckm._sources import Source
from ckm._sources.arrays import ArraySource
from ckm._sources.engines.base import PartitionedSource
from ckm._sources.prefetch import read
from ckm._util.arrays import FloatArray, IntArray, LabelArray
from ckm._util.checks import check_whole_number
from ckm._util.parallel import thread_count
from ckm._util.random import stream
from ckm.errors import DataError, MismatchError, ParameterError

# Rows that are drawn from a measure, at most so many numbers, and at least so many per Gaussian.
_DRAWN_ROWS = 2**14
_DRAWN_NUMBERS = 2**22
_LEAST_PER_GAUSSIAN = 8
# A Gaussian that centroids cut is no exact description of its rows: the share of them that may be
# on the other side, in standard deviations of one row. benchmarks.profiles measures the coverage
# of the intervals.
_CUT_ERROR = 0.2
# Standard errors of a 95 % interval.
_INTERVAL = 1.96


@dataclass(frozen=True, eq=False)
class _Measured:
    """What rows say about the clusters that they are nearest to."""

    shares: FloatArray  # (K,)
    share_errors: FloatArray  # (K,), beside chance
    deviations: FloatArray  # (K, n)
    separation: FloatArray  # (K,)
    gaps: FloatArray  # (K,)


def profile(
    sketch: Sketch,
    solution: Solution,
    data: Any = None,
    *,
    n_examples: int = 3,
    n_jobs: int | None = None,
) -> Profile:
    """Describe clusters: their shares, spread, and the columns that set each apart.

    Parameters
    ----------
    sketch : Sketch
        The sketch that was decoded.
    solution : Solution
        What `ckm.decode` found in it.
    data : array, data frame, path or any other data that `ckm.sketch` reads, optional
        The rows. With them, shares and deviations are exact, and the rows nearest to each centroid
        are shown as examples. It takes one pass; rows with missing values are left out.
    n_examples : int, default=3
        The number of rows to show of each cluster.
    n_jobs : int, optional
        The number of threads of that pass; None means every core. The result does not depend on
        it.

    Returns
    -------
    Profile
        A row per cluster, as numbers, as a table and as HTML.

    Raises
    ------
    MismatchError
        If the solution has other columns than the sketch, or the data lacks some.
    ParameterError
        If `solution` is no `Solution`, or the data stays with Dask, Spark or Ray.

    See Also
    --------
    report : Writes it to a page, with plots.

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
    >>> s = ckm.sketch(X, n_clusters=3, random_state=0)
    >>> found = ckm.profile(s, ckm.decode(s, 3, random_state=0), X, n_examples=2)
    >>> found.example_rows.shape
    (3, 2)
    """
    require_decodable(sketch, "profile")
    require_solution(sketch, solution)
    count = check_whole_number(n_examples, "n_examples", 1)
    centroids = centroids_of(solution)
    measured = _measure_drawn(sketch, solution, centroids)
    examples: FloatArray | None = None
    example_rows: IntArray | None = None
    if data is not None:
        rows = _Rows.read(centroids, data, count, thread_count(n_jobs))
        measured = _Measured(
            rows.mass / rows.mass.sum(),
            np.zeros(len(centroids)),
            rows.deviations,
            measured.separation,
            measured.gaps,
        )
        examples = rows.examples
        example_rows = rows.example_rows
    shares = measured.shares
    size = sketch.effective_size or sketch.count
    errors = np.sqrt(shares * (1 - shares) / size + measured.share_errors**2)
    low = np.maximum(shares - _INTERVAL * errors, 0.0)
    high = np.minimum(shares + _INTERVAL * errors, 1.0)
    return Profile(
        columns=column_names(sketch),
        shares=shares,
        share_interval=np.stack([low, high], axis=1),
        centroids=solution.centroids,
        deviations=measured.deviations,
        contrasts=_contrasts(sketch, prepared(solution.centroids, solution.preparation), shares),
        separation=measured.separation,
        gaps=measured.gaps,
        examples=examples,
        example_rows=example_rows,
    )


def require_solution(sketch: Sketch, solution: Solution) -> None:
    """Refuse what is no solution, and one of other columns."""
    if not isinstance(solution, Solution):
        raise ParameterError(
            f"A Solution is needed; got {type(solution).__name__}. Make one with ckm.decode."
        )
    n = sketch.frequencies.n_features
    found = solution.centroids.shape[1]
    if found != n or solution.columns != sketch.columns:
        raise MismatchError(
            f"The solution has the columns {_shown(solution.columns, found)}, and the sketch "
            f"{_shown(sketch.columns, n)}; give the solution that this sketch was decoded to."
        )


def column_names(sketch: Sketch) -> tuple[str, ...]:
    """The names of the columns, or their numbers in brackets."""
    return sketch.columns or tuple(f"[{i}]" for i in range(sketch.frequencies.n_features))


def column_deviations(sketch: Sketch) -> FloatArray:
    """The standard deviation of each column (n,)."""
    covariance = sketch.covariance
    variances = covariance if covariance.ndim == 1 else np.diag(covariance)
    return np.asarray(np.sqrt(np.maximum(variances, 0.0)))


def _shown(columns: tuple[str, ...] | None, n: int) -> str:
    return f"[0] to [{n - 1}]" if columns is None else ", ".join(columns[:5])


def _contrasts(sketch: Sketch, centroids: FloatArray, shares: FloatArray) -> FloatArray:
    """Centroids minus the mean of all other rows, in standard deviations of the columns; all of
    them prepared, as the sketch is.
    """
    if len(shares) == 1:
        return np.zeros(centroids.shape)
    # The mean of the sketch is exact, so that the rest has the mean that remains.
    others = np.maximum(1 - shares, 1e-12)[:, None]
    rest = (sketch.mean - shares[:, None] * centroids) / others
    deviations = column_deviations(sketch)
    return np.divide(
        centroids - rest, deviations, out=np.zeros(centroids.shape), where=deviations > 0
    )


def _measure_drawn(sketch: Sketch, solution: Solution, centroids: Centroids) -> _Measured:
    """What the recovered measure says; nothing but shares if there is none."""
    K, n = centroids.values.shape
    weights = solution.weights
    if solution.distribution is None:
        unknown = np.full(K, np.nan)
        return _Measured(weights, np.zeros(K), np.full((K, n), np.nan), unknown, unknown)
    shares = solution.distribution.gaussians.shares
    q = len(shares)
    most = min(_DRAWN_ROWS, _DRAWN_NUMBERS // n)
    each = max(_LEAST_PER_GAUSSIAN, most // q)
    drawn = solution.distribution.draw_of_each(stream(0, "profile"), each).reshape(-1, n)
    rows = unprepared(drawn, solution.preparation)
    distances = np.asarray(centroids.distances(ArraySource(rows), n_jobs=1))
    labels = np.argmin(distances, axis=1).astype(np.int64)
    mass = np.repeat(shares / each, each)
    owners = np.zeros((q, K))
    np.add.at(owners, (np.repeat(np.arange(q), each), labels), 1 / each)
    # Rounding may leave a share just above one.
    cut = (shares**2) @ np.maximum(owners * (1 - owners), 0.0)
    return _Measured(
        weights,
        _CUT_ERROR * np.sqrt(cut),
        _matched(sketch, solution, _deviations(rows, labels, mass, K)),
        silhouettes(distances, labels, mass),
        border_gaps(_scaled(drawn, centroids), distances, mass, centroids.index.centroids),
    )


def _scaled(rows: FloatArray, centroids: Centroids) -> FloatArray:
    """Rows in the units of distances."""
    return rows if centroids.units is None else np.asarray(rows / centroids.units)


def _matched(sketch: Sketch, solution: Solution, deviations: FloatArray) -> FloatArray:
    """Deviations whose squares add up to the variance within clusters: that of each column, which
    is exact, without what is between the centroids. A cell knows its variance over all columns
    only. Of columns whose logarithms were sketched, the variance is not known.
    """
    weights = solution.weights
    between = weights @ (solution.centroids - sketch.mean) ** 2
    exact = np.maximum(column_deviations(sketch) ** 2 - between, 0.0)
    drawn = weights @ np.nan_to_num(deviations) ** 2
    ratios = np.divide(exact, drawn, out=np.zeros(len(exact)), where=drawn > 0)
    if solution.preparation is not None:
        ratios[list(solution.preparation.logged)] = 1.0
    return np.asarray(deviations * np.sqrt(ratios))


def _deviations(rows: FloatArray, labels: Any, mass: FloatArray, K: int) -> FloatArray:
    """Standard deviations of columns (K, n) within clusters; NaN without rows."""
    found = np.full((K, rows.shape[1]), np.nan)
    for k in range(K):
        mine = labels == k
        total = mass[mine].sum()
        if total > 0:
            own = rows[mine]
            mean = mass[mine] @ own / total
            found[k] = np.sqrt(mass[mine] @ (own - mean) ** 2 / total)
    return found


class _Rows:
    """Sums over the rows of each cluster, and those nearest to its centroid."""

    def __init__(self, K: int, n: int, count: int) -> None:
        self.mass: FloatArray = np.zeros(K)
        self.first: FloatArray = np.zeros((K, n))
        self.second: FloatArray = np.zeros((K, n))
        self.examples: FloatArray = np.full((K, count, n), np.nan)
        self.example_rows: IntArray = np.full((K, count), -1)
        self._squares: FloatArray = np.full((K, count), np.inf)

    @classmethod
    def read(cls, centroids: Centroids, data: Any, count: int, threads: int) -> "_Rows":
        """One pass over the data."""
        source = centroids.open(data)
        _require_local(source)
        K, n = centroids.values.shape
        found = cls(K, n, count)
        units = np.ones(n) if centroids.units is None else centroids.units
        search = CpuSearch(centroids.index, threads, "drop", centroids.metric)
        with closing(read(centroids.measured(source))) as chunks:
            for block, labels, squares in search.blocks(search.split(chunks), source.columns):
                # Relative to their centroid, so that squares lose no digits.
                measured = np.asarray(block.rows, np.float64) * units
                rows = unprepared(measured, centroids.preparation)
                mass = np.ones(len(rows)) if block.weights is None else block.weights
                found._add(rows, labels, squares, mass, block.start, centroids.values)
        if not found.mass.sum() > 0:
            raise DataError("The data has no rows without missing values; check what was read.")
        return found

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations of columns (K, n) within clusters; NaN without rows."""
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self.first / self.mass[:, None]
            variance = self.second / self.mass[:, None] - mean**2
        return np.sqrt(np.maximum(variance, 0.0))

    def _add(
        self,
        rows: FloatArray,
        labels: LabelArray,
        squares: FloatArray,
        mass: FloatArray,
        start: int,
        centroids: FloatArray,
    ) -> None:
        for k in np.unique(labels[labels >= 0]):
            mine = np.flatnonzero(labels == k)
            own = rows[mine] - centroids[k]
            self.mass[k] += mass[mine].sum()
            self.first[k] += mass[mine] @ own
            self.second[k] += mass[mine] @ own**2
            self._keep_nearest(k, rows, mine[np.argsort(squares[mine])], squares, start)

    def _keep_nearest(
        self, k: int, rows: FloatArray, order: Any, squares: FloatArray, start: int
    ) -> None:
        count = self._squares.shape[1]
        some = order[:count]
        all_squares = np.concatenate([self._squares[k], squares[some]])
        kept = np.argsort(all_squares, kind="stable")[:count]
        self.examples[k] = np.concatenate([self.examples[k], rows[some]])[kept]
        self.example_rows[k] = np.concatenate([self.example_rows[k], start + some])[kept]
        self._squares[k] = all_squares[kept]


def _require_local(source: Source) -> None:
    if isinstance(source, PartitionedSource) or source.is_on_gpu:
        raise ParameterError(
            "A profile reads the data on the CPU of this machine; give files, an array or a frame, "
            "or leave the data out."
        )
