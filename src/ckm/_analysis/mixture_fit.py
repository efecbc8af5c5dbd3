"""`fit_mixture(sketch, K)`: a mixture of Gaussians from a sketch alone."""

import logging
import time
from typing import Any

import numpy as np

from ckm._analysis.components import (
    Components,
    check_covariance_type,
    count_parameters,
    recommended_size,
)
from ckm._analysis.every_k import curve
from ckm._analysis.expectation import Shape
from ckm._analysis.mixture_model import STARTS, Found, fit_problem
from ckm._analysis.mixture_solution import GaussianMixtureSolution
from ckm._core.defaults import DEFAULT_MAX_CLUSTERS, MIN_CELLS_PER_CLUSTER
from ckm._core.frequencies import Frequencies
from ckm._core.sketch import Sketch
from ckm._decoding.problem import Problem
from ckm._decoding.requirements import require_rows
from ckm._decoding.sample import SampledRows
from ckm._decoding.status import Finding, Status
from ckm._messages import Argument, Message
from ckm._util.checks import EUCLIDEAN, check_whole_number
from ckm._util.parallel import one_library_thread, thread_count
from ckm._util.random import RandomState, seed_of, stream
from ckm._util.warn import warn_user
from ckm.errors import DataError, ParameterError, SmallSketchWarning

_log = logging.getLogger(__name__)

# scikit-learn's default, in the data's squared units.
DEFAULT_REG_COVAR = 1e-6
# Anchors per component: their cells say how wide components are, so that there are twice as many as
# for centroids. On real data 16 left 0.02 to 0.7 nats less likelihood per row, 64 gained little.
CELLS_PER_COMPONENT = 32
# Share of the recommended number of frequencies below which a warning says so.
SMALL_SHARE = 0.4
# Floor of variances in units of sigma^2: so far below what frequencies of that scale see that no
# fit ends there, and enough for a matrix to have an inverse.
MIN_FLOOR = 1e-10


