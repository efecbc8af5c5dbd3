"""`decode(sketch, K)`: centroids from a sketch alone, in time that does not depend on the number of rows."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ckm.atoms import Problem, cost
from ckm.candidates import Start, make_start
from ckm.checks import whole_number
from ckm.clompr import clompr
from ckm.errors import DataError, ParameterError
from ckm.pool import distinct_rows
from ckm.readonly import Array, read_only
from ckm.seeding import seed_of, stream
from ckm.sketches import Sketch
from ckm.sketching import require_enough

Decoder = Callable[[Problem, int, Start, np.random.Generator], tuple[Array, Array]]

DECODERS: dict[str, Decoder] = {"clompr": clompr}


class Status(StrEnum):
    """How a decoding ended."""

    OK = "ok"
    STARVED = "starved"  # some centroids have no weight: fewer clusters were found than asked for


@dataclass(frozen=True, eq=False)
class Solution:
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
        |z - sum_k alpha_k a(c_k)|^2 with the raw weights (equation 4): what replicates are ranked by.
    status : Status
        "ok", or "starved" when some centroid was left without weight.
    columns : tuple of str, optional
        The data's column names.
    decoder : str
        Which decoder found it.
    """

    centroids: Array
    weights: Array
    raw_weights: Array
    cost: float
    status: Status
    columns: tuple[str, ...] | None
    decoder: str

    def __post_init__(self) -> None:
        for name in ("centroids", "weights", "raw_weights"):
            object.__setattr__(self, name, read_only(getattr(self, name), np.float64))

    @property
    def message(self) -> str:
        """The status in a sentence."""
        if self.status is Status.OK:
            return f"Found {len(self.weights)} centroids."
        empty = int((self.weights == 0).sum())
        return f"{empty} of {len(self.weights)} centroids have no weight; ask for fewer clusters, or use a larger sketch."

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
) -> Solution:
    """Find K centroids and weights whose sketch is close to the data's (equation 4).

    Parameters
    ----------
    sketch : Sketch
        What `ckm.sketch` made. Any number of clusters can be tried on the same sketch.
    n_clusters : int
        K.
    decoder : {"auto", "clompr"}
        "clompr" is Algorithm 1 of the paper, and what "auto" means.
    init : {"auto", "range", "sample", "k++"}
        Where each search for a new centroid starts: anywhere in the data's box; at a sampled row; at a sampled row far from the centroids
        so far. "auto" is "sample" when there are rows to sample from, else "range".
    n_init : int
        How many times to decode from other starts; the one with the lowest cost is kept.
    random_state : None, int, Generator or RandomState
        Decides the starts.
    rows : array (p, n), optional
        Rows for "sample" and "k++" to draw from, when they are at hand and the sketch holds no pool.

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
    K, replicates = whole_number(n_clusters, "n_clusters", 1), whole_number(n_init, "n_init", 1)
    name, search = resolve_decoder(decoder)
    _require_decodable(sketch, K)
    problem = Problem.of(sketch)
    start = make_start(init, problem.lower, problem.upper, _starting_rows(sketch, rows))
    seed = seed_of(random_state)
    with threadpool_limits(limits=1):  # so that results do not depend on how BLAS splits small products
        found = [search(problem, K, start, stream(seed, "decode", i)) for i in range(replicates)]
        costs = [cost(problem, C, alpha)[0] for C, alpha in found]
    best = int(np.argmin(costs))
    C, alpha = found[best]
    centroids = sketch.frequencies.origin + np.sqrt(sketch.frequencies.scale) * C
    total = alpha.sum()
    weights = alpha / total if total > 0 else np.full(K, 1 / K)
    status = Status.OK if (weights > 0).all() and total > 0 else Status.STARVED
    return Solution(np.clip(centroids, sketch.lower, sketch.upper), weights, alpha, costs[best], status, sketch.columns, name)


def resolve_decoder(name: str) -> tuple[str, Decoder]:
    """The decoder called `name`, and its own name where that is "auto"."""
    name = "clompr" if name == "auto" else name
    if name not in DECODERS:
        raise ParameterError(f"There is no decoder {name!r}; choose one of {', '.join(map(repr, ('auto', *DECODERS)))}.")
    return name, DECODERS[name]


def _require_decodable(sketch: Sketch, K: int) -> None:
    if not isinstance(sketch, Sketch):
        raise ParameterError(f"decode takes a Sketch; got {type(sketch).__name__}. Make one with ckm.sketch, or read one with ckm.load.")
    if sketch.count == 0:
        raise DataError("This sketch has seen zero rows, so there is nothing to decode; add sketches of some rows to it first.")
    require_rows(sketch.count, K)
    require_enough(sketch.frequencies.m, K, sketch.frequencies.n)


def require_rows(count: int, K: int) -> None:
    """Refuse more clusters than rows."""
    if count < K:
        rows = "row" if count == 1 else "rows"
        raise DataError(f"n_samples={count} {rows} cannot make n_clusters={K} clusters; ask for at most {count}, or add rows.")


def _starting_rows(sketch: Sketch, rows: Any) -> tuple[Array, Array] | None:
    """Distinct rows and weights to start from, in the problem's coordinates."""
    if rows is not None:
        values, weights = np.asarray(rows, np.float64), np.ones(len(rows))
        if values.ndim != 2 or values.shape[1] != sketch.frequencies.n or not len(values):
            raise DataError(f"rows must have shape (p, {sketch.frequencies.n}) with p at least 1; got {values.shape}.")
        values, weights = distinct_rows(values, weights)
    elif sketch.pool is not None and len(sketch.pool):
        values, weights = sketch.pool.distinct()
    else:
        return None
    return (values - sketch.frequencies.origin) / np.sqrt(sketch.frequencies.scale), weights
