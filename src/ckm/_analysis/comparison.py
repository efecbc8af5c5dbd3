"""`Comparison`: what differs between two sketches."""

from dataclasses import dataclass
from os import PathLike
from typing import Any

from ckm._util.arrays import FloatArray, Frozen
from ckm._util.summary import Shown, Summary

# Differences are called found below this p-value.
LEVEL = 0.05
# How many columns, and how many clusters, are shown.
_SHOWN = 8

MEAN = "mean"
VARIANCE = "variance"
SHAPE = "shape"
WITHIN = "centroids"
WIDTHS = "widths"
SHARE = "share"
CENTROID = "centroid"


@dataclass(frozen=True)
class ColumnChange:
    """How one column differs between two sketches.

    Parameters
    ----------
    name : str
        The name of the column; its number, from 0, if it has none.
    index : int
        Its number.
    change : {"mean", "variance", "centroids", "widths", "shape"}
        What there is most evidence for: another mean, another variance, clusters that moved along
        it or became wider or narrower (which may be little beside the whole column), or another
        distribution that shows in none of these.
    mean_a, mean_b : float
        Its means.
    shift : float
        mean_b - mean_a, in standard deviations of the column.
    shift_interval : tuple of float
        A 95 % interval for the shift.
    variance_ratio : float
        The variance in the second sketch, divided by that in the first.
    shift_within : float or None
        How far clusters moved along it on average, in standard deviations within them; None for
        rows that are projected, or if the sketch is too small for clusters.
    variance_ratio_within : float or None
        The variance within clusters in the second sketch, divided by that in the first; None for
        rows that are projected, or if the sketches have no cells.
    distance : float or None
        The largest difference between its two distribution functions, from 0 to 1; None if the
        sketches have no cells to tell it from.
    p_value : float
        The probability of such evidence in any column by chance, at most.
    """

    name: str
    index: int
    change: str
    mean_a: float
    mean_b: float
    shift: float
    shift_interval: tuple[float, float]
    variance_ratio: float
    shift_within: float | None
    variance_ratio_within: float | None
    distance: float | None
    p_value: float


@dataclass(frozen=True, eq=False)
class ClusterChange(Frozen):
    """How one cluster differs between two sketches. Clusters are those of both together.

    Parameters
    ----------
    index : int
        Its number: 0 is the largest cluster.
    change : {"share", "centroid"}
        What there is most evidence for.
    share_a, share_b : float
        Its share of the rows of each.
    share_interval : tuple of float
        A 95 % interval for share_b - share_a.
    centroid_a, centroid_b : float64 arrays (n,)
        Where it is in each.
    shift : float
        The distance between them, in standard deviations of the cluster, without what chance adds
        to it.
    column : str
        The column along which it moved most.
    p_value : float
        The probability of such evidence in any cluster by chance, at most.
    """

    index: int
    change: str
    share_a: float
    share_b: float
    share_interval: tuple[float, float]
    centroid_a: FloatArray
    centroid_b: FloatArray
    shift: float
    column: str
    p_value: float


