"""`decode(sketch, K)`: centroids from a sketch alone, in time that does not depend on the number of
rows.
"""

import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from ckm._core.pool import distinct_rows
from ckm._core.sketch import Sketch
from ckm._decoding.clompr import clompr
from ckm._decoding.diagnosis import Finding, Status, diagnose, small_sketch
from ckm._decoding.ensemble import recover_measure
from ckm._decoding.objective import Problem, cost, gaussian_cost
from ckm._decoding.outliers import imagine_rows
from ckm._decoding.search import Prior, begin_mixture, make_prior, recover_mixture
from ckm._decoding.starts import Rows, make_start, require_init
from ckm._kmeans.assign import Centroids
from ckm._kmeans.breathing import place
from ckm._sources.arrays import ArraySource
from ckm._util.arrays import Array, Frozen, read_only
from ckm._util.checks import (
    check_whole_number,
    require_enough_frequencies,
    require_float32,
)
from ckm._util.device import current_gpu, resolve_device
from ckm._util.parallel import thread_count
from ckm._util.random import seed_of, stream
from ckm.errors import DataError, ParameterError, SmallSketchWarning

_log = logging.getLogger(__name__)

# drawn from a mixture that explains the sketch; one in how many shows where centroids belong
_SMOOTH_POINTS, _THINNED = 30_000, 4
# for each cluster; fewer rows are a worse place to start from than the moments
_ROWS_TO_START_FROM = 10
# Shares of an atom's variance that are left in the cells around centres: atoms hardly overlap, or
# no search will make them.
_SEPARATE, _CROWDED = 0.95, 0.85
# A sampled row that was more likely than not to be in the pool is one of few like it, and most of
# those are there.
_KNOWN_CHANCE, _KNOWN_SHARE = 0.5, 0.1
MIN_GPU_PAIRS = 200_000  # K m, centroids times frequencies, from which on a GPU decodes faster
_THREADS_ON_CARD = 2  # that keep it busy
# of k-means where few rows far out have much of the error: these draw its starts, and other places
# are missed
_STARTS_BESIDE = 12

# The limits on libraries' threads belong to the whole process: overlapping decodings would restore
# them in the wrong order.
_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def _alone() -> Iterator[None]:
    """One thread in libraries, so that results do not depend on how they split small products."""
    with _ONE_AT_A_TIME, _libraries().limit(limits=1):
        yield


@cache
def _libraries() -> ThreadpoolController:
    """Those that are loaded by now: all that decoding uses. To look for them takes as long as a
    tenth of a decoding may.
    """
    return ThreadpoolController()


class Found(NamedTuple):
    """What a decoder returns, in the problem's coordinates: centroids, their weights as fitted, the
    cost of the measure they stand for, the mean squared distance of that measure to them (which
    decides among equal costs), whether other measures would do as well, and the weight that each
    centroid has from rows that are known, where some were looked for.
    """

    C: Array
    alpha: Array
    cost: float
    spread: float = 0.0
    doubtful: bool = False
    known: Array | None = None


def by_clompr(
    problem: Problem, K: int, init: str, rows: Rows | None, rng: np.random.Generator, threads: int
) -> Found:
    """Algorithm 1 of the paper."""
    C, alpha = clompr(problem, K, make_start(init, problem.lower, problem.upper, rows), rng)
    return Found(C, alpha, cost(problem, C, alpha)[0])