def fit_mixture(
    sketch: Sketch,
    n_components: int | str,
    covariance_type: str = "diag",
    *,
    max_components: int = DEFAULT_MAX_CLUSTERS,
    reg_covar: float = DEFAULT_REG_COVAR,
    n_init: int = STARTS,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> GaussianMixtureSolution:
    """Find the mixture of K Gaussians that a sketch is of.

    The data itself is not needed. If it is a mixture of K Gaussians, weights, means and covariances
    are those whose characteristic function is closest to the sketch, which has nearly the
    likelihood of a fit to all rows. Otherwise they have the largest likelihood on a measure that
    was recovered from the sketch and its cells.

    Parameters
    ----------
    sketch : Sketch
        The sketch of the data, from `ckm.sketch`, `ckm.load` or `ckm.merge`. It should have about
        five frequencies for each number of the means and covariances: ``sketch_size`` of 10 K n
        for "diag", 5 K (n + 1) for "spherical", 2.5 K n (n + 3) for "full".
    n_components : int or "auto"
        The number K of Gaussians. "auto" is the one that `ckm.curve` suggests.
    covariance_type : {"diag", "full", "tied", "spherical"}, default="diag"
        What their covariances look like: a variance for each column ("diag"), a matrix for each
        Gaussian ("full"), one matrix for all ("tied"), one variance for each ("spherical").
    max_components : int, default=20
        The largest number that "auto" may choose.
    reg_covar : float, default=1e-6
        Added to the variances, in the data's squared units, so that none is zero.
    n_init : int, default=10
        The largest number of starts of expectation-maximisation on the recovered measure: it ends
        once four of them agree.
    random_state : None, int, Generator or RandomState, optional
        The seed of the starts. None draws a new seed each time.
    n_jobs : int, optional
        The number of threads; None means every core. The result does not depend on it.

    Returns
    -------
    GaussianMixtureSolution
        Weights, means and covariances, and what may be wrong with them.

    Raises
    ------
    ParameterError
        If an argument is out of range; if the sketch is too small for so many numbers and has fewer
        than two cells per component; if rows were projected, or divided by their lengths.
    DataError
        If the sketch has fewer rows than components, or if `n_components` is "auto" and there is no
        clear number of clusters.

    Warns
    -----
    SmallSketchWarning
        If the sketch has less than two fifths of the frequencies that are recommended.

    See Also
    --------
    CompressiveGaussianMixture : Sketches and fits, as a scikit-learn estimator.
    decode : Finds centroids in a sketch.

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
    >>> sketch = ckm.sketch(X, n_clusters=3, sketch_size=60, random_state=0)
    >>> mixture = ckm.fit_mixture(sketch, 3, random_state=0)
    >>> mixture.means.shape, round(float(mixture.weights.sum()), 6)
    ((3, 2), 1.0)
    """
    is_auto = check_components(n_components, max_components)
    starts = check_whole_number(n_init, "n_init", 1)
    check_covariance_type(covariance_type)
    check_reg_covar(reg_covar)
    require_mixture(sketch, 1 if is_auto else int(n_components), covariance_type)
    seed = seed_of(random_state)
    K = _suggested(sketch, max_components, seed, n_jobs) if is_auto else int(n_components)
    require_mixture(sketch, K, covariance_type)
    frequencies = sketch.frequencies
    shape = shape_of(covariance_type, reg_covar, frequencies)
    rng = stream(seed, "mixture")
    rows = SampledRows.of(sketch)
    started = time.perf_counter()
    with one_library_thread():
        problem = Problem.of(sketch)
        found = fit_problem(problem, K, shape, rows, rng, thread_count(n_jobs), starts)
    _log.info("fitted in %.2f s: residual %.3g", time.perf_counter() - started, found.excess)
    findings = _diagnose(sketch, found, covariance_type)
    for finding in findings:
        if finding.status is Status.SMALL_SKETCH:
            warn_user(finding.sentence, SmallSketchWarning)
    return GaussianMixtureSolution(
        components=_ordered(found.components.moved(frequencies.step, frequencies.origin)),
        covariance_type=covariance_type,
        residual=found.excess,
        is_matched=found.is_matched or found.is_exact,
        size=sketch.weight,
        findings=findings,
        columns=sketch.columns,
        preparation=frequencies.preparation,
    )


def check_components(n_components: Any, max_components: Any) -> bool:
    """Refuse impossible numbers of components; whether the number is to be chosen."""
    if isinstance(n_components, str) and n_components == "auto":
        check_whole_number(max_components, "max_components", 1)
        return True
    if isinstance(n_components, str):
        raise ParameterError(
            Argument("n_components"),
            f' must be "auto" or a whole number from 1 on; got {n_components!r}.',
        )
    check_whole_number(n_components, "n_components", 1)
    return False


def _suggested(sketch: Sketch, max_components: int, seed: int, n_jobs: int | None) -> int:
    """The number of clusters that the sketch suggests."""
    found = curve(sketch, max_components, random_state=seed, n_jobs=n_jobs)
    if found.suggestion is None:
        raise DataError(
            f"The sketch suggests no number of components: {found.reason} Give ",
            Argument("n_components", ...),
            "; ckm.curve shows what speaks for each.",
        )
    _log.info("%d components: %s", found.suggestion, found.reason)
    return found.suggestion


def shape_of(covariance_type: str, reg_covar: float, frequencies: Frequencies) -> Shape:
    """What covariances look like in the coordinates of a problem."""
    floor = np.maximum(reg_covar / frequencies.step**2, MIN_FLOOR)
    return Shape(covariance_type, floor)


def check_reg_covar(reg_covar: Any) -> float:
    """Refuse what is no number from zero on."""
    is_number = isinstance(reg_covar, (int, float, np.integer, np.floating))
    if isinstance(reg_covar, bool) or not is_number or not 0 <= reg_covar < np.inf:
        raise ParameterError(
            Argument("reg_covar"), f" must be a number from 0 on; got {reg_covar!r}."
        )
    return float(reg_covar)


def require_mixture(sketch: Any, K: int, covariance_type: str) -> None:
    """Refuse a sketch that no mixture of K Gaussians can be found in."""
    if not isinstance(sketch, Sketch):
        raise ParameterError(
            f"fit_mixture takes a Sketch; got {type(sketch).__name__}. Make one with ckm.sketch, "
            "or read one with ckm.load."
        )
    require_rows(sketch.count, K, name="n_components")
    frequencies = sketch.frequencies
    if frequencies.projection is not None:
        raise ParameterError(
            f"This sketch is of rows of {frequencies.n_features} columns projected to "
            f"{frequencies.n}, which say nothing of the covariances across them; sketch with ",
            Argument("projection", None),
            ", or fewer columns.",
        )
    if frequencies.metric != EUCLIDEAN:
        raise ParameterError(
            "This sketch is of rows divided by their lengths, which lie on a sphere, where no "
            "Gaussian does; sketch with ",
            Argument("metric", EUCLIDEAN),
            ".",
        )
    require_mixture_size(frequencies.m, K, frequencies.n, covariance_type, _count_cells(sketch))


def require_mixture_size(m: int, K: int, n: int, covariance_type: str, n_cells: int) -> None:
    """Refuse fewer numbers in a sketch than in the mixture, unless cells help."""
    unknowns = count_parameters(covariance_type, K, n)
    if K == 1 or 2 * m >= unknowns or n_cells >= MIN_CELLS_PER_CLUSTER * K:
        return
    raise ParameterError(
        f"A sketch of m = {m} frequencies is too small for a mixture of {K} Gaussians with "
        f"{covariance_type!r} covariances in dimension {n} ({unknowns} unknowns); sketch with ",
        Argument("sketch_size", recommended_size(covariance_type, K, n)),
        ", or ask for fewer components or a simpler ",
        Argument("covariance_type"),
        ".",
    )


def _count_cells(sketch: Sketch) -> int:
    return 0 if sketch.cells is None else int((sketch.cells.mass > 0).sum())


def _ordered(components: Components) -> Components:
    """The heaviest first."""
    order = np.argsort(-components.weights, kind="stable")
    return Components(
        components.weights[order], components.means[order], components.covariances[order]
    )


def _diagnose(sketch: Sketch, found: Found, covariance_type: str) -> tuple[Finding, ...]:
    """What may be wrong with a mixture, each with what to do."""
    if found.is_exact:
        return ()
    K = len(found.components)
    m = sketch.frequencies.m
    enough = recommended_size(covariance_type, K, sketch.frequencies.n)
    findings = list[Finding]()
    if m < SMALL_SHARE * enough:
        sentence = Message(
            f"The sketch has m = {m} frequencies where a mixture of {K} Gaussians with "
            f"{covariance_type!r} covariances asks for {enough}, so that covariances may be "
            "inaccurate; sketch with ",
            Argument("sketch_size", enough),
            ", or ask for a simpler ",
            Argument("covariance_type"),
            ".",
        )
        findings.append(Finding(Status.SMALL_SKETCH, sentence))
    if found.has_stale_cells:
        sentence = Message(
            "The cells do not explain the sketch: rows are elsewhere than in the sample that the "
            "anchors were chosen on. Sketch without ",
            Argument("like", ...),
            ", so that anchors are chosen anew.",
        )
        findings.append(Finding(Status.STALE_CELLS, sentence))
    if not found.is_matched:
        sentence = Message(
            f"The data is no mixture of {K} Gaussians with {covariance_type!r} covariances: its "
            f"sketch differs from this one's by {found.excess:.2g} times what chance explains. "
            "This is the mixture of largest likelihood on a measure that was recovered from the "
            "sketch; passes over the data (",
            Argument("polish", 10, function="ckm.CompressiveGaussianMixture"),
            "), more components or more cells bring it closer.",
        )
        findings.append(Finding(Status.UNEXPLAINED, sentence))
    return tuple(findings)
