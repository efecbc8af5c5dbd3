"""What can be wrong with decoded centroids, each with a sentence that says what to do."""

from typing import NamedTuple

import numpy as np

from ckm._core.defaults import DEFAULT_POOL
from ckm._core.laws import FREQUENCIES_PER_PARAMETER
from ckm._core.moments import SecondMoment
from ckm._core.projection import Projection
from ckm._core.sketch import Sketch
from ckm._decoding.candidate import Candidate
from ckm._decoding.noise_error import expected_error
from ckm._decoding.objective import atoms
from ckm._decoding.problem import Problem
from ckm._decoding.recovered import FROM_FREQUENCIES, Recovered
from ckm._decoding.settings import DEFAULT, Settings
from ckm._decoding.status import Finding, Status
from ckm._decoding.tight_groups import hides_tight_groups
from ckm._decoding.unresolved import unresolved_columns
from ckm._messages import Argument, Message
from ckm._sources.column_request import listed
from ckm._util.arrays import BoolArray, FloatArray

# Factor of the size of a pool that was not enough.
_LARGER = 4
_POLISH = Argument("polish", 3, function="ckm.CompressiveKMeans")
# Share of the weight that counts as all of it, up to rounding.
_ALL_WEIGHT = 1 - 1e-9
# The share of the variance along the axes of a sample is at least this, for a division.
_LEAST_KEPT = 1e-6


class _Remedies(NamedTuple):
    """What a sketch could have more of: advice that names nothing it already has."""

    problem: Problem
    pool_size: int

    @property
    def pool(self) -> Argument:
        """A pool, or a larger one."""
        return Argument("pool", max(DEFAULT_POOL, _LARGER * self.pool_size))

    @property
    def advice(self) -> tuple[str | Argument, ...]:
        """What helps where the sketch says too little; the last resort is the data itself."""
        if self.problem.is_noised:
            return (
                "Merge releases of more rows, release with a larger ",
                Argument("epsilon"),
                " or within narrower bounds, or ask for fewer clusters.",
            )
        cells = self.problem.cells
        anchors = Argument("cells", "auto" if cells is None else 2 * len(cells.shares))
        pool = "a larger pool of rows (" if self.pool_size else "a pool of rows ("
        more = Argument("sketch_size", 2 * self.problem.m)
        return (
            *("Sketch with ", anchors, f", {pool}", self.pool, ") or more frequencies ("),
            *(more, "), or refine the centroids on the data (", _POLISH, ")."),
        )


def diagnose(
    problem: Problem,
    found: Candidate,
    cost: float | None,
    pool: int = 0,
    columns: tuple[str, ...] | None = None,
) -> tuple[Finding, ...]:
    """What is wrong with the centroids that a decoder found.

    `cost` is that of the measure they were placed on; None if it is expected to be large, as for
    Diracs that stand for wide clusters. If all the weight is that of known rows, no search was
    needed and none is doubted. `pool` is the number of sampled rows that the decoder had, `columns`
    the names of the problem's coordinates, if they have names.
    """
    remedies = _Remedies(problem, pool)
    C = found.C
    weights = found.weights
    known_weights = found.known_weights
    was_searched = known_weights is None or known_weights.sum() < _ALL_WEIGHT
    K = len(C)
    findings = (
        # Few frequencies can judge cells that they could not replace.
        None if found.is_counted else _find_small_sketch(problem, K),
        _find_stale_cells(problem, found) if found.has_stale_cells else None,
        _find_other_spread(problem) if was_searched else None,
        _find_low_frequencies(problem, found) if was_searched else None,
        _find_unexplained(problem, cost, remedies) if was_searched else None,
        _find_missing_variance(problem, found, remedies) if was_searched else None,
        _find_far_out(problem, remedies, columns) if known_weights is None else None,
        _find_noise(problem, found, remedies) if problem.is_noised else None,
        _find_uncertain(problem, found, remedies) or _find_few_rows(problem, found, remedies),
        _find_equal(problem, C) if found.is_counted else _find_merged(problem, C, weights),
        _find_starved(found, problem.settings),
        _find_unresolved(problem, K, columns, pool)
        if was_searched and not found.is_counted
        else None,
    )
    return tuple(finding for finding in findings if finding)