def by_density(
    problem: Problem, K: int, init: str, rows: Rows | None, rng: np.random.Generator, threads: int
) -> Found:
    """Recover a measure that explains the sketch, then place K centroids on it so that its SSE is
    small.
    """
    require_init(init, rows is not None)
    if init == "range":
        rows = None
    if rows is not None and rows.complete:  # the measure is at hand
        C, alpha, spread = place(rows.values, rows.weights, K, rng, device=problem.device)
        return Found(C, alpha, cost(problem, rows.values, rows.shares)[0], spread, known=alpha)
    if K == 1:  # the moments know
        width = (
            np.diag(problem.covariance) if problem.covariance.ndim == 2 else problem.covariance
        )[None]
        return Found(
            problem.mean[None],
            np.ones(1),
            gaussian_cost(problem, problem.mean[None], np.ones(1), width)[0],
            known=np.ones(1),
        )
    if rows is not None and (known := _known(rows, K)).any():
        return _beside_known(problem, K, rows, known, rng, threads)
    bulk, enough = problem.narrowed(), rows is not None and rows.size >= _ROWS_TO_START_FROM * K
    if bulk is not problem and not enough:
        return _beside_imagined(problem, bulk, K, rng, threads)
    problem, prior = bulk, make_prior(bulk, rows if enough else None)
    return _separate_clusters(problem, K, prior, rng) or _any_measure(
        problem, K, prior, rows, rng, threads
    )


def _separate_clusters(
    problem: Problem, K: int, prior: Prior, rng: np.random.Generator
) -> Found | None:
    """Centroids at the atoms of a mixture, if K atoms of one width explain the sketch and hardly
    overlap: then nothing is left to doubt.
    """
    start = begin_mixture(problem, K, prior, rng, search=True)
    if (share := start.own_share(rng)) < _CROWDED:
        _log.info("%d atoms of one width overlap (%.2f of their variance is their own)", K, share)
        return None
    mixture = recover_mixture(problem, start, prior, rng)
    share = mixture.own_share(rng)
    _log.info(
        "%d atoms of one width: cost %.3g, noise %.3g, %.2f of their variance their own",
        K,
        mixture.cost,
        problem.noise,
        share,
    )
    if mixture.cost > problem.noise or share < _SEPARATE:
        return None
    points = np.clip(mixture.draw(rng, max(_SMOOTH_POINTS, 400 * K)), problem.lower, problem.upper)
    split = mixture.better_split()
    on = problem.device
    C = (
        place(points[::_THINNED], None, K, rng, n_init=0, start=mixture.C, device=on)[0]
        if split
        else mixture.C
    )
    C, alpha, _ = place(points, None, K, rng, n_init=0, start=C, search=False, device=on)
    return Found(C, alpha, mixture.cost)


def _any_measure(
    problem: Problem,
    K: int,
    prior: Prior,
    rows: Rows | None,
    rng: np.random.Generator,
    threads: int,
) -> Found:
    _log.info("matching many mixtures of more atoms")
    measure = recover_measure(problem, K, prior, rows, rng, threads)
    C, alpha, _ = place(measure.points, measure.weights, K, rng, device=problem.device)
    return Found(C, alpha, measure.cost, doubtful=True)


def _known(rows: Rows, K: int) -> Array:
    """Which rows lie so far out that they are likely to be in a pool at all, if these are few and
    enough others remain.
    """
    known = rows.chances >= _KNOWN_CHANCE
    few = (
        rows.weights[known].sum() <= _KNOWN_SHARE
        and rows.size - known.sum() >= _ROWS_TO_START_FROM * K
    )
    return known if few else np.zeros_like(known)


def _beside_known(
    problem: Problem, K: int, rows: Rows, known: Array, rng: np.random.Generator, threads: int
) -> Found:
    """Take the known rows out of the sketch, recover a measure of the others from what is left, and
    place centroids on both together.

    A handful of rows far out may have most of the SSE, and be too few for the sketch to show where
    they are.
    """
    far, others = rows.only(known), rows.only(~known)
    _log.info(
        "%d rows far out are known and set aside; matching many mixtures to the others",
        len(far.values),
    )
    rest = problem.without(
        far.values, far.weights, others.values.min(axis=0), others.values.max(axis=0)
    )
    measure = recover_measure(rest, K, make_prior(rest, others), others, rng, threads)
    left = 1 - far.weights.sum()
    weights = np.concatenate([left * measure.weights / measure.weights.sum(), far.weights])
    C, alpha, _ = place(
        np.vstack([measure.points, far.values]),
        weights,
        K,
        rng,
        _STARTS_BESIDE,
        device=problem.device,
    )
    labels = Centroids(C).label(ArraySource(far.values), n_jobs=1)
    return Found(
        C,
        alpha,
        left**2 * measure.cost,
        doubtful=True,
        known=np.bincount(labels, far.weights, minlength=K),
    )


