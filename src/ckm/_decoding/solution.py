"""What a decoder found: a `Candidate` in the problem's coordinates, a `Solution` for users."""

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ckm._core.preparation import Preparation, prepared, unprepared
from ckm._decoding.movement import seed_movement
from ckm._decoding.row_measure import RowMeasure
from ckm._decoding.status import Finding, Status
from ckm._kmeans.assign import Centroids
from ckm._messages import Argument
from ckm._util.arrays import FloatArray, Frozen, read_only
from ckm._util.checks import EUCLIDEAN, check_whole_number
from ckm._util.random import RandomState, seed_of, stream
from ckm._util.summary import Shown, Summary, missing_plots
from ckm._util.tabular import check_backend, to_frame
from ckm.errors import DataError, ParameterError

# Columns of a table that is printed.
_SHOWN_COLUMNS = 40


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Frozen, Shown):
    """Centroids and weights decoded from a sketch, as `ckm.decode` returns them.

    Parameters
    ----------
    centroids : float64 array (K, n)
        The centroids, in the data's own coordinates. They are in descending order of their weights,
        those of equal weight by their coordinates, or numbered as earlier ones (`match` and `init`
        of `ckm.decode`).
    weights : float64 array (K,)
        The share of each cluster. They sum to one (equation 2).
    raw_weights : float64 array (K,)
        The weights as fitted, before they were made to sum to one.
    cost : float
        ‖z - A p‖^2 of the recovered measure p (equation 4), by which runs are ranked. For "clompr"
        p is the centroids with their raw weights; for "density" it is a smoother measure that the
        centroids were placed on, without the rows of a pool.
    noise_floor : float
        The expected cost of the true distribution of the rows. A cost near it leaves nothing to
        explain.
    findings : tuple of Finding
        What may be wrong, each a status and a sentence; empty if nothing was found.
    columns : tuple of str or None
        The names of the data's columns, if it had any.
    decoder : str
        The decoder that was used, "density" or "clompr".
    units : float64 array (n,), optional
        The unit of each column if columns were standardised: its standard deviation over all rows
        of the sketch. Distances to centroids are then measured in these units.
    metric : {"euclidean", "cosine"}, default="euclidean"
        That of the sketch. With "cosine", distances are those of rows divided by their lengths.
    distribution : RowMeasure, optional
        Where the rows lie, which `sample` and `density` use; None for "clompr", which recovers
        points only.
    preparation : Preparation, optional
        What was done to columns before they were sketched, such as logarithms. Centroids are in the
        columns of the data; distances are measured between prepared rows.

    Attributes
    ----------
    unexplained : float
        cost / noise_floor.
    status : Status
        The kind of the first finding, or "ok".
    message : str
        The findings in sentences.

    See Also
    --------
    decode : Decodes a sketch.

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
    >>> solution = ckm.decode(ckm.sketch(X, n_clusters=3, random_state=0), 3, random_state=0)
    >>> solution.centroids.shape, str(solution.status)
    ((3, 2), 'ok')
    """

    centroids: FloatArray
    weights: FloatArray
    raw_weights: FloatArray
    cost: float
    noise_floor: float
    findings: tuple[Finding, ...]
    columns: tuple[str, ...] | None
    decoder: str
    units: FloatArray | None = None
    metric: str = EUCLIDEAN
    distribution: RowMeasure | None = None
    preparation: Preparation | None = None

    def __post_init__(self) -> None:
        for name in ("centroids", "weights", "raw_weights"):
            object.__setattr__(self, name, read_only(getattr(self, name), np.float64))

    @property
    def unexplained(self) -> float:
        """The residual relative to the noise: cost / noise_floor.

        Up to about one, nothing is left to explain. Where it is far above, the data is more
        intricate than the measure that was found, or (for "clompr") its clusters have width.
        """
        if self.noise_floor > 0:
            return self.cost / self.noise_floor
        return float(self.cost > 0)

    @property
    def status(self) -> Status:
        """The kind of the first finding, or "ok" if there is none.

        One of "ok", "small-sketch", "stale-cells", "other-axes", "other-spread", "unexplained",
        "uncertain", "far-out", "unresolved-columns", "merged" and "starved"; a `Status` compares
        equal to these strings.
        """
        return self.findings[0].status if self.findings else Status.OK

    @property
    def message(self) -> str:
        """What was found, in sentences."""
        if self.findings:
            return " ".join(finding.sentence for finding in self.findings)
        K = len(self.weights)
        if K == 1 and self.decoder == "density":
            return "Found 1 centroid, the mean of the rows."
        ratio = f"{self.unexplained:.2g}"
        return f"Found {K} centroids; the residual is {ratio} times the noise floor."

    def predict(self, data: Any, *, nan: str = "error", n_jobs: int | None = None) -> Any:
        """Find the nearest centroid of each row.

        Parameters
        ----------
        data : array, data frame, path or any other data that `ckm.sketch` reads
            Rows with the columns of the sketched data. If these had names, columns are found by
            name; other columns are ignored.
        nan : {"error", "drop"}, default="error"
            What to do with rows that have missing values: raise an error, or label them -1, so that
            labels keep the places of the rows.
        n_jobs : int, optional
            The number of threads; None means every core. The result does not depend on it.

        Returns
        -------
        int32 array (N,)
            The number of the nearest centroid of each row, from 0. Labels of rows on a GPU are a
            tensor on that GPU; those of a Dask, Spark or Ray collection are such a collection.

        Raises
        ------
        NonFiniteError
            If a value is missing or infinite, with `nan="error"`.
        MismatchError
            If the data has other columns.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> solution = ckm.decode(ckm.sketch(X, n_clusters=3, random_state=0), 3, random_state=0)
        >>> solution.predict(solution.centroids)
        array([0, 1, 2], dtype=int32)
        """
        centroids = self._labeller
        return centroids.label(centroids.open(data), nan=nan, n_jobs=n_jobs)

    def score(self, data: Any, *, nan: str = "error", n_jobs: int | None = None) -> float:
        """Minus the SSE: the sum of squared distances to the nearest centroid (equation 1).

        Parameters
        ----------
        data : array, data frame, path or any other data that `ckm.sketch` reads
            Rows with the columns of the sketched data.
        nan : {"error", "drop"}, default="error"
            What to do with rows that have missing values: raise an error, or leave them out.
        n_jobs : int, optional
            The number of threads; None means every core. The result does not depend on it.

        Returns
        -------
        float
            -SSE, in `units` if columns were standardised, of unit rows if `metric` is "cosine".
            Larger is better.

        Raises
        ------
        MismatchError
            If the data does not have the columns of the solution.
        NonFiniteError
            If a value is infinite, or missing with `nan="error"`.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> sketch = ckm.sketch(X, n_clusters=3, random_state=0)
        >>> few, many = (ckm.decode(sketch, K, random_state=0) for K in (2, 3))
        >>> many.score(X) > few.score(X)
        True
        """
        centroids = self._labeller
        return -centroids.sse(centroids.open(data), nan=nan, n_jobs=n_jobs)

    def sample(self, n_samples: int = 1, *, random_state: RandomState = None) -> FloatArray:
        """Draw rows from the distribution that was recovered from the sketch.

        They resemble the rows of the data as far as the sketch tells: clusters, shares, spread and
        correlation between clusters, not the details within a cell or a Gaussian. Of rows that
        were projected, what varies across the axes is noise of the right variance. With
        `metric="cosine"`, they resemble the rows divided by their lengths.

        Parameters
        ----------
        n_samples : int, default=1
            The number of rows.
        random_state : None, int, Generator or RandomState, optional
            The seed. None draws other rows each time.

        Returns
        -------
        float64 array (n_samples, n)
            The rows.

        Raises
        ------
        ParameterError
            If `n_samples` is not positive, or the decoder was "clompr".

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> solution = ckm.decode(ckm.sketch(X, n_clusters=3, random_state=0), 3, random_state=0)
        >>> solution.sample(5, random_state=0).shape
        (5, 2)
        """
        count = check_whole_number(n_samples, "n_samples", 1)
        drawn = self._require_distribution().draw(stream(seed_of(random_state), "sample"), count)
        return unprepared(drawn, self.preparation)

    def density(self, points: ArrayLike, *, log: bool = False) -> FloatArray:
        """Estimate the density of the rows at given points.

        Parameters
        ----------
        points : array (p, n)
            Points in the columns of the data.
        log : bool, default=False
            Whether to return logarithms, which do not vanish where there are many columns.

        Returns
        -------
        float64 array (p,)
            The share of the rows per unit of volume. Of rows that were projected, that of their
            projections.

        Raises
        ------
        ParameterError
            If the decoder was "clompr".
        DataError
            If the points are not finite or do not have the columns of the solution.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> solution = ckm.decode(ckm.sketch(X, n_clusters=3, random_state=0), 3, random_state=0)
        >>> inside, outside = solution.density([solution.centroids[0], [1e3, 1e3]])
        >>> bool(inside > outside)
        True
        """
        distribution = self._require_distribution()
        n = self.centroids.shape[1]
        x = np.asarray(points, np.float64)
        if x.ndim != 2 or x.shape[1] != n or not np.isfinite(x).all():
            raise DataError(
                f"density takes finite points of {n} columns, as an array (p, {n}); got shape "
                f"{x.shape}."
            )
        found = distribution.log_density(prepared(x, self.preparation))
        if self.preparation is not None:
            found = found + self.preparation.log_slope(x)
        return found if log else np.exp(found)

    def seed_movement(self, n_searches: int = 4, *, random_state: RandomState = 0) -> FloatArray:
        """Estimate how far each centroid moves if data is sketched and decoded with another seed.

        On rows drawn from the recovered distribution, k-means from the centroids is compared with
        searches that start anew: where these are as good and end elsewhere, another seed may end
        there too. Near zero where the data has as many clusters as were asked for; as large as the
        distance between centroids where many solutions are equally good. Movements below about a
        hundredth of the width of a cluster, which all seeds have, are not seen.

        Parameters
        ----------
        n_searches : int, default=4
            The number of searches, each on rows of its own.
        random_state : None, int, Generator or RandomState, default=0
            The seed of the rows and the searches.

        Returns
        -------
        float64 array (K,)
            The root mean square distance, in `units` if columns were standardised, and along the
            axes if rows were projected.

        Raises
        ------
        ParameterError
            If `n_searches` is not positive, or the decoder was "clompr".

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> sketch = ckm.sketch(X, n_clusters=3, random_state=0)
        >>> three, four = (ckm.decode(sketch, K, random_state=0) for K in (3, 4))
        >>> bool(three.seed_movement().max() < 0.1 < four.seed_movement().max())
        True
        """
        searches = check_whole_number(n_searches, "n_searches", 1)
        distribution = self._require_distribution()
        projection = distribution.projection
        gaussians = distribution.gaussians
        C = self.centroids if projection is None else projection.reduce(self.centroids)
        if projection is None and self.units is not None:
            C = C / self.units
            gaussians = gaussians.divided(self.units)
        return seed_movement(gaussians, C, searches, stream(seed_of(random_state), "movement"))

    def to_frame(self, backend: str | None = None) -> Any:
        """Make a data frame with a row for each cluster.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            The kind of frame. None takes the first of these that is installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            Its columns are cluster, weight and those of the centroids.

        Raises
        ------
        ParameterError
            If there is no such kind of frame, or a column of the data is called "cluster" or
            "weight".
        MissingPackageError
            If its package is not installed.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> solution = ckm.decode(ckm.sketch(X, n_clusters=3, random_state=0), 3, random_state=0)
        >>> solution.to_frame("pyarrow").column_names
        ['cluster', 'weight', '[0]', '[1]']
        """
        names = self._names
        taken = {"cluster", "weight"} & set(names)
        if taken:
            raise ParameterError(
                f"The data has a column {taken.pop()!r}, which a frame of clusters has too; take "
                "the arrays centroids and weights instead."
            )
        values = {"cluster": np.arange(len(self.weights)), "weight": self.weights}
        columns = dict(zip(names, self.centroids.T, strict=True))
        return to_frame({**values, **columns}, check_backend(backend))

    def plot(self, path: str | PathLike[str] | None = None, *, data: Any = None) -> Any:
        """Draw the clusters along the two principal axes of their distribution.

        Parameters
        ----------
        path : str or path-like, optional
            Where to save the plot, as PNG.
        data : array (N, n), optional
            Rows to draw, of which some thousands are shown. None draws rows from the distribution
            that was recovered from the sketch.

        Returns
        -------
        matplotlib.figure.Figure
            The plot.

        Raises
        ------
        MissingPackageError
            If matplotlib is not installed.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> solution = ckm.decode(ckm.sketch(X, n_clusters=3, random_state=0), 3, random_state=0)
        >>> figure = solution.plot()  # doctest: +SKIP
        """
        try:
            from ckm._display.plots_solution import draw_solution
        except ModuleNotFoundError as error:
            raise missing_plots(error) from None
        return draw_solution(self, data, path)

    def summary(self) -> Summary:
        """Tell what is printed of it: a row for each cluster.

        Returns
        -------
        Summary
            A title, a table and some sentences.
        """
        K, n = self.centroids.shape
        rows = tuple(
            (f"{k}", f"{weight:.4f}", *(f"{x:.4g}" for x in centroid[:_SHOWN_COLUMNS]))
            for k, (weight, centroid) in enumerate(zip(self.weights, self.centroids, strict=True))
        )
        left = f" ({_SHOWN_COLUMNS} of {n} columns are shown)" if n > _SHOWN_COLUMNS else ""
        title = f"{K} centroid{'s' * (K > 1)} in {n} column{'s' * (n > 1)}{left}"
        header = ("cluster", "weight", *self._names[:_SHOWN_COLUMNS])
        return Summary(title, header, rows, (self.message,))

    @property
    def _names(self) -> tuple[str, ...]:
        """The names of the columns, or their numbers in brackets."""
        return self.columns or tuple(f"[{i}]" for i in range(self.centroids.shape[1]))

    def _require_distribution(self) -> RowMeasure:
        if self.distribution is None:
            raise ParameterError(
                "This solution has no distribution to draw from: its ",
                Argument("decoder", self.decoder),
                ' recovers points only; decode with "density".',
            )
        return self.distribution

    @property
    def _labeller(self) -> Centroids:
        return Centroids(self.centroids, self.units, self.columns, self.metric, self.preparation)

    def __repr__(self) -> str:
        K, n = self.centroids.shape
        return (
            f"Solution(n_clusters={K}, n_features={n}, cost={self.cost:.6g}, "
            f"status={self.status.value!r}, decoder={self.decoder!r})"
        )


def centroids_of(solution: Solution) -> Centroids:
    """The centroids as what labels rows and measures distances as the solution does."""
    return solution._labeller