def diagnose_recovered(
    problem: Problem, recovered: Recovered, columns: tuple[str, ...] | None = None
) -> tuple[Finding, ...]:
    """What is wrong with a measure, for any number of clusters that is placed on it. `columns` are
    the names of the problem's coordinates, if they have names.
    """
    rows = recovered.rows
    remedies = _Remedies(problem, 0 if rows is None else len(rows.values))
    # Rows that are known, or counted in cells, are where they are.
    is_blind = recovered.branch in FROM_FREQUENCIES and not recovered.outliers
    findings = (
        _find_other_spread(problem) if is_blind else None,
        _find_far_out(problem, remedies, columns) if is_blind else None,
    )
    return tuple(finding for finding in findings if finding)


def diagnose_projection(sketch: Sketch, settings: Settings = DEFAULT) -> tuple[Finding, ...]:
    """Whether the rows of a projected sketch vary where its axes do not see it: more than the rows
    of the sample that the axes were chosen on.
    """
    projection = sketch.frequencies.projection
    if projection is None or projection.kept is None:
        return ()
    seen, unseen = variances_along_and_across(sketch, projection)
    expected = (1 - projection.kept) / max(projection.kept, _LEAST_KEPT) * seen
    if unseen <= settings.max_unseen_ratio * expected + settings.max_unseen_share * seen:
        return ()
    share = unseen / (unseen + seen)
    sentence = Message(
        f"{share:.0%} of the variance lies across the {projection.d} axes that rows were projected "
        f"to, where it was {1 - projection.kept:.0%} in the sample that chose them: the rows may "
        "have clusters that the sketch cannot see. Shuffle data that is read in order, sketch anew "
        "without ",
        Argument("like", ...),
        ", or give a larger ",
        Argument("projection", min(projection.n, 2 * projection.d)),
        ".",
    )
    return (Finding(Status.OTHER_AXES, sentence),)


def variances_along_and_across(sketch: Sketch, projection: Projection) -> tuple[float, float]:
    """The variance of projected rows along their axes, and that across them, in the units of
    columns.
    """
    units = np.ones(projection.n) if projection.units is None else projection.units
    variances = sketch.covariance / units**2
    seen = _variance_along(projection, sketch.central_moment)
    return seen, max(0.0, float(variances.sum()) - seen)


def _variance_along(projection: Projection, moment: SecondMoment) -> float:
    """The variance along the axes, in the units of columns."""
    values = moment.values if moment.is_full else np.diag(moment.values)
    return float(np.trace(np.linalg.solve(projection.gram, values)))


def _find_small_sketch(problem: Problem, K: int) -> Finding | None:
    """Fewer frequencies than twice the coordinates to be found leave centroids in doubt."""
    if problem.can_stand_alone(K):
        return None
    n = problem.n
    least = problem.settings.min_frequencies_per_coordinate
    sentence = Message(
        f"This sketch has {problem.m} frequencies; for {K} clusters in dimension {n} fewer than "
        f"{least} K n = {least * K * n} leave centroids in doubt. Sketch with ",
        Argument("sketch_size", FREQUENCIES_PER_PARAMETER * K * n),
        f" ({FREQUENCIES_PER_PARAMETER} K n), or ask for fewer clusters.",
    )
    return Finding(Status.SMALL_SKETCH, sentence)