def _beside_imagined(
    problem: Problem, bulk: Problem, K: int, rng: np.random.Generator, threads: int
) -> Found:
    """Recover a measure of the bulk, imagine the rows far out that it lacks, and place centroids on
    both together.
    """
    measure = recover_measure(bulk, K, make_prior(bulk, None), None, rng, threads)
    far, shares = imagine_rows(problem, bulk, measure.points)
    _log.info("%d rows far out are imagined, with %.2g of the weight", len(far), shares.sum())
    weights = np.concatenate([measure.weights / measure.weights.sum(), shares])
    C, alpha, _ = place(
        np.vstack([measure.points, far]), weights, K, rng, _STARTS_BESIDE, device=problem.device
    )
    return Found(C, alpha, measure.cost, doubtful=True)


Decoder = Callable[[Problem, int, str, Rows | None, np.random.Generator, int], Found]

DECODERS: dict[str, Decoder] = {"density": by_density, "clompr": by_clompr}


@dataclass(frozen=True, eq=False)
class Solution(Frozen):
    """What a decoder found.

    Parameters
    ----------
    centroids : array (K, n)
        In the data's own coordinates.
    weights : array (K,)
        The share of each cluster; they sum to one (equation 2).
    raw_weights : array (K,)
        The weights as fitted, before they were made to sum to one.
    cost : float
        |z - A p|^2 of the measure p that was recovered (equation 4): what replicates are ranked by.
        For "clompr" p is the centroids with their raw weights; for "density" a smoother measure
        that the centroids were placed on (without the rows of a pool).
    noise_floor : float
        What that cost would be for the true distribution behind the rows: a cost near it leaves
        nothing to explain.
    findings : tuple of Finding
        What may be wrong, each a status and a sentence; empty when nothing was found.
    columns : tuple of str, optional
        The data's column names.
    decoder : str
        Which decoder found it.
    units : array (n,), optional
        The unit of each column, where they were standardised: distances to centroids count in
        these.
    """

    centroids: Array
    weights: Array
    raw_weights: Array
    cost: float
    noise_floor: float
    findings: tuple[Finding, ...]
    columns: tuple[str, ...] | None
    decoder: str
    units: Array | None = None

    def __post_init__(self) -> None:
        for name in ("centroids", "weights", "raw_weights"):
            object.__setattr__(self, name, read_only(getattr(self, name), np.float64))

    @property
    def unexplained(self) -> float:
        """The residual against the noise: cost / noise_floor. Up to about one, nothing is left to
        explain; where it is far above, the data is more intricate than the measure found, or (for
        "clompr") its clusters have width.
        """
        return self.cost / self.noise_floor if self.noise_floor > 0 else float(self.cost > 0)

    @property
    def status(self) -> Status:
        """The first thing found, "small-sketch", "other-spread", "unexplained", "far-out", "merged"
        or "starved"; else "ok".
        """
        return self.findings[0].status if self.findings else Status.OK

    @property
    def message(self) -> str:
        """What was found, in sentences."""
        if self.findings:
            return " ".join(finding.sentence for finding in self.findings)
        if len(self.weights) == 1 and self.decoder == "density":
            return "Found 1 centroid, the mean of the rows."
        return f"Found {len(self.weights)} centroids; the residual is {self.unexplained:.2g} times the noise floor."

    def predict(self, data: Any, *, nan: str = "error", n_jobs: int | None = None) -> Any:
        """The number of the nearest centroid of each row of `data`, which is whatever `ckm.sketch`
        reads; columns are found by name.

        Rows with missing values are refused, or with `nan="drop"` labelled -1: labels keep the
        rows' places. Labels of rows on a card are a tensor there, and those of a cluster's data a
        collection of its own.
        """
        centroids = self._clusters
        return centroids.label(centroids.open(data), nan=nan, n_jobs=n_jobs)

    def score(self, data: Any, *, nan: str = "error", n_jobs: int | None = None) -> float:
        """Minus the sum of squared distances to the nearest centroid (equation 1), in `units` where
        there are some: larger is better.
        """
        centroids = self._clusters
        return -centroids.sse(centroids.open(data), nan=nan, n_jobs=n_jobs)

    @property
    def _clusters(self) -> Centroids:
        return Centroids(self.centroids, self.units, self.columns)

    def __repr__(self) -> str:
        K, n = self.centroids.shape
        return f"Solution(n_clusters={K}, n_features={n}, cost={self.cost:.6g}, status={self.status.value!r}, decoder={self.decoder!r})"


