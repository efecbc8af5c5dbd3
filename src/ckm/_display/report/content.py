"""What a report shows, gathered before any of it is written."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ckm._analysis.comparison import Comparison
from ckm._analysis.k_curve import KCurve
from ckm._analysis.profile import Profile
from ckm._analysis.profiling import column_deviations
from ckm._core.preparation import prepared
from ckm._core.sketch import Sketch
from ckm._decoding.solution import Solution
from ckm._display.report.cluster_map import ClusterMap
from ckm._util.arrays import FloatArray, IntArray

# Columns, and clusters, that plots and large tables show.
MOST_COLUMNS = 24
MOST_CLUSTERS = 24
# The gap between clusters from which on they are shown as apart, where no number is clear.
MIN_GAP = 0.4
# The gap below which two clusters are slices of one.
NO_GAP = 0.25
# The share of rows that stay in their cluster below which centroids are not settled.
STABLE = 0.9
# Share of the total variance from which on one column decides the distances.
_MAX_SHARE_OF_VARIANCE = 0.8
# Standard deviations from the mean to the farthest value that are called far.
_FAR = 20.0


@dataclass(frozen=True, eq=False)
class Content:
    """All that a report is made of.

    Parameters
    ----------
    title : str
        Its heading.
    sketch : Sketch
    solution : Solution
    profile : Profile
    cluster_map : ClusterMap
    curve : KCurve or None
        None if the sketch is too small for one.
    comparison : Comparison or None
        That with an earlier sketch.
    is_chosen : bool
        Whether the number of clusters was chosen by the report, not by its caller.
    data_name : str or None
        What the data is called; None if it was not given.
    word : callable
        Words messages of the library for who reads them: `str` names arguments of Python, the
        command line names options.
    """

    title: str
    sketch: Sketch
    solution: Solution
    profile: Profile
    cluster_map: ClusterMap
    curve: KCurve | None = None
    comparison: Comparison | None = None
    is_chosen: bool = False
    data_name: str | None = None
    word: Callable[[str], str] = str

    @property
    def K(self) -> int:
        """The number of clusters."""
        return len(self.profile.shares)

    @property
    def by_share(self) -> list[int]:
        """The clusters to show, the largest first."""
        order = np.argsort(-self.profile.shares, kind="stable")
        return [int(k) for k in order[:MOST_CLUSTERS]]

    @property
    def shown_columns(self) -> IntArray:
        """The columns to show, in their order: those that tell clusters apart, if there are many.

        What a column tells is the variance between centroids along it.
        """
        between = self.profile.shares @ self.profile.contrasts**2
        chosen = np.argsort(-between, kind="stable")[:MOST_COLUMNS]
        return np.sort(chosen).astype(np.int64)

    def sketched_name(self, column: int) -> str:
        """The name of a column, which says so if its logarithm was sketched."""
        preparation = self.sketch.frequencies.preparation
        is_logged = preparation is not None and column in preparation.logged
        return f"{self.profile.columns[column]}{' (logarithm)' if is_logged else ''}"

    @property
    def explained(self) -> float:
        """The share of the variance that is between centroids, in the units of distances."""
        units = self.solution.units
        total = self._total_variance(units)
        centroids = prepared(self.profile.centroids, self.solution.preparation)
        apart = centroids - self.sketch.mean
        scaled = apart if units is None else apart / units
        between = float(self.profile.shares @ (scaled**2).sum(axis=1))
        return min(1.0, between / total) if total > 0 else 0.0

    @property
    def variance_shares(self) -> FloatArray:
        """The share of each column in the total variance, in the units of distances."""
        variances = self._variances(self.solution.units)
        total = variances.sum()
        return np.asarray(variances / total if total > 0 else variances)

    @property
    def deciding_column(self) -> str | None:
        """The column that has nearly all of the variance, if there are several and one has."""
        shares = self.variance_shares
        if len(shares) < 2 or shares.max() <= _MAX_SHARE_OF_VARIANCE:
            return None
        return self.profile.columns[int(np.argmax(shares))]

    def _variances(self, units: FloatArray | None) -> FloatArray:
        variances = column_deviations(self.sketch) ** 2
        return variances if units is None else np.asarray(variances / units**2)

    def _total_variance(self, units: FloatArray | None) -> float:
        return float(self._variances(units).sum())

    def column_notes(self) -> list[tuple[str, str]]:
        """Columns that deserve a second look, each with a sentence."""
        names = self.profile.columns
        deviations = column_deviations(self.sketch)
        notes = [(names[i], "It is constant.") for i in np.flatnonzero(deviations == 0)]
        column = self.deciding_column
        if column is not None:
            sentence = (
                f"It has {self.variance_shares.max():.0%} of the variance, so clusters are little "
                "else than slices of it: standardise the columns, or leave it out if it is an id "
                "or a date."
            )
            notes.append((column, sentence))
        if self.sketch.frequencies.projection is None:
            mean = self.sketch.mean
            reach = np.maximum(mean - self.sketch.lower, self.sketch.upper - mean)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.where(deviations > 0, reach / deviations, 0.0)
            notes += [
                (
                    names[i],
                    f"It reaches {ratios[i]:.0f} standard deviations from its mean: take its "
                    "logarithm, or clip it.",
                )
                for i in np.flatnonzero(ratios > _FAR)
            ]
        return notes
