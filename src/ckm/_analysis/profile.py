"""`Profile`: what each cluster is like, as a value that prints itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckm._util.arrays import FloatArray, Frozen, IntArray, read_only
from ckm._util.summary import Shown, Summary
from ckm._util.tabular import check_backend, to_frame

# Columns that a table names for each cluster, and standard deviations from which on a column sets
# a cluster apart.
SHOWN_TRAITS = 3
MIN_CONTRAST = 0.5


@dataclass(frozen=True, eq=False, repr=False)
class Profile(Frozen, Shown):
    """What each cluster is like, as `ckm.profile` returns it.

    ``print`` shows it as a table, a notebook as HTML.

    Parameters
    ----------
    columns : tuple of str
        The names of the columns; their numbers in brackets if they have no names.
    shares : float64 array (K,)
        The share of the rows of each cluster.
    share_interval : float64 array (K, 2)
        A 95 % interval for it, which allows for chance and for what the sketch leaves open.
    centroids : float64 array (K, n)
        The centroids, in the data's units.
    deviations : float64 array (K, n)
        The standard deviation of each column within each cluster; NaN where it is not known.
    contrasts : float64 array (K, n)
        The centroid minus the mean of all other rows, in standard deviations of the whole column:
        columns with large ones set the cluster apart. Zero for one cluster alone. Of columns that
        were sketched as logarithms, these are the contrasts of the logarithms.
    separation : float64 array (K,)
        The simplified silhouette of each cluster, from 0 to 1: the mean over its rows of 1 - a / b,
        with a and b their distances to the nearest and to the second nearest centroid. NaN where
        it is not known.
    gaps : float64 array (K,)
        How empty the fullest border of each cluster is, from 0 (rows are as dense halfway to
        another centroid as around the two: slices of one cloud) to 1 (no rows there). NaN where it
        is not known.
    examples : float64 array (K, e, n) or None
        The rows nearest to each centroid, nearest first, if the data was given; NaN where a cluster
        has fewer.
    example_rows : int array (K, e) or None
        Their numbers in the data, from 0; -1 where a cluster has fewer.

    Attributes
    ----------
    overall_separation : float
        The mean of `separation` over all rows.
    overall_gap : float
        The mean of `gaps` over all rows.

    See Also
    --------
    profile : Makes it from a sketch and a solution.

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
    >>> s = ckm.sketch(X, n_clusters=3, random_state=0)
    >>> found = ckm.profile(s, ckm.decode(s, 3, random_state=0))
    >>> found.shares.shape, found.deviations.shape, bool(found.overall_separation > 0.5)
    ((3,), (3, 2), True)
    """

    columns: tuple[str, ...]
    shares: FloatArray
    share_interval: FloatArray
    centroids: FloatArray
    deviations: FloatArray
    contrasts: FloatArray
    separation: FloatArray
    gaps: FloatArray
    examples: FloatArray | None = None
    example_rows: IntArray | None = None

    def __post_init__(self) -> None:
        names = (
            "shares",
            "share_interval",
            "centroids",
            "deviations",
            "contrasts",
            "separation",
            "gaps",
        )
        for name in names:
            object.__setattr__(self, name, read_only(getattr(self, name), np.float64))
        if self.examples is not None:
            object.__setattr__(self, "examples", read_only(self.examples, np.float64))
            object.__setattr__(self, "example_rows", read_only(self.example_rows, np.int64))  # type: ignore[arg-type]

    @property
    def overall_separation(self) -> float:
        """The mean of `separation` over all rows."""
        return float(self.shares @ self.separation / self.shares.sum())

    @property
    def overall_gap(self) -> float:
        """The mean of `gaps` over all rows."""
        return float(self.shares @ self.gaps / self.shares.sum())

    def traits(self, cluster: int, most: int = SHOWN_TRAITS) -> list[tuple[str, float]]:
        """Name the columns that set a cluster apart from the rest.

        Parameters
        ----------
        cluster : int
            The number of the cluster, from 0.
        most : int, default=3
            At most so many columns.

        Returns
        -------
        list of (str, float)
            Columns with their contrasts, the largest first; those above half a standard deviation,
            and the largest in any case. Empty for one cluster alone.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> s = ckm.sketch(X, n_clusters=3, random_state=0)
        >>> found = ckm.profile(s, ckm.decode(s, 3, random_state=0))
        >>> [name for name, contrast in found.traits(1)]
        ['[0]']
        """
        contrasts = self.contrasts[cluster]
        if len(self.shares) == 1:
            return []
        order = np.argsort(-np.abs(contrasts), kind="stable")[:most]
        chosen = [i for i in order if abs(contrasts[i]) >= MIN_CONTRAST] or list(order[:1])
        return [(self.columns[i], float(contrasts[i])) for i in chosen]

    def to_frame(self, backend: str | None = None) -> Any:
        """Make a data frame with a row for each cluster and column.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            The kind of frame. None takes the first of these that is installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            Its columns are cluster, column, centroid, deviation and contrast.

        Raises
        ------
        ParameterError
            If there is no such kind of frame.
        MissingPackageError
            If its package is not installed.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
        >>> s = ckm.sketch(X, n_clusters=3, random_state=0)
        >>> found = ckm.profile(s, ckm.decode(s, 3, random_state=0))
        >>> found.to_frame("pyarrow").column_names
        ['cluster', 'column', 'centroid', 'deviation', 'contrast']
        """
        K, n = self.centroids.shape
        values = {
            "cluster": np.repeat(np.arange(K), n),
            "column": list(self.columns) * K,
            "centroid": self.centroids.ravel(),
            "deviation": self.deviations.ravel(),
            "contrast": self.contrasts.ravel(),
        }
        return to_frame(values, check_backend(backend))

    def summary(self) -> Summary:
        """Tell what is printed of it: a row for each cluster.

        Returns
        -------
        Summary
            A title, a table and some sentences.
        """
        K = len(self.shares)
        header = ("cluster", "share", "95 % interval", "separation", "gap", "set apart by")
        rows = tuple(self._row(k) for k in range(K))
        title = f"{K} cluster{'s' * (K > 1)}"
        note = "Columns are in standard deviations of the whole column, relative to other rows."
        overall = self.overall_gap
        if K > 1 and np.isfinite(overall):
            title += f", {describe_gap(overall)} (separation {self.overall_separation:.2f})"
        return Summary(title, header, rows, (note,) if K > 1 else ())

    def _row(self, k: int) -> tuple[str, ...]:
        low, high = self.share_interval[k]
        values = (self.separation[k], self.gaps[k])
        return (
            f"{k}",
            f"{self.shares[k]:.2%}",
            f"{low:.2%} to {high:.2%}",
            *("" if np.isnan(value) else f"{value:.2f}" for value in values),
            describe_traits(self.traits(k)),
        )

    def __repr__(self) -> str:
        K, n = self.centroids.shape
        return f"Profile(n_clusters={K}, n_features={n}, separation={self.overall_separation:.2f})"


def describe_traits(traits: Sequence[tuple[str, float]]) -> str:
    """Columns with their contrasts in words.

    >>> describe_traits([("income", 1.84), ("age", -0.7)])
    'income +1.8, age -0.7'
    """
    return ", ".join(f"{name} {contrast:+.1f}" for name, contrast in traits)


def describe_gap(value: float) -> str:
    """A gap in words.

    >>> [describe_gap(x) for x in (0.1, 0.4, 0.8, 0.97)]
    ['slices of one cloud', 'overlapping', 'apart', 'far apart']
    """
    for limit, words in ((0.25, "slices of one cloud"), (0.6, "overlapping"), (0.9, "apart")):
        if value < limit:
            return words
    return "far apart"
