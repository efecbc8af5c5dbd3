"""`decode(sketch, K)`: centroids from a sketch alone, in time that does not depend on the number of
rows.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ckm._core.laws import require_enough_frequencies
from ckm._core.preparation import prepared, unprepared
from ckm._core.sketch import Sketch
from ckm._decoding.candidate import Candidate
from ckm._decoding.clompr import by_clompr
from ckm._decoding.coordinates import Coordinates, exact_units
from ckm._decoding.density import by_density
from ckm._decoding.diagnosis import diagnose, diagnose_projection
from ckm._decoding.lifting import lift_centroids
from ckm._decoding.numbering import given_centroids, heaviest_first, numbered_as, require_number
from ckm._decoding.problem import Problem
from ckm._decoding.requirements import require_decodable, require_noised_rows, require_rows
from ckm._decoding.row_measure import RowMeasure
from ckm._decoding.sample import SampledRows
from ckm._decoding.settings import DEFAULT, Settings
from ckm._decoding.solution import Solution
from ckm._decoding.starts import Init, is_random, resolve_n_init
from ckm._decoding.status import Finding, Status
from ckm._messages import Argument
from ckm._util.arrays import FloatArray
from ckm._util.checks import check_whole_number
from ckm._util.device import current_gpu, resolve_device
from ckm._util.parallel import one_library_thread, thread_count
from ckm._util.random import RandomState, seed_of, stream
from ckm._util.warn import warn_user
from ckm.errors import ClustersWarning, ParameterError, SmallSketchWarning

_log = logging.getLogger(__name__)

# problem, K, init, sampled rows, random generator, threads -> what was found
Decoder = Callable[[Problem, int, Init, SampledRows | None, np.random.Generator, int], Candidate]

DECODERS: dict[str, Decoder] = {"density": by_density, "clompr": by_clompr}


def decode(
    sketch: Sketch,
    n_clusters: int,
    *,
    decoder: str = "auto",
    init: Any = "auto",
    n_init: int | str = 1,
    match: Any = None,
    random_state: RandomState = None,
    rows: ArrayLike | None = None,
    n_jobs: int | None = None,
    device: str = "auto",
) -> Solution:
    """Find K centroids and weights whose sketch is close to the data's (equation 4).

    The data itself is not needed, and any number of clusters can be tried on the same sketch.

    Parameters
    ----------
    sketch : Sketch
        The sketch of the data, from `ckm.sketch`, `ckm.load` or `ckm.merge`.
    n_clusters : int
        The number of clusters, K.
    decoder : {"auto", "density", "clompr"}, default="auto"
        "density", which "auto" means, recovers a measure that explains the sketch and places
        centroids on it for a small SSE. "clompr" is Algorithm 1 of the paper.
    init : {"auto", "range", "sample", "k++"}, array (K, n) or Solution, default="auto"
        Where searches start. An array, or the centroids of an earlier solution, is where k-means on
        the recovered measure starts ("density"), or each search for a centroid ("clompr"); a search
        replaces them only if its SSE is lower by 0.1 %, and centroids are numbered as with
        `match`. Names, for "clompr": uniformly in the data's box; at a sampled row; at a
        sampled row, chosen with a probability proportional to its squared distance to the centroids
        so far. "auto" is "sample" if there are sampled rows, else "range". For "density": "range"
        ignores sampled rows, the others use them if there are some. "random" and "k-means++",
        scikit-learn's names, are "sample" and "k++".
    n_init : int or "auto", default=1
        The number of runs from different starts. The one with the lowest cost is kept. "auto" is 10
        for random starts ("sample" and "random"), else 1.
    match : array (k, n) or Solution, optional
        Earlier centroids, by which the new ones are numbered: as those that they are matched with,
        so that the sum of distances is smallest. New ones that are left over are numbered after
        these, and if there are fewer than before, they stay in order. Without it, and without
        centroids for `init`, centroids are numbered in descending order of their weights, those of
        equal weight by their coordinates.
    random_state : None, int, Generator or RandomState, optional
        The seed of the starts. None draws a new seed each time.
    rows : float64 array (p, n), optional
        Rows for "sample" and "k++" to draw from, instead of the sketch's pool.
    n_jobs : int, optional
        The number of threads; None means every core. The result does not depend on it.
    device : {"auto", "cpu", "cuda", "cuda:0", "cuda:1", ...}, default="auto"
        Where to decode. "auto" and "cpu" are the CPU. "cuda" is torch's current GPU, "cuda:1" that
        GPU. A GPU is used if it pays: from K m = 200 000 on (with m = 5 K n, a hundred clusters of
        four columns), unless the frequencies are structured. Its results differ by rounding, which
        may lead a search to another solution. A device that is not there is an error.

    Returns
    -------
    Solution
        Centroids, weights, and what may be wrong with them.

    Raises
    ------
    ParameterError
        If an argument is out of range, if the sketch is too small for so many clusters and has
        fewer than two cells for each, or if `init` needs rows and there are none.
    DataError
        If the sketch has fewer rows than clusters, or if `rows` does not have the data's shape.
    MismatchError
        If the solution given as `init` or `match` has other columns.

    Warns
    -----
    SmallSketchWarning
        If the sketch has fewer than 2 K n frequencies, and centroids were not placed on cells.
    ClustersWarning
        For each other finding of the solution: what may be wrong with the centroids.

    See Also
    --------
    sketch : Computes the sketch of data.
    CompressiveKMeans : Sketches and decodes, as a scikit-learn estimator.

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
    >>> s = ckm.sketch(X, n_clusters=3, pool=100, random_state=0)
    >>> solution = ckm.decode(s, 3, random_state=0)
    >>> solution.centroids.shape, round(float(solution.weights.sum()), 6)
    ((3, 2), 1.0)

    The same sketch with another seed, its clusters numbered as before:

    >>> again = ckm.decode(s, 3, match=solution, random_state=1)
    >>> bool(abs(again.centroids - solution.centroids).max() < 0.1)
    True
    """
    starts: tuple[FloatArray, ...] = ()
    replicates = resolve_n_init(n_init, is_random(init))
    require_decodable(sketch)
    n = sketch.frequencies.n_features
    if not isinstance(init, str):
        given = given_centroids(init, n, sketch.columns, "init")
        require_number(given, check_whole_number(n_clusters, "n_clusters", 1), "init")
        starts = (given,) * replicates
    solution = find_centroids(
        sketch,
        n_clusters,
        decoder=decoder,
        init=init if isinstance(init, str) else "auto",
        starts=starts,
        replicates=replicates,
        match=None if match is None else given_centroids(match, n, sketch.columns, "match"),
        random_state=random_state,
        rows=rows,
        n_jobs=n_jobs,
        device=device,
    )
    warn_of_findings(solution.findings)
    return solution


def find_centroids(
    sketch: Sketch,
    n_clusters: int,
    *,
    decoder: str,
    init: str,
    starts: tuple[FloatArray, ...],
    replicates: int,
    random_state: RandomState,
    n_jobs: int | None,
    device: str,
    rows: ArrayLike | None = None,
    match: FloatArray | None = None,
    settings: Settings = DEFAULT,
) -> Solution:
    """`decode` from checked centroids `starts` (see `Run`), and without warnings."""
    K = check_whole_number(n_clusters, "n_clusters", 1)
    name, search = resolve_decoder(decoder)
    if sketch.release is not None:
        require_noised_rows(sketch.release, K)
    require_rows(sketch.count, K)
    require_size(sketch, K, name)
    run = Run(
        name=name,
        search=search,
        K=K,
        init=init,
        rows=SampledRows.of(sketch, rows, Coordinates.exact(sketch)),
        seed=seed_of(random_state),
        replicates=replicates,
        threads=thread_count(n_jobs),
        starts=starts,
        match=match,
    )
    return run.decode(sketch, choose_device(sketch, K, device), settings)


def warn_of_findings(findings: Iterable[Finding]) -> None:
    """Warn of each, at the line of the user's code."""
    for finding in findings:
        is_small = finding.status is Status.SMALL_SKETCH
        warn_user(finding.sentence, SmallSketchWarning if is_small else ClustersWarning)