def decode(
    sketch: Sketch,
    n_clusters: int,
    *,
    decoder: str = "auto",
    init: str = "auto",
    n_init: int = 1,
    random_state: Any = None,
    rows: Any = None,
    n_jobs: int | None = None,
    device: str = "auto",
) -> Solution:
    """Find K centroids and weights whose sketch is close to the data's (equation 4).

    Parameters
    ----------
    sketch : Sketch
        What `ckm.sketch` made. Any number of clusters can be tried on the same sketch.
    n_clusters : int
        K.
    decoder : {"auto", "density", "clompr"}
        "density", which "auto" means, recovers a measure that explains the sketch and places
        centroids on it for a small SSE; "clompr" is Algorithm 1 of the paper.
    init : {"auto", "range", "sample", "k++"}
        Where searches start. For "clompr": anywhere in the data's box; at a sampled row; at a
        sampled row far from the centroids so far; "auto" is "sample" when there are rows to sample
        from, else "range". For "density": "range" ignores sampled rows, the others use them where
        there are some.
    n_init : int
        How many times to decode from other starts; the one with the lowest cost is kept.
    random_state : None, int, Generator or RandomState
        Decides the starts. None draws a new seed each time (the command line's --seed is 0).
    rows : array (p, n), optional
        Rows for "sample" and "k++" to draw from, when they are at hand and the sketch holds no
        pool.
    n_jobs : int, optional
        Threads; None means every core. The result does not depend on it.
    device : {"auto", "cpu", "cuda", "cuda:0", "cuda:1", ...}
        Where to decode. "auto" and "cpu" are the CPU. "cuda" is torch's current GPU, "cuda:1" that
        GPU; it is used if it pays: from K m = 200 000 on (with m = 5 K n a hundred clusters of four
        columns), unless the frequencies are structured. Its results differ by rounding, which may
        lead a search elsewhere. A device that is not there is an error.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
    >>> solution = ckm.decode(ckm.sketch(X, n_clusters=3, pool=100, random_state=0), 3, random_state=0)
    >>> solution.centroids.shape, round(float(solution.weights.sum()), 6)
    ((3, 2), 1.0)
    """
    K, replicates = (
        check_whole_number(n_clusters, "n_clusters", 1),
        check_whole_number(n_init, "n_init", 1),
    )
    name, search = resolve_decoder(decoder)
    _require_decodable(sketch, K)
    on = _decoding_device(sketch, K, device)
    problem, candidates = Problem.of(sketch, on), _starting_rows(sketch, rows)
    seed, threads, began = seed_of(random_state), thread_count(n_jobs), time.perf_counter()

    def searched(problem: Problem, threads: int) -> list[Found]:
        return [
            search(problem, K, init, candidates, stream(seed, "decode", i), threads)
            for i in range(replicates)
        ]

    with _alone():
        try:
            found = searched(problem, threads if on is None else min(threads, _THREADS_ON_CARD))
        except RuntimeError as error:
            if on is None or "out of memory" not in str(error):
                raise
            _log.warning("There is too little memory left on %s to decode there: the CPU does.", on)
            problem = Problem.of(sketch)
            found = searched(problem, threads)
    C, alpha, best, _, _, known = min(found, key=lambda f: (f.doubtful, f.cost, f.spread))
    _log.info(
        "decoded in %.2f s: cost %.3g, noise %.3g", time.perf_counter() - began, best, problem.noise
    )
    centroids = sketch.frequencies.absolute(C)
    total = alpha.sum()
    weights = alpha / total if total > 0 else np.full(K, 1 / K)
    findings = diagnose(problem, C, weights, None if name == "clompr" else best, known)
    centroids = np.clip(centroids, sketch.lower, sketch.upper)
    return Solution(
        centroids,
        weights,
        alpha,
        best,
        problem.noise,
        findings,
        sketch.columns,
        name,
        sketch.frequencies.units,
    )


