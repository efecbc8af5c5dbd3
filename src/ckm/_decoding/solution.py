"""What a decoder found: a `Candidate` in the problem's coordinates, a `Solution` for users."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ckm._decoding.diagnosis import Finding, Status
from ckm._kmeans.assign import Centroids
from ckm._util.arrays import FloatArray, Frozen, read_only
from ckm._util.checks import EUCLIDEAN


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
        The unit of each column if columns were standardised. Distances to centroids are then
        measured in these units.
    metric : {"euclidean", "cosine"}, default="euclidean"
        That of the sketch. With "cosine", distances are those of rows divided by their lengths.

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

    @property
    def _labeller(self) -> Centroids:
        return Centroids(self.centroids, self.units, self.columns, self.metric)

    def __repr__(self) -> str:
        K, n = self.centroids.shape
        return (
            f"Solution(n_clusters={K}, n_features={n}, cost={self.cost:.6g}, "
            f"status={self.status.value!r}, decoder={self.decoder!r})"
        )
