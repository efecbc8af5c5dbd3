"""`ckm.compare`: are two sketches of the same frequencies from one distribution?"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ckm._analysis.cluster_changes import (
    ClusterEvidence,
    clusters_of_cells,
    clusters_of_gaussians,
)
from ckm._analysis.column_changes import ColumnEvidence, find_evidence, log_two_sided
from ckm._analysis.comparing_releases import compare_releases
from ckm._analysis.comparison import (
    CENTROID,
    MEAN,
    SHAPE,
    SHARE,
    VARIANCE,
    WIDTHS,
    WITHIN,
    ClusterChange,
    ColumnChange,
    Comparison,
)
from ckm._analysis.explanation import MAX_CLUSTERS, Explanation, explain, usual_clusters
from ckm._analysis.two_samples import Z_INTERVAL, Effect, Null, Pair
from ckm._core.defaults import CELLS_PER_CLUSTER, MIN_CELLS
from ckm._core.laws import require_enough_frequencies
from ckm._core.preparation import prepared_names
from ckm._core.sketch import Sketch
from ckm._decoding.lifting import lift_centroids
from ckm._decoding.problem import Problem
from ckm._util.arrays import FloatArray
from ckm._util.checks import check_whole_number
from ckm.errors import DataError, ParameterError

# The weight of each test. That of the features sees every change, the others see some changes much
# better.
_FEATURES_WEIGHT = 0.71
_MEANS_WEIGHT = 0.08
_VARIANCES_WEIGHT = 0.04
_SHARES_WEIGHT = 0.08
_CENTROIDS_WEIGHT = 0.05
_WIDTHS_WEIGHT = 0.04
# The weights of the kinds of change that a column may show: the plain ones before the others. With
# 0.4, 0.2, 0.2, 0.1 and 0.1 a column whose mean had moved was named first in 95.2 % of samples of
# one Gaussian, with these in 95.9 %, and in 95.9 % or more of all other samples with either
# (`python -m benchmarks.compare --sections power`; 2000 each on seeds 0 to 39). The largest t of
# the rows, which is told that means are what changed, names it in 96.2 %.
_KIND_WEIGHTS = {MEAN: 0.56, VARIANCE: 0.18, WITHIN: 0.15, WIDTHS: 0.06, SHAPE: 0.05}
# Effective rows below which the null is only roughly right.
_FEW_ROWS = 50
# Where p-values are combined: below the first, digits would be lost; the second
# stands for zero, the third for one.
_TINY_P = 1e-12
_LEAST_P = 1e-300
_LARGEST_P = 0.95
# RMS residual per frequency above which the null is only roughly right.
_POOR_RESIDUAL = 0.1


def compare(a: Sketch, b: Sketch, *, n_clusters: int | None = None) -> Comparison:
    """Test whether two sketches are of rows from one distribution, and find what differs.

    The statistic is T = N_a N_b / (N_a + N_b) ‖z_a - z_b‖^2, an estimate of a squared maximum mean
    discrepancy. By chance alone it is a sum of squares of normal variables whose covariance follows
    from a mixture of Gaussians that explains both sketches together; its mean is known exactly. To
    this the means and the variances of the columns add what they see better. Rows are taken as
    independent of each other, and weights as independent of the values of their rows.

    With many rows every difference is significant: look at `effect`, which does not grow with
    their number.

    Parameters
    ----------
    a : Sketch
        The first sketch.
    b : Sketch
        The second, with the same frequencies: made with ``like=`` the first. Rows that are in both
        make them look more alike than they are. The rows of a sum that a sketch is part of can be
        had by subtraction: ``compare(monday, week - monday)``.
    n_clusters : int, optional
        The number of clusters to look at; by default what the sketches are large enough for, at
        most 20.

    Returns
    -------
    Comparison
        Statistic, p-value and effect; columns and clusters, those with most evidence first (none
        for private releases).

    Raises
    ------
    ckm.errors.MismatchError
        The sketches have different frequencies or columns.
    ckm.errors.DataError
        A sketch has fewer than two rows, or holds weighted rows and does not know the sum of their
        squared weights (files of earlier versions do not).
    ckm.errors.ParameterError
        Something else than sketches was given, or `n_clusters` is out of range.

    See Also
    --------
    ckm.sketch : Sketch data, with the frequencies of another sketch by ``like=``.
    ckm.Monitor : Watch a stream for change.

    Examples
    --------
    >>> import numpy as np
    >>> import ckm
    >>> rng = np.random.default_rng(0)
    >>> monday = ckm.sketch(rng.normal(size=(2000, 3)), n_clusters=5, random_state=0)
    >>> tuesday = ckm.sketch(rng.normal(size=(2000, 3)) + [0, 0.2, 0], like=monday)
    >>> found = ckm.compare(monday, tuesday)
    >>> bool(found.p_value < 0.001), found.columns[0].name, found.columns[0].change
    (True, '1', 'mean')
    """
    for sketch, which in ((a, "first"), (b, "second")):
        _require_comparable(sketch, which)
    notes: list[str] = []
    a, b = _with_common_cells(a, b, notes)
    if n_clusters is not None:
        n_clusters = check_whole_number(n_clusters, "n_clusters", 1)
        cells = 0 if a.cells is None else len(a.cells.anchors)
        require_enough_frequencies(a.frequencies.m, n_clusters, a.frequencies.n, cells)
    if a.release is not None or b.release is not None:
        return compare_releases(a, b, n_clusters)
    pair = _pair(a, b)
    both = _together(a, b, pair)
    problem = replace(Problem.of(both), size=pair.size_a + pair.size_b)
    K = n_clusters or _usual_number(both, problem)
    rng = np.random.default_rng(0)
    explanation = explain(problem, K, rng)
    null = Null.of(pair, problem.omega, explanation)
    clusters = _find_clusters(a, b, both, problem, explanation, pair, null, K, rng)
    evidence = find_evidence(a, b, both, explanation, clusters)
    if clusters is None:
        notes.append(f"The sketches are too small to tell {K} clusters apart.")
    notes += _doubts(pair, explanation)
    return _result(a, b, pair, null, evidence, clusters, tuple(notes))


def _require_comparable(sketch: Sketch, which: str) -> None:
    if not isinstance(sketch, Sketch):
        raise ParameterError(
            f"compare takes two sketches; the {which} is {type(sketch).__name__} "
            f"({str(sketch)[:60]!r}); ckm.load reads one from a file."
        )
    size = sketch.effective_size
    if size is None:
        raise DataError(
            f"The {which} sketch holds weighted rows and not the sum of their squared weights, so "
            "that nobody can tell how much chance there is in it: it was written by an earlier "
            "version, or little is left of what was subtracted; sketch its rows again."
        )
    if size < 2:
        raise DataError(
            f"The {which} sketch has {sketch.count} rows that count as {size:.3g}: the square of "
            "their total weight over the sum of squares. A comparison needs two or more of each."
        )


def _with_common_cells(a: Sketch, b: Sketch, notes: list[str]) -> tuple[Sketch, Sketch]:
    """The sketches with cells around the same anchors, or both without."""
    if a.cells is None and b.cells is None:
        return a, b
    is_common = (
        a.cells is not None
        and b.cells is not None
        and a.cells.anchors.fingerprint == b.cells.anchors.fingerprint
    )
    if is_common:
        return a, b
    notes.append("Cells are not used: the sketches do not have cells around the same anchors.")
    return a.without_cells(), b.without_cells()


def _pair(a: Sketch, b: Sketch) -> Pair:
    assert a.effective_size is not None
    assert b.effective_size is not None
    return Pair(a.z, b.z, a.effective_size, b.effective_size)


def _together(a: Sketch, b: Sketch, pair: Pair) -> Sketch:
    """Both sketches as one, each with the weight of its effective size."""
    factors = np.array([pair.size_a / a.weight, pair.size_b / b.weight])
    first, second = map(float, factors / factors.max())
    return a.without_pool().scaled(first) + b.without_pool().scaled(second)


def _usual_number(sketch: Sketch, problem: Problem) -> int:
    K = usual_clusters(problem)
    # The least number of anchors, and some of outliers, say nothing of the number of clusters.
    if sketch.cells is None or len(sketch.cells.anchors) < MIN_CELLS + CELLS_PER_CLUSTER:
        return K
    return max(K, min(MAX_CLUSTERS, len(sketch.cells.anchors) // CELLS_PER_CLUSTER))


def _find_clusters(
    a: Sketch,
    b: Sketch,
    both: Sketch,
    problem: Problem,
    explanation: Explanation,
    pair: Pair,
    null: Null,
    K: int,
    rng: np.random.Generator,
) -> ClusterEvidence | None:
    if problem.cells is not None and explanation.means is problem.cells.means:
        return clusters_of_cells(a, b, both, explanation, K, rng)
    return clusters_of_gaussians(problem, explanation, pair, null)


def _doubts(pair: Pair, explanation: Explanation) -> list[str]:
    notes = []
    if min(pair.size_a, pair.size_b) < _FEW_ROWS:
        notes.append(f"Below {_FEW_ROWS} rows p-values are only roughly right.")
    if explanation.residual > _POOR_RESIDUAL:
        notes.append(
            f"No mixture explains the sketches (RMS residual {explanation.residual:.2g} per "
            "frequency), so that p-values are only roughly right; a larger sketch may help."
        )
    return notes


def _result(
    a: Sketch,
    b: Sketch,
    pair: Pair,
    null: Null,
    evidence: ColumnEvidence,
    clusters: ClusterEvidence | None,
    notes: tuple[str, ...],
) -> Comparison:
    statistic = pair.joint_size * pair.squared_distance
    effect = Effect.of(pair, null)
    n = len(evidence.z_mean)
    tests = evidence.log_p_values
    p_features = float(null.law.tail(statistic))
    p_means = _corrected(tests[MEAN].min(), n)
    p_variances = _corrected(tests[VARIANCE].min(), n) if VARIANCE in tests else None
    p_shares = None if clusters is None else clusters.p_all_shares
    parts = [(p_features, _FEATURES_WEIGHT), (p_means, _MEANS_WEIGHT)]
    if p_variances is not None:
        parts.append((p_variances, _VARIANCES_WEIGHT))
    if p_shares is not None:
        parts.append((p_shares, _SHARES_WEIGHT))
    p_centroids = None
    # Without cells its errors come from the mixture, and are only roughly right.
    if clusters is not None and clusters.p_all_shares is not None:
        z = clusters.z_within
        p_centroids = _corrected(log_two_sided(z).min(), len(z))
        parts.append((p_centroids, _CENTROIDS_WEIGHT))
    p_widths = _corrected(tests[WIDTHS].min(), n) if WIDTHS in tests else None
    if p_widths is not None:
        parts.append((p_widths, _WIDTHS_WEIGHT))
    names = a.columns or b.columns or tuple(map(str, range(n)))
    names = prepared_names(names, a.frequencies.preparation)
    return Comparison(
        p_value=combine(parts),
        p_features=p_features,
        p_means=p_means,
        p_variances=p_variances,
        p_shares=p_shares,
        p_centroids=p_centroids,
        p_widths=p_widths,
        statistic=statistic,
        expected_statistic=null.law.first,
        effect=effect.value,
        effect_interval=(effect.low, effect.high),
        size_a=pair.size_a,
        size_b=pair.size_b,
        columns=_column_changes(evidence, pair, names),
        clusters=() if clusters is None else _cluster_changes(a, b, clusters, evidence, names),
        notes=notes,
    )


def combine(parts: Sequence[tuple[float, float]]) -> float:
    """One p-value of several (p, weight): that of the weighted sum of tan(pi (1/2 - p)), which is a
    Cauchy variable if tests are independent, and nearly so in the tail if not (Liu and Xie 2020).

    >>> round(combine([(0.04, 1.0)]), 12), round(combine([(0.04, 0.5), (0.04, 0.5)]), 12)
    (0.04, 0.04)
    >>> combine([(1e-30, 0.1), (0.7, 0.9)]) < 1e-28
    True
    """
    total = sum(weight for _, weight in parts)
    smallest = min(p / (weight / total) for p, weight in parts)
    # There tan(pi (1/2 - p)) is 1 / (pi p), and the sum would lose digits.
    if smallest < _TINY_P:
        return float(1 / sum(weight / total / max(p, _LEAST_P) for p, weight in parts))
    # A p-value of one is a cautious bound, not evidence against every other test.
    cotangents = [weight / total / np.tan(np.pi * min(p, _LARGEST_P)) for p, weight in parts]
    return float(0.5 - np.arctan(sum(cotangents)) / np.pi)


def _corrected(log_p: float, count: int) -> float:
    """The smallest of `count` p-values, as the probability that one of them is so small if they are
    independent (Sidak).
    """
    p = np.exp(min(log_p, 0.0))
    return float(p if count == 1 else -np.expm1(count * np.log1p(-min(p, 1 - 1e-16))))


def _column_changes(
    evidence: ColumnEvidence, pair: Pair, names: tuple[str, ...]
) -> tuple[ColumnChange, ...]:
    kinds, columns = zip(*evidence.log_p_values.items(), strict=True)
    weights = np.array([_KIND_WEIGHTS[kind] for kind in kinds])
    tests = np.stack(columns, axis=1) - np.log(weights / weights.sum())
    n = len(tests)
    error = Z_INTERVAL / np.sqrt(pair.joint_size)
    difference = evidence.means_b - evidence.means_a
    with np.errstate(divide="ignore", invalid="ignore"):
        shifts = np.where(evidence.z_mean == 0, 0.0, difference / evidence.deviation)
    best = tests.min(axis=1)
    changes = []
    for i in np.argsort(best, kind="stable"):
        shift = float(shifts[i])
        changes.append(
            ColumnChange(
                name=names[i],
                index=int(i),
                change=kinds[int(np.argmin(tests[i]))],
                mean_a=float(evidence.means_a[i]),
                mean_b=float(evidence.means_b[i]),
                shift=shift,
                shift_interval=(shift - error, shift + error),
                variance_ratio=float(evidence.ratio[i]),
                shift_within=_number(evidence.shift_within, i),
                variance_ratio_within=_number(evidence.ratio_within, i),
                distance=_number(evidence.distance, i),
                p_value=_corrected(best[i], n),
            )
        )
    return tuple(changes)


def _number(values: FloatArray | None, i: int) -> float | None:
    return None if values is None else float(values[i])


def _cluster_changes(
    a: Sketch,
    b: Sketch,
    clusters: ClusterEvidence,
    columns: ColumnEvidence,
    names: tuple[str, ...],
) -> tuple[ClusterChange, ...]:
    f = a.frequencies
    centroids_a = lift_centroids(a, f.absolute(clusters.means_a))
    centroids_b = lift_centroids(b, f.absolute(clusters.means_b))
    deviations = np.where(columns.deviation > 0, columns.deviation, 1.0)
    moved = np.abs(centroids_b - centroids_a) / deviations
    # The largest cluster is number 0.
    sizes = np.argsort(-(clusters.shares_a + clusters.shares_b), kind="stable")
    p_shares = clusters.p_shares
    p_means = clusters.p_means
    best = np.minimum(p_shares, p_means)
    K = len(best)
    numbers = np.empty(K, int)
    numbers[sizes] = np.arange(K)
    changes = []
    for k in sizes[np.argsort(best[sizes], kind="stable")]:
        difference = float(clusters.shares_b[k] - clusters.shares_a[k])
        error = Z_INTERVAL * float(clusters.share_errors[k])
        changes.append(
            ClusterChange(
                index=int(numbers[k]),
                change=SHARE if p_shares[k] <= p_means[k] else CENTROID,
                share_a=float(clusters.shares_a[k]),
                share_b=float(clusters.shares_b[k]),
                share_interval=(difference - error, difference + error),
                centroid_a=centroids_a[k],
                centroid_b=centroids_b[k],
                shift=float(clusters.shifts[k]),
                column=names[int(np.argmax(moved[k]))],
                p_value=float(min(1.0, 2 * K * best[k])),
            )
        )
    return tuple(changes)