@dataclass(frozen=True, eq=False)
class Run:
    """Checked arguments of `decode`: a decoder and all that it needs beside the sketch.

    Parameters
    ----------
    name : str
        The decoder's name.
    search : Decoder
        The decoder.
    K : int
        The number of clusters.
    init : str
        Where searches start.
    rows : SampledRows or None
        Rows to start from.
    seed : int
        The seed of all replicates.
    replicates : int
        The number of runs, of which the best is kept.
    threads : int
        The number of threads.
    starts : tuple of float64 arrays (K, n)
        Centroids, in the data's columns, that each replicate starts from instead of `init`.
    match : float64 array (k, n) or None
        Earlier centroids that the new ones are numbered by; the first start, if there is none.
    """

    name: str
    search: Decoder
    K: int
    init: str
    rows: SampledRows | None
    seed: int
    replicates: int = 1
    threads: int = 1
    starts: tuple[FloatArray, ...] = ()
    match: FloatArray | None = None

    def decode(
        self,
        sketch: Sketch,
        device: Any = None,
        settings: Settings = DEFAULT,
    ) -> Solution:
        """The best replicate, in the data's coordinates."""
        started = time.perf_counter()
        with one_library_thread():
            problem, candidates = self._search_on(sketch, device, settings)
        chosen = min(range(len(candidates)), key=lambda i: candidates[i].rank)
        best = candidates[chosen]
        earlier = self.starts[chosen] if self.match is None and self.starts else self.match
        seconds = time.perf_counter() - started
        _log.info("decoded in %.2f s: cost %.3g, noise %.3g", seconds, best.cost, problem.noise)
        return make_solution(sketch, problem, best, self.name, _pool_size(self.rows), earlier)

    def _search_on(
        self, sketch: Sketch, device: Any, settings: Settings
    ) -> tuple[Problem, list[Candidate]]:
        """All replicates on this device, or on the CPU if the device has too little memory."""
        problem = Problem.of(sketch, device, settings, Coordinates.exact(sketch))
        if device is None:
            return problem, self._search(sketch, problem, self.threads)
        try:
            return problem, self._search(sketch, problem, min(self.threads, settings.gpu_threads))
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            _log.warning("There is too little memory left on %s; decoding on the CPU.", device)
            return self._search_on(sketch, None, settings)

    def _search(self, sketch: Sketch, problem: Problem, threads: int) -> list[Candidate]:
        starts: list[Init] = [_in_problem(sketch, problem, start) for start in self.starts]
        inits = starts or [self.init] * self.replicates
        generators = [stream(self.seed, "decode", i) for i in range(len(inits))]
        return [
            self.search(problem, self.K, init, self.rows, rng, threads)
            for init, rng in zip(inits, generators, strict=True)
        ]


