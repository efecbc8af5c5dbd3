"""`ckm.public_frequencies`: the design of a sketch from public knowledge alone."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ckm._core.bounds import Bounds
from ckm._core.defaults import MIN_WIDE_COLUMNS
from ckm._core.drawing import draw_frequencies, scaled_turns
from ckm._core.frequencies import Frequencies
from ckm._core.laws import broad
from ckm._core.nested import NAME as NESTED
from ckm._core.nested import draw_nested
from ckm._core.sketch import Sketch
from ckm._decoding.api import decode
from ckm._decoding.solution import Solution
from ckm._messages import Argument
from ckm._util.arrays import FloatArray
from ckm._util.checks import check_variance, check_whole_number
from ckm._util.random import seed_of, stream
from ckm.errors import ParameterError

# Standard deviation within clusters that is assumed, as a share of half the width of the bounds
# (the root mean square over columns). Frequencies are drawn for half to three times as much
# (`BROAD_RANGE`); real data whose bounds were twice its range had 1/15 to 1/24.
ASSUMED_DEVIATION = 1 / 12
# Frequencies at least: more of them have more noise each, and say as much in all; fewer say too
# little of data in few columns.
MIN_FREQUENCIES = 1000
# And so many for each coordinate of a centroid, where that is more.
PER_COORDINATE = 2
# Variance within clusters at least, as a share of all: a small pilot tells no less.
LEAST_WITHIN = 0.01


def public_frequencies(
    bounds: tuple[Any, Any],
    *,
    n_clusters: int | None = None,
    sketch_size: int | None = None,
    columns: Sequence[str] | None = None,
    scale: float | str = "auto",
    standardize: bool = False,
    max_weight: int | None = None,
    pilot: Sketch | None = None,
    seed: int = 0,
) -> Sketch:
    """Make the design of a sketch from public knowledge alone, for private releases.

    Nothing in it comes from rows: frequencies, origin, scale and units follow from the bounds. For
    64 columns and more, a fifth of the frequencies see ten random mixtures of the columns alone, in
    which a decoder finds clusters first.

    Save it, hand it to everyone who has rows, and sketch those with ``like=`` it: rows are clipped
    to the bounds, so that `ckm.release` can tell how much noise hides one of them.

    Parameters
    ----------
    bounds : tuple of two arrays (n,)
        The smallest and the largest value of each column that count. They must be public
        knowledge: an age from 0 to 110, not the oldest person in the data. Noise grows with their
        width; values beyond are moved to them.
    n_clusters : int, optional
        The number K of clusters that releases will be decoded to. Sets the number of frequencies
        unless `sketch_size` is given: 2 K n, and at least 1000.
    sketch_size : int, optional
        The number m of frequencies.
    columns : sequence of str, optional
        The names of the columns.
    scale : "auto" or float, default="auto"
        The variance sigma^2 within clusters, along an axis, if it is public knowledge (in units of
        half widths if `standardize`). "auto" assumes a twelfth of half the width of the bounds,
        squared, and draws frequencies for many scales around it.
    standardize : bool, default=False
        Measure each column in units of half the width of its bounds.
    max_weight : int, optional
        The largest weight of a row that counts, a whole number up to 1000, if rows have weights:
        public knowledge, too. Weights must then be whole numbers, a row of weight w counts as w
        rows, and larger weights are lowered to this. Noise grows in proportion to it.
    pilot : Sketch, optional
        A small private release of the same kind of rows (same bounds), from which scale, origin
        and spread are estimated. It costs budget of its own; use it where bounds are far wider
        than the data.
    seed : int, default=0
        The seed of the frequencies. It is public.

    Returns
    -------
    Sketch
        An empty sketch: ``design.save(...)``, then ``ckm.sketch(rows, like=design)``.

    Raises
    ------
    ckm.errors.ParameterError
        The bounds are empty, not finite or in the wrong order, the cap on weights is out of range,
        or the size is not known.

    See Also
    --------
    ckm.release : Add noise to a sketch, so that it can be shared.

    Examples
    --------
    >>> import numpy as np
    >>> import ckm
    >>> design = ckm.public_frequencies(([0, 0], [110, 250]), n_clusters=3, columns=["age", "cm"])
    >>> design.frequencies.m, design.count
    (1000, 0)
    >>> people = np.random.default_rng(0).normal([40, 170], [10, 8], size=(5000, 2))
    >>> ckm.sketch(people, like=design).count
    5000
    """
    limits = checked_bounds(bounds, max_weight)
    n = len(limits.lower)
    m = _size(n_clusters, sketch_size, n)
    names = _checked_names(columns, n)
    if pilot is not None:
        return Sketch.empty(_around_pilot(pilot, limits, m, n_clusters, seed_of(seed)), names)
    units = limits.half if standardize else None
    own = np.ones(n) if standardize else limits.half
    sigma2 = float(np.mean(own**2)) * ASSUMED_DEVIATION**2
    if not isinstance(scale, str) or scale != "auto":
        sigma2 = check_variance(scale, "scale")
    return Sketch.empty(_draw(m, limits, sigma2, units, seed_of(seed)), names)


def _draw(m: int, bounds: Bounds, scale: float, units: FloatArray | None, seed: int) -> Frequencies:
    """Frequencies of many scales around `scale`; nested ones for many columns."""
    n = len(bounds.lower)
    rng = stream(seed, "frequencies")
    is_wide = n >= MIN_WIDE_COLUMNS
    unit = draw_nested(rng, m, n, seed) if is_wide else broad(rng, m, n)
    drawn = Frequencies(
        scaled_turns(unit, scale, units),
        bounds.middle,
        scale,
        NESTED if is_wide else "broad",
        seed,
        units=units,
        bounds=bounds,
    )
    drawn.require_possible_lengths()
    return drawn


def _around_pilot(
    pilot: Sketch, bounds: Bounds, m: int, n_clusters: int | None, seed: int
) -> Frequencies:
    """Frequencies for the scale, origin and spread that a first release tells."""
    own = pilot.frequencies.bounds if isinstance(pilot, Sketch) else None
    if own is None or pilot.release is None:
        raise ParameterError(
            Argument("pilot"),
            " must be a private release (ckm.release) with the same bounds: what is not private "
            "would be in every sketch of this design.",
        )
    if not (np.array_equal(own.lower, bounds.lower) and np.array_equal(own.upper, bounds.upper)):
        raise ParameterError(
            Argument("pilot"), " has other bounds than this design; make both with the same ones."
        )
    units = pilot.frequencies.units
    n = len(bounds.lower)
    variances = pilot.central_moment.diagonal / (1.0 if units is None else units**2)
    spread = float(variances.mean())
    within = spread / 2
    if n_clusters is not None:
        found = decode_quietly(pilot, n_clusters, seed)
        offsets = found.centroids - found.weights @ found.centroids
        between = found.weights @ (offsets / (1.0 if units is None else units)) ** 2
        within = spread - float(between.mean())
    return draw_frequencies(
        m,
        n,
        scale=max(within, LEAST_WITHIN * spread),
        origin=pilot.mean,
        spread=spread,
        units=units,
        seed=seed,
        bounds=bounds,
    )


def decode_quietly(pilot: Sketch, K: int, seed: int) -> Solution:
    """Decode without warnings: the pilot is too small for good centroids, and none are kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return decode(pilot, K, random_state=seed)


