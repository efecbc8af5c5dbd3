"""A mixture of Gaussians that explains a sketch, found quickly: for what chance does to it."""

import logging
from typing import NamedTuple

import numpy as np

from ckm._core.laws import FREQUENCIES_PER_PARAMETER
from ckm._decoding.cells import CellMeasure
from ckm._decoding.ensemble import fit_member
from ckm._decoding.problem import Problem
from ckm._decoding.search import make_prior
from ckm._util.arrays import FloatArray

_log = logging.getLogger(__name__)

# Clusters that are looked for if nobody says how many: those that the sketch is large enough for,
# but not more than one can look at.
MAX_CLUSTERS = 20
# The RMS residual per frequency, beyond chance, up to which cells stand for the data. Traces of the
# covariance of features are then within some per cent.
CELL_RESIDUAL = 0.05


class Explanation(NamedTuple):
    """Gaussians in the coordinates of a problem.

    Parameters
    ----------
    shares : float64 array (Q,)
        Their weights, which sum to one.
    means : float64 array (Q, n)
        Their means.
    variances : float64 array (Q,) or (Q, n)
        Their variances along every axis, or along each.
    residual : float
        The RMS difference per frequency between their sketch and the data's, beyond chance.
    """

    shares: FloatArray
    means: FloatArray
    variances: FloatArray
    residual: float


def usual_clusters(problem: Problem) -> int:
    """The number of clusters K that m = 5 K n frequencies are for, from 1 to `MAX_CLUSTERS`."""
    fitting = problem.m // (FREQUENCIES_PER_PARAMETER * problem.n)
    return max(1, min(MAX_CLUSTERS, fitting))


def explain(problem: Problem, n_clusters: int, rng: np.random.Generator) -> Explanation:
    """Gaussians whose sketch is the data's: those of its cells, or else as many as there are
    clusters, matched to the sketch.
    """
    cells = problem.cells
    if cells is not None:
        found = _explain_by_cells(problem, cells)
        if found.residual <= CELL_RESIDUAL or not problem.determines(n_clusters):
            return found
    bulk = problem.without_outliers()
    mixture = fit_member(bulk, n_clusters, make_prior(bulk, None), rng)
    residual = _residual(problem, mixture.cost)
    _log.info("%d Gaussians explain the sketch up to %.2g per frequency", n_clusters, residual)
    return Explanation(mixture.shares, mixture.C, mixture.width, residual)


def _explain_by_cells(problem: Problem, cells: CellMeasure) -> Explanation:
    residual = _residual(problem, cells.cost(problem.objective))
    _log.info("%d cells explain the sketch up to %.2g per frequency", len(cells.shares), residual)
    return Explanation(cells.shares, cells.means, cells.variances, residual)


def _residual(problem: Problem, cost: float) -> float:
    return float(np.sqrt(max(0.0, cost - problem.noise) / problem.m))