@dataclass(frozen=True, eq=False)
class Comparison(Shown):
    """Whether two sketches are from one distribution, and what differs: from `ckm.compare`.

    ``print`` shows it as a table.

    Parameters
    ----------
    p_value : float
        The probability of differences as large as these between samples of one distribution. It
        combines the six that follow, with most weight on the first.
    p_features : float
        That of the statistic.
    p_means : float or None
        That of the column whose mean moved most, for the number of columns; None for private
        releases.
    p_variances : float or None
        The same for variances; None for rows that are projected.
    p_shares : float or None
        That of the shares of all clusters; None if the sketches have no cells, which count rows.
    p_centroids : float or None
        That of the axis along which clusters moved most, on average over all rows; None if the
        sketches have no cells.
    p_widths : float or None
        That of the column whose variance within clusters changed most, for the number of columns;
        None for rows that are projected, or if the sketches have no cells.
    statistic : float
        T = N_a N_b / (N_a + N_b) ‖z_a - z_b‖^2, with N the effective sizes.
    expected_statistic : float
        What T is on average by chance alone.
    effect : float
        The RMS difference per frequency between the two characteristic functions, without what
        chance adds: from 0 to about 1.4. Unlike the p-value, it does not depend on the number of
        rows.
    effect_interval : tuple of float
        A 95 % interval for it.
    size_a : float
        The effective number of rows of the first sketch.
    size_b : float
        That of the second.
    columns : tuple of ColumnChange
        Every column, that with the most evidence first.
    clusters : tuple of ClusterChange
        Every cluster, that with the most evidence first; none if the sketch is too small for them.
    notes : tuple of str
        What limits the comparison, in sentences.

    See Also
    --------
    ckm.compare : Compare two sketches.

    Examples
    --------
    >>> import numpy as np
    >>> import ckm
    >>> X = np.random.default_rng(0).normal(size=(4000, 2))
    >>> a = ckm.sketch(X[:2000], n_clusters=3, random_state=0)
    >>> found = ckm.compare(a, ckm.sketch(X[2000:] * [1, 1.3], like=a))
    >>> [(column.name, column.change) for column in found.columns][:1]
    [('1', 'variance')]
    """

    p_value: float
    p_features: float
    p_means: float | None
    p_variances: float | None
    p_shares: float | None
    p_centroids: float | None
    p_widths: float | None
    statistic: float
    expected_statistic: float
    effect: float
    effect_interval: tuple[float, float]
    size_a: float
    size_b: float
    columns: tuple[ColumnChange, ...]
    clusters: tuple[ClusterChange, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        low, high = self.effect_interval
        return (
            f"Comparison(p_value={self.p_value:.3g}, effect={self.effect:.3g} "
            f"({low:.3g} to {high:.3g}), statistic={self.statistic:.6g}, "
            f"columns={len(self.columns)}, clusters={len(self.clusters)})"
        )

    def summary(self) -> Summary:
        """What `print` and notebooks show: the verdict, then what moved.

        Returns
        -------
        Summary
            A title, a table and notes.
        """
        low, high = self.effect_interval
        verdict = "Different" if self.p_value < LEVEL else "No difference found"
        title = (
            f"{verdict}: p = {self.p_value:.2g}, effect {self.effect:.3g} "
            f"({low:.3g} to {high:.3g}), {self.size_a:.6g} and {self.size_b:.6g} rows"
        )
        rows = [_column_row(column) for column in self.columns[:_SHOWN]]
        rows += [_cluster_row(cluster) for cluster in self.clusters[:_SHOWN]]
        header = ("", "first", "second", "change", "p")
        return Summary(title, header, tuple(rows), self._all_notes())

    def plot(self, path: str | PathLike[str] | None = None) -> Any:
        """Draw shifts of columns and changes of shares, with intervals. Needs matplotlib.

        Parameters
        ----------
        path : str or path-like, optional
            Where to save the plot, as PNG.

        Returns
        -------
        matplotlib.figure.Figure
            The plot.

        Examples
        --------
        >>> import numpy as np
        >>> import ckm
        >>> X = np.random.default_rng(0).normal(size=(2000, 2))
        >>> a = ckm.sketch(X[:1000], n_clusters=3, random_state=0)
        >>> found = ckm.compare(a, ckm.sketch(X[1000:], like=a))
        >>> figure = found.plot()  # doctest: +SKIP
        """
        from ckm._display.plots_compare import draw_comparison

        return draw_comparison(self, LEVEL, path)

    def _all_notes(self) -> tuple[str, ...]:
        left = len(self.columns) - _SHOWN
        hidden = (f"{left} more columns have less evidence.",) if left > 0 else ()
        return (*hidden, *self.notes)


def _column_row(column: ColumnChange) -> tuple[str, ...]:
    change = f"mean {column.shift:+.3g} sd"
    if column.change == VARIANCE:
        change = f"variance x {column.variance_ratio:.3g}"
    elif column.change == WITHIN:
        change = f"clusters {column.shift_within:+.3g} sd"
    elif column.change == WIDTHS:
        change = f"variance in clusters x {column.variance_ratio_within:.3g}"
    elif column.change == SHAPE:
        change = f"distribution by {column.distance:.2g}"
    means = (f"{column.mean_a:.5g}", f"{column.mean_b:.5g}")
    return (f"column {column.name}", *means, change, _probability(column.p_value))


def _cluster_row(cluster: ClusterChange) -> tuple[str, ...]:
    low, high = cluster.share_interval
    change = f"share {low:+.2%} to {high:+.2%}"
    if cluster.change == CENTROID:
        change = f"moved {cluster.shift:.2g} sd, most in {cluster.column}"
    shares = (f"{cluster.share_a:.2%}", f"{cluster.share_b:.2%}")
    return (f"cluster {cluster.index}", *shares, change, _probability(cluster.p_value))


def _probability(p: float) -> str:
    return f"{p:.2g}" if p >= 1e-4 else f"{p:.0e}"
