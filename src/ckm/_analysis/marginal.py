"""`ckm.marginals(sketch)`: the distribution of single columns, and of two together, without the
data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ckm._analysis.explanation import usual_clusters
from ckm._core.preparation import prepared_names
from ckm._core.sketch import Sketch
from ckm._decoding.coordinates import Coordinates
from ckm._decoding.problem import Problem
from ckm._decoding.recovery import recover
from ckm._decoding.requirements import require_decodable
from ckm._decoding.row_measure import RowMeasure, cumulative, log_density
from ckm._decoding.sample import SampledRows
from ckm._messages import Argument
from ckm._util.arrays import FloatArray, Frozen, read_only
from ckm._util.checks import check_whole_number
from ckm._util.parallel import one_library_thread, thread_count
from ckm._util.random import RandomState, seed_of, stream
from ckm._util.summary import Shown, Summary
from ckm.errors import ParameterError

# Points of a grid; along each of two columns.
GRID_POINTS = 256
PAIR_POINTS = 96
# Standard deviations that a grid may reach beyond the mean: heavy tails would take it all.
GRID_REACH = 5.0
# Columns of a table and of a plot, if none are named.
SHOWN_COLUMNS = 12
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Steps of the bisection that inverts a distribution: to 2^-60 of its range.
_BISECTIONS = 60


@dataclass(frozen=True, eq=False, repr=False)
class Marginals(Frozen, Shown):
    """The distribution of single columns, as `ckm.marginals` returns it.

    Parameters
    ----------
    columns : tuple of str
        The names of the columns; their numbers if they have no names.
    numbers : tuple of int
        Their numbers.
    grid : float64 array (c, g)
        Values of each column.
    density : float64 array (c, g)
        The share of the rows per unit of a column, at these values.
    distribution : RowMeasure
        What all of it is computed from.
    bounds : float64 array (c, 2)
        The smallest and the largest value of each column, or outer bounds of them.

    See Also
    --------
    marginals : Makes them from a sketch.

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
    >>> found = ckm.marginals(ckm.sketch(X, n_clusters=3, random_state=0), random_state=0)
    >>> found.grid.shape, found.density.shape
    ((2, 256), (2, 256))
    """

    columns: tuple[str, ...]
    numbers: tuple[int, ...]
    grid: FloatArray
    density: FloatArray
    distribution: RowMeasure
    bounds: FloatArray

    def __post_init__(self) -> None:
        for name in ("grid", "density", "bounds"):
            object.__setattr__(self, name, read_only(getattr(self, name), np.float64))

    def quantiles(self, shares: ArrayLike = QUANTILES) -> FloatArray:
        """Find the values below which given shares of the rows lie.

        Parameters
        ----------
        shares : array (s,), default=(0.05, 0.25, 0.5, 0.75, 0.95)
            Numbers between 0 and 1.

        Returns
        -------
        float64 array (c, s)
            The quantiles of each column.

        Raises
        ------
        ParameterError
            If a share is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> import ckm
        >>> X = np.random.default_rng(0).normal(size=(5000, 2))
        >>> found = ckm.marginals(ckm.sketch(X, n_clusters=4, random_state=0), random_state=0)
        >>> bool(np.allclose(found.quantiles([0.5]), 0, atol=0.1))
        True
        """
        wanted = np.atleast_1d(np.asarray(shares, np.float64))
        if wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
            raise ParameterError(Argument("shares"), f" must lie between 0 and 1; got {shares!r}.")
        found = np.empty((len(self.numbers), len(wanted)))
        for i, number in enumerate(self.numbers):
            column = self.distribution.along(np.array([number]))
            low, high = np.repeat(self.bounds[i, :, None], len(wanted), axis=1)
            for _ in range(_BISECTIONS):
                middle = low / 2 + high / 2
                is_below = cumulative(column, middle) < wanted
                low = np.where(is_below, middle, low)
                high = np.where(is_below, high, middle)
            found[i] = high
        return found

    def pair(self, first: str | int, second: str | int) -> tuple[FloatArray, FloatArray]:
        """Estimate the density of two columns together.

        Parameters
        ----------
        first, second : str or int
            Two of the columns, by name or by number.

        Returns
        -------
        grid : float64 array (2, g)
            Values of the first and of the second column.
        density : float64 array (g, g)
            The share of the rows per unit of both, at ``(grid[0, i], grid[1, j])``.

        Raises
        ------
        ParameterError
            If there is no such column, or if both are the same.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 3, separation=20, random_state=1).rows
        >>> found = ckm.marginals(ckm.sketch(X, n_clusters=3, random_state=0), random_state=0)
        >>> grid, density = found.pair(0, 2)
        >>> density.shape
        (96, 96)
        """
        places = [_place(name, self.columns, self.numbers) for name in (first, second)]
        if places[0] == places[1]:
            raise ParameterError(f"A pair needs two columns; got {first!r} twice.")
        ends = self.grid[places][:, [0, -1]]
        grid = np.array([np.linspace(low, high, PAIR_POINTS) for low, high in ends])
        x, y = np.meshgrid(*grid, indexing="ij")
        both = self.distribution.along(np.array([self.numbers[i] for i in places]))
        density = np.exp(log_density(both, np.column_stack([x.ravel(), y.ravel()])))
        return grid, density.reshape(PAIR_POINTS, PAIR_POINTS)

    def plot(self, data: Any = None, path: str | PathLike[str] | None = None) -> Any:
        """Draw every column, and every two of them if there are at most five.

        Parameters
        ----------
        data : array (N, n), optional
            Rows to draw histograms of, for comparison.
        path : str or path-like, optional
            Where to save the plot, as PNG.

        Returns
        -------
        matplotlib.figure.Figure
            The plot. Needs matplotlib (`pip install "compressive-kmeans[plot]"`).

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> found = ckm.marginals(ckm.sketch(X, n_clusters=3, random_state=0), random_state=0)
        >>> len(found.plot(X).axes)
        4
        """
        from ckm._display.plots_marginals import draw_marginals

        return draw_marginals(self, data, path)

    def summary(self) -> Summary:
        """Tell what is printed of it: quantiles of every column.

        Returns
        -------
        Summary
            A title, a table and some sentences.
        """
        shown = self.quantiles()
        rows = tuple(
            (name, *(f"{value:.4g}" for value in quantiles))
            for name, quantiles in zip(self.columns, shown, strict=True)
        )
        header = ("column", *(f"{100 * share:.0f} %" for share in QUANTILES))
        return Summary("Quantiles of the columns, from the sketch alone", header, rows)

    def __repr__(self) -> str:
        return f"Marginals(columns={self.columns!r})"


def marginals(
    sketch: Sketch,
    columns: Sequence[str | int] | None = None,
    *,
    n_clusters: int | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Marginals:
    """Estimate the distribution of single columns from a sketch alone.

    Parameters
    ----------
    sketch : Sketch
        The sketch of the data.
    columns : sequence of str or int, optional
        Columns by name or by number; all of them if None, or the twelve of the largest variance if
        there are more.
    n_clusters : int, optional
        How many clusters to allow for. None: as many as the sketch is large enough for, up to 20.
    random_state : None, int, Generator or RandomState, optional
        The seed of searches. None draws a new seed each time.
    n_jobs : int, optional
        The number of threads; None means every core. The result does not depend on it.

    Returns
    -------
    Marginals
        Densities, quantiles and plots of the columns, one by one and in pairs.

    Raises
    ------
    ParameterError
        If there is no such column, or `n_clusters` is not positive.
    DataError
        If the sketch has no rows.

    See Also
    --------
    Solution.sample : Draws rows from the same distribution.

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
    >>> found = ckm.marginals(ckm.sketch(X, n_clusters=3, random_state=0), [0], random_state=0)
    >>> found.columns, found.quantiles([0.1, 0.9]).shape
    (('[0]',), (1, 2))
    """
    require_decodable(sketch, "marginals")
    problem = Problem.of(sketch)
    # One cluster would be one Gaussian.
    K = max(2, usual_clusters(problem))
    if n_clusters is not None:
        K = max(2, check_whole_number(n_clusters, "n_clusters", 1))
    K = min(K, sketch.count)
    rng = stream(seed_of(random_state), "decode")
    rows = SampledRows.of(sketch)
    with one_library_thread():
        found = recover(problem, K, rows, rng, thread_count(n_jobs))
    return _on_grids(
        sketch, RowMeasure.of(sketch, found.gaussians, Coordinates.of_design(sketch)), columns
    )


def _on_grids(
    sketch: Sketch, distribution: RowMeasure, columns: Sequence[str | int] | None
) -> Marginals:
    """Marginals of these columns."""
    n = sketch.frequencies.n_features
    names = sketch.columns or tuple(f"[{i}]" for i in range(n))
    variances = sketch.covariance if sketch.covariance.ndim == 1 else np.diag(sketch.covariance)
    if columns is None:
        widest = np.argsort(-variances, kind="stable")[:SHOWN_COLUMNS]
        numbers = [int(number) for number in np.sort(widest)]
    else:
        numbers = [_place(column, names, tuple(range(n))) for column in columns]
    deviations = np.sqrt(variances[numbers])
    reach = np.maximum(GRID_REACH * deviations, np.finfo(np.float64).tiny)
    ends = np.stack([sketch.mean[numbers] - reach, sketch.mean[numbers] + reach])
    bounds = ends.T
    if sketch.frequencies.projection is None:
        bounds = np.stack([sketch.lower[numbers], sketch.upper[numbers]], axis=1)
        ends = np.stack([np.maximum(ends[0], bounds[:, 0]), np.minimum(ends[1], bounds[:, 1])])
    grid = np.linspace(ends[0], ends[1], GRID_POINTS).T
    density = [
        np.exp(log_density(distribution.along(np.array([number])), values[:, None]))
        for number, values in zip(numbers, grid, strict=True)
    ]
    called = prepared_names(names, sketch.frequencies.preparation)
    shown = tuple(called[number] for number in numbers)
    return Marginals(shown, tuple(numbers), grid, np.array(density), distribution, bounds)


def _place(column: str | int, names: Sequence[str], numbers: Sequence[int]) -> int:
    """The place of a column, given by name or number, among these."""
    if isinstance(column, str) and column in names:
        return list(names).index(column)
    if isinstance(column, (int, np.integer)) and column in numbers:
        return list(numbers).index(int(column))
    listed = ", ".join(names[:SHOWN_COLUMNS]) + (", ..." if len(names) > SHOWN_COLUMNS else "")
    raise ParameterError(f"There is no column {column!r} here; there are {listed}.")
