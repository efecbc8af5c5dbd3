"""What a decoder found: a `Candidate` in the problem's coordinates, a `Solution` for users."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ckm._core.preparation import Preparation, prepared, unprepared
from ckm._decoding.diagnosis import Finding, Status
from ckm._decoding.row_measure import RowMeasure
from ckm._kmeans.assign import Centroids
from ckm._messages import Argument
from ckm._util.arrays import FloatArray, Frozen, read_only
from ckm._util.checks import EUCLIDEAN, check_whole_number
from ckm._util.random import RandomState, seed_of, stream
from ckm.errors import DataError, ParameterError


@dataclass(frozen=True, eq=False)
class Solution(Frozen):
    """Centroids and weights decoded from a sketch, as `ckm.decode` returns them.

    Parameters
    ----------
    centroids : float64 array (K, n)
        The centroids, in the data's own coordinates.
    weights : float64 array (K,)
        The share of each cluster. They sum to one (equation 2).
    raw_weights : float64 array (K,)
        The weights as fitted, before they were made to sum to one.
    cost : float
        |z - A p|^2 of the recovered measure p (equation 4), by which runs are ranked. For "clompr"
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

        One of "ok", "small-sketch", "stale-cells", "other-spread", "unexplained", "uncertain",
        "far-out", "merged" and "starved"; a `Status` compares equal to these strings.
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
