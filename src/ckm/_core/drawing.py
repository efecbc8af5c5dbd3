"""`ckm.draw_frequencies`: random frequencies from one of the laws."""

import math

import numpy as np

from ckm._core.bounds import Bounds
from ckm._core.defaults import DEFAULT_DISTRIBUTION
from ckm._core.frequencies import Frequencies
from ckm._core.laws import draw_structure, find_law, multiscale
from ckm._core.projection import Projection
from ckm._util.arrays import Float32Array, FloatArray
from ckm._util.checks import EUCLIDEAN, check_variance, check_whole_number
from ckm._util.random import seed_of, stream


def draw_frequencies(
    m: int,
    n: int,
    *,
    scale: float = 1.0,
    distribution: str = DEFAULT_DISTRIBUTION,
    origin: FloatArray | None = None,
    spread: float | None = None,
    units: FloatArray | None = None,
    seed: int = 0,
    projection: Projection | None = None,
    metric: str = EUCLIDEAN,
    bounds: Bounds | None = None,
) -> Frequencies:
    """Draw m random frequencies in dimension n.

    `ckm.sketch` draws frequencies by itself. Draw them first where several parties, who may not
    share rows, have to agree on them: the same arguments give the same frequencies everywhere.

    Parameters
    ----------
    m : int
        The number of frequencies: the size of the sketch.
    n : int
        The dimension: the number of columns of the data.
    scale : float, default=1.0
        The variance sigma^2 within a cluster, along an axis.
    distribution : str, default="multiscale"
        The distribution of the frequencies.

        - "adapted-radius" is the one of the paper.
        - "multiscale" draws from it at variances around `scale`, and up to `spread` if the data is
          much wider than its clusters.
        - "structured" is "multiscale" in directions that a fast transform multiplies by, for data
          of many columns.
        - "folded-gaussian" and "gaussian" are there for comparison.
    origin : float64 array (n,), optional
        Subtracted from every row first; zero by default. The mean of the data is a good choice.
    spread : float, optional
        The variance of the data along an axis, if it is known.
    units : float64 array (n,), optional
        The unit of each column, to standardise the columns; `scale` and `spread` are measured in
        these units.
    seed : int, default=0
        The seed of the random numbers.
    projection : Projection, optional
        What maps the rows of wide data to the n numbers that these frequencies are for.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine" divides each row by its length first: `scale`, `origin` and `spread` are those of
        unit rows.
    bounds : Bounds, optional
        Public bounds of the columns, see `ckm.public_frequencies`.

    Returns
    -------
    Frequencies
        The frequencies, to be used as in ``ckm.sketch(X, like=ckm.Sketch.empty(frequencies))``.

    Raises
    ------
    ckm.errors.ParameterError
        An argument is out of range, or the frequencies would not be finite in float32.

    Examples
    --------
    >>> import numpy as np
    >>> import ckm
    >>> agreed = ckm.Sketch.empty(ckm.draw_frequencies(100, 3, scale=2.0, seed=1))
    >>> rng = np.random.default_rng(0)
    >>> one = ckm.sketch(rng.normal(size=(500, 3)), like=agreed)
    >>> other = ckm.sketch(rng.normal(size=(800, 3)), like=agreed)
    >>> (one + other).count
    1300
    """
    m = check_whole_number(m, "m", 1)
    n = check_whole_number(n, "n", 1)
    seed = seed_of(seed)
    scale = check_variance(scale, "scale")
    rng = stream(seed, "frequencies")
    reach = 1.0 if spread is None else check_variance(spread, "spread") / scale
    signs = None
    if distribution == "structured":
        unit, signs = draw_structure(rng, m, n, reach)
    elif distribution == "multiscale":
        unit = multiscale(rng, m, n, reach)
    else:
        unit = find_law(distribution)(rng, m, n)
    # The units of structured frequencies are in the first of their diagonals.
    turns = scaled_turns(unit, scale, None if signs is not None else units)
    origin = np.zeros(n) if origin is None else origin
    drawn = Frequencies(
        turns, origin, scale, distribution, seed, spread, units, signs, projection, metric, bounds
    )
    drawn.require_possible_lengths()
    return drawn


def scaled_turns(unit: FloatArray, scale: float, units: FloatArray | None = None) -> Float32Array:
    """The turns of frequencies (m, n), or of their lengths (m,), that were drawn at sigma^2 = 1."""
    with np.errstate(over="ignore"):
        turns = unit / (2 * np.pi * math.sqrt(check_variance(scale, "scale")))
        return np.asarray((turns if units is None else turns / units).astype(np.float32))