def _in_problem(sketch: Sketch, problem: Problem, centroids: FloatArray) -> FloatArray:
    """Centroids in the coordinates of the problem that a sketch poses."""
    projection = sketch.frequencies.projection
    values = prepared(centroids, sketch.frequencies.preparation)
    values = values if projection is None else projection.reduce(values)
    coordinates = problem.coordinates or Coordinates.of_design(sketch)
    return np.ascontiguousarray(coordinates.relative(values))


def make_solution(
    sketch: Sketch,
    problem: Problem,
    found: Candidate,
    decoder: str,
    pool: int,
    earlier: FloatArray | None = None,
) -> Solution:
    """What a decoder of this name found, in the data's coordinates, with its diagnosis; it had
    `pool` sampled rows. Centroids are numbered as `earlier` ones (k, n), else by weight.
    """
    # The cost of "clompr" is always large, because Diracs have no width: it is not diagnosed. Nor
    # is that of the few cells of wide rows, which are not round: the sketch certifies them or not.
    is_wide = sketch.frequencies.projection is not None
    cost = None if decoder == "clompr" or (is_wide and found.is_counted) else found.cost
    coordinates = problem.coordinates or Coordinates.of_design(sketch)
    centroids = np.clip(coordinates.absolute(found.C), sketch.lower, sketch.upper)
    centroids = lift_centroids(sketch, centroids)
    preparation = sketch.frequencies.preparation
    units = exact_units(sketch)
    if earlier is None:
        order = heaviest_first(centroids, found.weights)
    else:
        order = numbered_as(prepared(earlier, preparation), centroids, found.weights, units)
    return Solution(
        centroids=unprepared(centroids[order], preparation),
        weights=found.weights[order],
        raw_weights=found.alpha[order],
        cost=found.cost,
        noise_floor=problem.noise,
        findings=(
            *diagnose_projection(sketch),
            *diagnose(problem, found, cost, pool=pool, columns=column_names(sketch)),
        ),
        columns=sketch.columns,
        decoder=decoder,
        units=units,
        metric=sketch.frequencies.metric,
        distribution=(
            None if found.measure is None else RowMeasure.of(sketch, found.measure, coordinates)
        ),
        preparation=preparation,
    )


def column_names(sketch: Sketch) -> tuple[str, ...] | None:
    """The names of what is decoded: columns, not the axes that rows are projected to."""
    return sketch.columns if sketch.frequencies.projection is None else None


def _pool_size(rows: SampledRows | None) -> int:
    return len(rows.values) if rows else 0


def choose_device(sketch: Sketch, K: int, device: str, settings: Settings = DEFAULT) -> Any:
    """The GPU that decodes this sketch to K centroids, as a torch.device; None for the CPU."""
    found = resolve_device(device)
    # Structured frequencies have a fast transform, which saves more than a GPU does.
    is_structured = sketch.frequencies.signs is not None
    is_small = K * sketch.frequencies.m < settings.min_gpu_pairs
    if found is None or is_structured or is_small:
        return None
    return found if found.index is not None else current_gpu()


def resolve_decoder(name: str) -> tuple[str, Decoder]:
    """The decoder called `name`, and its own name if that is "auto"."""
    name = "density" if isinstance(name, str) and name == "auto" else name
    if not isinstance(name, str) or name not in DECODERS:
        given = " ".join(repr(name).split())
        choices = ", ".join(map(repr, ("auto", *DECODERS)))
        raise ParameterError(
            "There is no ", Argument("decoder"), f" {given}; choose one of {choices}."
        )
    return name, DECODERS[name]


def require_size(sketch: Sketch, K: int, decoder: str) -> None:
    """Refuse a sketch with too few frequencies for K clusters, unless the decoder of this name
    places centroids on the cells that it has.
    """
    cells = sketch.cells if uses_cells(decoder) else None
    n_cells = 0 if cells is None else len(cells.anchors)
    require_enough_frequencies(sketch.frequencies.m, K, sketch.frequencies.n, n_cells)


def uses_cells(decoder: str) -> bool:
    """Whether the decoder of this name places centroids on cells."""
    return resolve_decoder(decoder)[0] == "density"
