"""`curve(sketch, max_clusters)`: every number of clusters from one recovered measure."""

import logging
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ckm._analysis.evidence import Chance, explain_every_number
from ckm._analysis.k_curve import KCurve, Solutions
from ckm._analysis.one_shape import fit_components, one_component
from ckm._analysis.stability import measure_stability
from ckm._analysis.verdict import Explanation, Verdict, judge, relative_criteria
from ckm._core.defaults import DEFAULT_MAX_CLUSTERS, MIN_CELLS_PER_CLUSTER, MIN_JUDGES
from ckm._core.sketch import Sketch
from ckm._decoding.api import column_names, make_solution
from ckm._decoding.coordinates import Coordinates
from ckm._decoding.density import judge_placed
from ckm._decoding.diagnosis import diagnose_recovered, variances_along_and_across
from ckm._decoding.every_number import place_every_number
from ckm._decoding.placing import Placement
from ckm._decoding.problem import Problem
from ckm._decoding.recovered import Recovered, Weighted
from ckm._decoding.recovery import joined, recover
from ckm._decoding.requirements import require_decodable
from ckm._decoding.sample import SampledRows
from ckm._decoding.solution import Solution
from ckm._kmeans.points import WeightedPoints
from ckm._messages import Argument
from ckm._util.arrays import FloatArray
from ckm._util.checks import check_whole_number
from ckm._util.parallel import one_library_thread, thread_count
from ckm._util.random import RandomState, seed_of, stream
from ckm.errors import ParameterError

_log = logging.getLogger(__name__)

# Share of the SSE that the variance which a measure lacks, or has too much, may change it by.
_MAX_CORRECTION = 0.2
# Share of the variance by which measures differ from the data without a reason: shares of clusters
# that are far apart are off by little, and so is the variance between them.
_USUAL_EXCESS = 0.005
# Frequencies below which a sketch says nothing about the number of clusters.
_MIN_FREQUENCIES = 32
# Points of each measure that the SSE is compared on.
_COMPARED_POINTS = 2000
# Standard deviations of the SSE over measures that its interval reaches.
_INTERVAL = 2.0