def _decoding_device(sketch: Sketch, K: int, device: str, min_pairs: int | None = None) -> Any:
    """The GPU that decodes this sketch to K centroids, as a torch.device; None is the CPU.

    `min_pairs` is the number K m of centroids times frequencies from which on a GPU pays, by
    default MIN_GPU_PAIRS.
    """
    found = resolve_device(device)
    # structured frequencies have a fast transform, which saves more than a GPU does
    structured = sketch.frequencies.signs is not None
    least = MIN_GPU_PAIRS if min_pairs is None else min_pairs
    if found is None or structured or K * sketch.frequencies.m < least:
        return None
    return found if found.index is not None else current_gpu()


def resolve_decoder(name: str) -> tuple[str, Decoder]:
    """The decoder called `name`, and its own name where that is "auto"."""
    name = "density" if isinstance(name, str) and name == "auto" else name
    if not isinstance(name, str) or name not in DECODERS:
        raise ParameterError(
            f"There is no decoder {' '.join(repr(name).split())}; choose one of {', '.join(map(repr, ('auto', *DECODERS)))}."
        )
    return name, DECODERS[name]


def _require_decodable(sketch: Sketch, K: int) -> None:
    if not isinstance(sketch, Sketch):
        raise ParameterError(
            f"decode takes a Sketch; got {type(sketch).__name__}. Make one with ckm.sketch, or read one with ckm.load."
        )
    if sketch.count == 0:
        raise DataError(
            "This sketch has seen zero rows, so there is nothing to decode; add sketches of some rows to it first."
        )
    require_rows(sketch.count, K)
    m, n = sketch.frequencies.m, sketch.frequencies.n
    require_enough_frequencies(m, K, n)
    if finding := small_sketch(m, K, n):
        warnings.warn(finding.sentence, SmallSketchWarning, stacklevel=3)


def require_rows(count: int, K: int, where: str = "The data") -> None:
    """Refuse more clusters than rows. (`n_samples` is for scikit-learn, which looks for it.)"""
    if not count:
        raise DataError(
            f"{where} has zero rows (n_samples=0), so there is nothing to cluster; check what was read."
        )
    if count < K:
        has = f"{where} has {count} {'row' if count == 1 else 'rows'} (n_samples={count})"
        raise DataError(f"{has}, too few for n_clusters={K}; ask for at most {count}, or add rows.")


def _starting_rows(sketch: Sketch, rows: Any) -> Rows | None:
    """Distinct rows and weights to start from, in the problem's coordinates."""
    if rows is not None:
        try:
            values = np.asarray(rows, np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"rows must be numbers of shape (p, {sketch.frequencies.n}): {error}."
            ) from None
        if values.ndim != 2 or values.shape[1] != sketch.frequencies.n or not len(values):
            raise DataError(
                f"rows must have shape (p, {sketch.frequencies.n}) with p at least 1; got {values.shape}."
            )
        require_float32(values - sketch.frequencies.origin)
        (values, weights), chances, size = (
            distinct_rows(values, np.ones(len(values))),
            None,
            float(len(values)),
        )
    elif sketch.pool is not None and len(sketch.pool):
        values, weights, chances, size = sketch.pool.estimate()
        weights = weights if sketch.pool.is_complete else weights / sketch.weight
    else:
        return None
    return Rows(
        sketch.frequencies.relative(values),
        weights,
        np.zeros(len(values)) if chances is None else chances,
        size,
    )