def _find_unresolved(
    problem: Problem, K: int, columns: tuple[str, ...] | None, pool: int
) -> Finding | None:
    """Columns so small that no frequency tells values in them apart: that centroids have about the
    mean of their rows there is not to be expected, or only as well as a pool of so many rows shows
    it.
    """
    unresolved = np.flatnonzero(unresolved_columns(problem))
    if K == 1 or problem.is_noised or not len(unresolved):
        return None
    names = [columns[j] if columns else f"[{j}]" for j in unresolved]
    known = "are estimates, and may be off by a standard deviation"
    if pool:
        known = (
            f"come from the {pool} rows of the pool, and are off by chance: by about 0.1 standard "
            "deviations where a cluster has a hundred of these rows"
        )
    sentence = Message(
        f"The frequencies do not tell apart the values of {listed(names, 5)}, which hardly matter "
        f"for distances: the coordinates of centroids there {known}. Sketch with ",
        Argument("cells", "auto"),
        ", or read the rows again (",
        _POLISH,
        "): either makes them the means of rows. Or sketch with ",
        Argument("standardize", True),
        " so that all columns matter.",
    )
    return Finding(Status.UNRESOLVED, sentence)


def _find_stale_cells(problem: Problem, found: Candidate) -> Finding:
    used = "centroids come from the frequencies alone"
    if found.is_counted:
        used = (
            f"{problem.m} frequencies are too few to find {len(found.C)} centroids without the "
            "cells, so these were used, and the SSE may be far above that of k-means"
        )
    sentence = Message(
        "The cells do not explain the sketch, as if the rows had moved since their anchors were "
        f"chosen: {used}. Sketch the rows anew, without ",
        Argument("like", ...),
        ", or shuffle data that is read in order; missing values that were filled in look like "
        "this, too.",
    )
    return Finding(Status.STALE_CELLS, sentence)


def _find_merged(problem: Problem, C: FloatArray, weights: FloatArray) -> Finding | None:
    heavy = C[~_is_light(weights, problem.settings)]
    if len(heavy) < 2:
        return None
    gaps = _squared_gaps(heavy)
    # Only pairs within the width of a cluster are compared: atoms of all pairs may take long.
    close = np.flatnonzero(gaps.min(axis=1) < problem.n)
    nearest = np.argmin(gaps[close], axis=1)
    difference = atoms(problem.omega, heavy[close]) - atoms(problem.omega, heavy[nearest])
    mean_squares = (np.abs(difference) ** 2).mean(axis=1)
    count = int((mean_squares <= problem.settings.merged_difference**2).sum())
    if not count:
        return None
    sentence = Message(
        f"{count} of {len(weights)} centroids are so close to another that the sketch cannot "
        f"separate them: there seem to be fewer clusters; ask for fewer. If there are as many, "
        f"frequencies are too low for them: sketch with a smaller ",
        Argument("scale", ...),
        ".",
    )
    return Finding(Status.MERGED, sentence)


def _find_equal(problem: Problem, C: FloatArray) -> Finding | None:
    """Centroids on cells are merged only if they are equal: cells separate what frequencies do
    not.
    """
    gaps = _squared_gaps(C).min(axis=1)
    count = int((gaps <= _rounding(problem)).sum())
    if not count:
        return None
    sentence = Message(
        f"{count} of {len(C)} centroids are equal to another, up to rounding: there seem to be "
        f"fewer distinct rows; ask for fewer."
    )
    return Finding(Status.MERGED, sentence)


def _rounding(problem: Problem) -> float:
    """A squared distance, or a sum over columns of variances, that may be rounding."""
    total = float(problem.covariance.diagonal.sum())
    # Outliers, which the pilot sample hardly contains, are not what rounding depends on.
    if problem.pilot_variances is not None:
        total = min(total, float(problem.pilot_variances.sum()))
    return problem.settings.rounding_share * total


def _squared_gaps(C: FloatArray) -> FloatArray:
    """The squared distances between centroids (K, K), infinite from each to itself."""
    gaps = ((C[:, None] - C) ** 2).sum(axis=2)
    return np.asarray(gaps + np.diag(np.full(len(C), np.inf)))


def _find_unexplained(problem: Problem, cost: float | None, remedies: _Remedies) -> Finding | None:
    if cost is None:
        return None
    settings = problem.settings
    explained = settings.max_noise_ratio * problem.noise
    if cost <= max(explained, settings.max_residual**2 * problem.m):
        return None
    residual = np.sqrt(cost / problem.m)
    noise = np.sqrt(problem.noise / problem.m)
    sentence = Message(
        f"RMS residual {residual:.2g} per frequency; sampling noise explains {noise:.2g}: clusters "
        f"may be missed. ",
        *remedies.advice,
    )
    return Finding(Status.UNEXPLAINED, sentence)