def curve(
    sketch: Sketch,
    max_clusters: int = DEFAULT_MAX_CLUSTERS,
    *,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> KCurve:
    """Ask a sketch about every number of clusters, without the data.

    One measure is recovered for the largest number; centroids for all numbers are placed on it.
    For each K, the SSE says how close rows are to their centroids; the evidence, whether K
    Gaussians explain the sketch; the stability, whether centroids are the same on other measures
    that the sketch allows. A number is suggested only where these speak for one.

    Parameters
    ----------
    sketch : Sketch
        The sketch of the data, made for `max_clusters` clusters or about as many.
    max_clusters : int, default=20
        The largest number of clusters. With fewer rows than that, it is the number of rows.
    random_state : None, int, Generator or RandomState, optional
        The seed. None draws a new seed each time.
    n_jobs : int, optional
        The number of threads; None means every core. The result does not depend on it.

    Returns
    -------
    KCurve
        The SSE, evidence, stability and solution of each number of clusters, and a suggestion.

    Raises
    ------
    ParameterError
        If an argument is out of range, or if the sketch is too small for so many clusters.
    DataError
        If the sketch has no rows.

    See Also
    --------
    decode : Finds centroids for one number of clusters.

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=2).rows
    >>> curve = ckm.curve(ckm.sketch(X, n_clusters=8, random_state=0), 8, random_state=0)
    >>> curve.suggestion
    3
    """
    require_decodable(sketch, "curve")
    asked = check_whole_number(max_clusters, "max_clusters", 1)
    K_max = min(asked, sketch.count)
    _require_size(sketch, K_max, asked)
    with one_library_thread():
        return _Curve(sketch, K_max, seed_of(random_state), thread_count(n_jobs)).measure()


def largest_number(sketch: Sketch) -> int:
    """The largest number of clusters that a sketch has frequencies, or cells, for."""
    m = sketch.frequencies.m
    largest = 2 * m // (sketch.frequencies.n + 1)
    if sketch.cells is not None and m >= MIN_JUDGES:
        largest = max(largest, len(sketch.cells.anchors) // MIN_CELLS_PER_CLUSTER)
    return largest


def _require_size(sketch: Sketch, K: int, asked: int) -> None:
    """Refuse a sketch with too few frequencies, and too few cells, for K clusters, the number asked
    for or that of the rows.
    """
    m = sketch.frequencies.m
    n = sketch.frequencies.n
    largest = largest_number(sketch)
    if largest < K:
        raise ParameterError(
            f"A sketch of m = {m} frequencies in dimension {n} is too small for ",
            Argument("max_clusters", asked),
            f"; ask for at most {largest}, or sketch with ",
            Argument("n_clusters", K),
            ".",
        )


@dataclass(frozen=True, eq=False)
class _Curve:
    """One sketch, and what is recovered from it."""

    sketch: Sketch
    K_max: int
    seed: int
    threads: int

    def measure(self) -> KCurve:
        placed = self.placements
        sse, interval = self._errors()
        verdict, residual, evidence = self._explain()
        centroids = [C for C, _, _ in placed]
        numbers = tuple(range(1, self.K_max + 1))
        return KCurve(
            n_clusters=np.array(numbers),
            sse=sse,
            sse_interval=interval,
            residual=residual,
            evidence=evidence,
            stability=measure_stability(self.recovered, centroids, stream(self.seed, "curve", 1)),
            suggestion=verdict.suggestion,
            runner_up=verdict.runner_up,
            reason=verdict.reason,
            findings=diagnose_recovered(self.problem, self.recovered, column_names(self.sketch)),
            solutions=Solutions(numbers, self.solve),
        )

    @cached_property
    def problem(self) -> Problem:
        problem = Problem.of(self.sketch, coordinates=Coordinates.exact(self.sketch))
        if problem.cells is not None:
            return problem
        return replace(problem, settings=problem.settings.of_every_number())

    @cached_property
    def rows(self) -> SampledRows | None:
        return SampledRows.of(self.sketch, coordinates=self.problem.coordinates)

    @cached_property
    def recovered(self) -> Recovered:
        rng = stream(self.seed, "decode", 0)
        return recover(self.problem, self.K_max, self.rows, rng, self.threads)

    @cached_property
    def placements(self) -> list[Placement]:
        rng = stream(self.seed, "curve", 0)
        return place_every_number(self.problem, self.recovered, self.K_max, rng)

    def solve(self, K: int) -> Solution:
        """The centroids for K clusters, diagnosed."""
        with one_library_thread():
            rng = stream(self.seed, "curve", 3, K)
            found = judge_placed(self.problem, self.recovered, self.placements[K - 1], rng)
        pool = 0 if self.rows is None else len(self.rows.values)
        return make_solution(self.sketch, self.problem, found, "density", pool)

    def _errors(self) -> tuple[FloatArray, FloatArray]:
        """The SSE for each number of clusters, and the interval that it lies in, (k,) and (k, 2).

        The variance of all rows is exact. What a measure has too much of it, or too little, is
        within its clusters rather than between them, where the sketch sees it.
        """
        sketch = self.sketch
        squares = np.array([mean_square for _, _, mean_square in self.placements])
        total = self.problem.covariance.trace
        excess = squares[0] - total
        excess -= np.clip(excess, -_USUAL_EXCESS * total, _USUAL_EXCESS * total)
        corrected = squares - np.clip(excess, -_MAX_CORRECTION * squares, _MAX_CORRECTION * squares)
        corrected[0] = total
        # A measure with few points may say that one centroid more does not help.
        corrected = np.minimum.accumulate(corrected)
        width = _INTERVAL * self._deviations()
        interval = corrected[:, None] * (1 + np.stack([-width, width], axis=1))
        across = 0.0
        if sketch.frequencies.projection is not None:
            across = variances_along_and_across(sketch, sketch.frequencies.projection)[1]
        scale = sketch.frequencies.scale
        return (
            sketch.weight * (scale * corrected + across),
            sketch.weight * (scale * np.maximum(interval, 0.0) + across),
        )

    def _deviations(self) -> FloatArray:
        """The standard deviation of the SSE over what the data might be, as a share of it (k,)."""
        others = [_points(other) for other in self._other_measures()]
        found = []
        for C, _, _ in self.placements:
            means = []
            for other in others:
                squares = other.nearest(C)[1]
                mean = float(other.weights @ squares / other.weights.sum())
                means.append(mean)
            # Chance is much the same on all measures.
            variance = float(other.weights @ (squares - mean) ** 2 / other.weights.sum())
            chance = np.sqrt(variance) / max(mean, np.finfo(float).tiny)
            middle = max(float(np.mean(means)), np.finfo(float).tiny)
            between = float(np.std(means, ddof=1)) / middle if len(means) > 1 else 0.0
            found.append(np.hypot(between, chance / np.sqrt(self.problem.size)))
        # One centroid has the mean squared distance that the moments say.
        found[0] = 0.0
        return np.array(found)

    def _other_measures(self) -> list[Weighted]:
        """Points of measures that the sketch allows: members of an ensemble; for cells, rows that
        lie along a line in each of them.
        """
        recovered = self.recovered
        if recovered.members:
            others = [_some(points) for points in recovered.members]
            for i in range(len(others) if recovered.reconstructed else 0):
                choices = recovered.reconstructed
                others[i] = _beside(others[i], choices[i % len(choices)])
            return others
        many, weights = recovered.many
        every = max(1, len(many) // _COMPARED_POINTS)
        same = (many[::every], weights[::every])
        if recovered.cells is None:
            return [same]
        rng = stream(self.seed, "curve", 2)
        lines = joined(*recovered.cells.draw_lines(rng, _COMPARED_POINTS), recovered.outliers)
        alike = joined(*recovered.cells.draw(rng, _COMPARED_POINTS), recovered.outliers)
        return [alike, lines]

    def _explain(self) -> tuple[Verdict, FloatArray, FloatArray]:
        """The verdict, and the residual and the criterion of each number of clusters (k,)."""
        unknown = np.full(self.K_max, np.nan)
        problem = self.problem
        if not problem.covariance.trace > 0:
            return Verdict(1, None, "All rows are equal."), unknown, unknown
        size = self.sketch.effective_size
        if size is None:
            reason = (
                "No clear number of clusters: this sketch of weighted rows does not say how much "
                "their weights vary, so that chance is unknown; sketch them anew."
            )
            return Verdict(None, None, reason), unknown, unknown
        if problem.m < _MIN_FREQUENCIES:
            reason = (
                f"No clear number of clusters: {problem.m} frequencies are too few to tell; "
                f"sketch with at least {_MIN_FREQUENCIES}."
            )
            return Verdict(None, None, reason), unknown, unknown
        explained = self._explanations(size)
        residual = [one.residual for one in explained]
        return judge(explained), np.array(residual), relative_criteria(explained)

    def _explanations(self, size: float) -> list[Explanation]:
        problem = self.problem
        measure = self.recovered.gaussians
        starts = [one_component(problem)]
        for C, shares, _ in self.placements[1:]:
            starts.append(fit_components(problem, measure, C, shares))
        return explain_every_number(Chance.of(problem, starts[-1], size), starts)


def _some(points: FloatArray) -> Weighted:
    every = max(1, len(points) // (_COMPARED_POINTS // 2))
    return points[::every], np.ones(len(points[::every]))


def _beside(weighted: Weighted, outliers: Weighted) -> Weighted:
    """Points with outliers of these shares beside them."""
    points, weights = weighted
    return (
        np.vstack([points, outliers[0]]),
        np.concatenate([weights / weights.sum(), outliers[1]]),
    )


def _points(weighted: Weighted) -> WeightedPoints:
    points, weights = weighted
    return WeightedPoints(np.ascontiguousarray(points, np.float64), np.asarray(weights, np.float64))