def checked_bounds(bounds: Any, max_weight: int | None = None) -> Bounds:
    """Bounds as they were given; ParameterError if they cannot be."""
    try:
        lower, upper = bounds
        return Bounds(np.asarray(lower, np.float64), np.asarray(upper, np.float64), max_weight)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(
            Argument("bounds"),
            " must be two arrays of numbers, the lower and the upper value of each column; got "
            f"{type(bounds).__name__}.",
        ) from None


def _size(n_clusters: int | None, sketch_size: int | None, n: int) -> int:
    """The number of frequencies."""
    if sketch_size is not None:
        return check_whole_number(sketch_size, "sketch_size", 1)
    if n_clusters is None:
        raise ParameterError(
            "The number of frequencies is not known; give ",
            Argument("n_clusters", ...),
            " or ",
            Argument("sketch_size", ...),
            ".",
        )
    coordinates = check_whole_number(n_clusters, "n_clusters", 1) * n
    return max(PER_COORDINATE * coordinates, MIN_FREQUENCIES)


def _checked_names(columns: Sequence[str] | None, n: int) -> tuple[str, ...] | None:
    if columns is None:
        return None
    names = tuple(columns)
    if len(names) != n or not all(isinstance(name, str) for name in names):
        raise ParameterError(
            Argument("columns"), f" must be {n} names, one for each column of the bounds."
        )
    if len(set(names)) != n:
        raise ParameterError(Argument("columns"), " must be different names.")
    return names