def _find_missing_variance(
    problem: Problem, found: Candidate, remedies: _Remedies
) -> Finding | None:
    """The variance of the data, which is exact, against that of separate clusters.

    Nothing else speaks against K atoms that explain the sketch: a light cluster far away has little
    weight in the sketch, but much of the variance.
    """
    # Ensembles are matched to the moments, cells add up to them, Diracs have no variance.
    is_matched = found.is_doubtful or found.is_counted or not found.mean_square > 0
    if is_matched or not problem.has_trusted_moments:
        return None
    settings = problem.settings
    between = float(found.weights @ ((found.C - problem.mean) ** 2).sum(axis=1))
    total = float(problem.covariance.diagonal.sum())
    missing = total - between - found.mean_square
    allowed = settings.max_variance_error * found.mean_square
    if abs(missing) <= max(allowed, settings.max_total_variance_error * total):
        return None
    sentence = Message(
        f"The clusters found have {1 - missing / total:.3g} times the variance of the data: "
        f"light clusters far away may be missed, or the frequencies do not suit the clusters. ",
        *remedies.advice,
    )
    return Finding(Status.UNEXPLAINED, sentence)


def _find_uncertain(problem: Problem, found: Candidate, remedies: _Remedies) -> Finding | None:
    if found.mean_square <= _rounding(problem):
        return None
    settings = problem.settings
    regret, disagreement = found.doubt
    source = "cells" if found.is_counted else "sketch"
    max_regret = settings.max_cell_regret if found.is_counted else settings.max_regret
    parts = max(0.0, regret) / max_regret, disagreement / settings.max_disagreement
    if np.hypot(*parts) <= _doubt_limit(problem, found):
        return None
    if parts[0] >= parts[1]:
        seen = f"other centroids would have {regret:.0%} less SSE"
    else:
        seen = f"these centroids would have an SSE that differs by {disagreement:.0%}"
    sentence = Message(
        f"On other data with the same {source}, {seen}: too little is known to place centroids "
        f"well, and the SSE may be far above that of k-means. ",
        *remedies.advice,
    )
    return Finding(Status.UNCERTAIN, sentence)


def _doubt_limit(problem: Problem, found: Candidate) -> float:
    """What doubt may be, as a share of its limits: less where a sketch tells less than members
    say.
    """
    settings = problem.settings
    if not _is_within(_variance_ratio(problem), settings.moved_variance_ratio):
        return settings.moved_limit
    if not found.is_counted and hides_tight_groups(problem, len(found.C)):
        return settings.tight_limit
    return 1.0


def _find_few_rows(problem: Problem, found: Candidate, remedies: _Remedies) -> Finding | None:
    """K-means fits its centroids to the rows, which takes K of N parts of the SSE; frequencies say
    less of what chance did to so few.
    """
    is_exact = found.is_counted or found.known_weights is not None or not found.mean_square > 0
    K = len(found.C)
    is_few = problem.size * problem.settings.max_fitted_share < K
    if is_exact or problem.is_noised or not is_few:
        return None
    sentence = Message(
        f"There are {problem.size:,.0f} rows for {K} centroids, and k-means on so few fits their "
        "chance, too: from frequencies the SSE may be some per cent above it. ",
        *remedies.advice,
    )
    return Finding(Status.UNCERTAIN, sentence)


def _find_other_spread(problem: Problem) -> Finding | None:
    """Frequencies come from other data if a sketch was made `like` another."""
    ratio = _variance_ratio(problem)
    if _is_within(ratio, problem.settings.max_scale_ratio):
        return None
    sentence = Message(
        f"The variance of these rows is {ratio:.3g} times that of the rows that the frequencies "
        f"were chosen for: frequencies so {'high' if ratio > 1 else 'low'} may miss clusters, and "
        f"centroids may be far off. Sketch the rows anew, without ",
        Argument("like", ...),
        ".",
    )
    return Finding(Status.OTHER_SPREAD, sentence)


def _variance_ratio(problem: Problem) -> float:
    """The variance of the rows, relative to that of the rows that the frequencies were chosen for;
    one where it is not known.
    """
    # Outliers change the variance too; they have a finding of their own.
    if problem.pilot_variances is None or not problem.has_trusted_moments:
        return 1.0
    return float(problem.covariance.diagonal.mean() / problem.pilot_variances.mean())


def _is_within(ratio: float, most: float) -> bool:
    return 1 / most <= ratio <= most


def _find_low_frequencies(problem: Problem, found: Candidate) -> Finding | None:
    """Separate clusters that are close and narrow beside the scale of the frequencies: their atoms
    explain the sketch, and so do many others.
    """
    if found.is_doubtful or found.is_counted or len(found.C) < 2:
        return None
    # Ensembles are judged by their members, cells by their rows.
    variance = found.mean_square / problem.n
    gap = float(_squared_gaps(found.C).min())
    if not 0 < variance < problem.settings.min_resolved_variance or gap >= problem.n:
        return None
    sentence = Message(
        f"Clusters have {variance:.2g} times the variance that the frequencies are scaled to, and "
        f"some are close to others: frequencies so low hardly separate them, and centroids may be "
        f"far off. Sketch the rows with ",
        Argument("scale", "auto"),
        ", and without ",
        Argument("like", ...),
        ".",
    )
    return Finding(Status.OTHER_SPREAD, sentence)


def _find_noise(problem: Problem, found: Candidate, remedies: _Remedies) -> Finding | None:
    """The noise of a private release may have moved centroids by much of a cluster's width."""
    excess, displacements = expected_error(problem, found)
    if excess > problem.settings.max_noise_excess:
        what = f"is expected to add {excess:.0%} to the SSE. "
    elif displacements.max() > problem.settings.max_noise_displacement:
        weight = found.weights[int(np.argmax(displacements))]
        what = (
            f"may have made the centroid of weight {weight:.2g}, so that another cluster may be "
            "missing. "
        )
    else:
        return None
    sentence = Message(f"The noise of this private release {what}", *remedies.advice)
    return Finding(Status.UNCERTAIN, sentence)


def _find_far_out(
    problem: Problem, remedies: _Remedies, columns: tuple[str, ...] | None
) -> Finding | None:
    # The bounds of a private release are not values of rows.
    if problem.has_trusted_moments or problem.is_noised:
        return None
    variances = problem.covariance.diagonal
    reach = np.maximum(problem.mean - problem.lower, problem.upper - problem.mean)
    ratios = np.divide(reach, np.sqrt(variances), out=np.zeros(problem.n), where=variances > 0)
    farthest = int(np.argmax(ratios))
    name = f"{farthest} (counted from 0)" if columns is None else repr(columns[farthest])
    sentence = Message(
        f"Column {name} reaches {ratios.max():.3g} standard "
        f"deviations from its mean: a few outliers there may decide the SSE, and are below the "
        f"sketch's detection limit. Sketch with a larger pool of rows (",
        remedies.pool,
        "), which keeps outliers; or transform or clip that column.",
    )
    return Finding(Status.FAR_OUT, sentence)


def _is_light(weights: FloatArray, settings: Settings) -> BoolArray:
    return np.asarray(weights < settings.starved_share / len(weights))


def _find_starved(found: Candidate, settings: Settings) -> Finding | None:
    weights = found.weights
    known_weights = found.known_weights
    K = len(weights)
    # Rows that were counted are there, however few.
    is_starved = weights <= 0 if found.is_counted else _is_light(weights, settings)
    if known_weights is not None:
        is_starved &= known_weights <= settings.max_starved_known_share * weights
    count = int(is_starved.sum())
    if not count:
        return None
    sentence = Message(
        f"{count} of {K} centroids have hardly any weight (below {settings.starved_share / K:.2g}) "
        f"and may be where no rows are; ask for fewer clusters, or use a larger sketch."
    )
    return Finding(Status.STARVED, sentence)
