"""Private releases as sketches: they are saved, merged and decoded as others are."""

import numpy as np

from ckm._core.budget import Budget
from ckm._core.combining import agreed_columns
from ckm._core.frequencies import Frequencies
from ckm._core.moments import has_full_moment
from ckm._core.noised_moments import noised_moments
from ckm._core.release import Release
from ckm._core.sketch import Sketch
from ckm._core.tally import Tally
from ckm._messages import Argument
from ckm.errors import ParameterError

POPULATIONS = ("disjoint", "same")


def released_sketch(
    frequencies: Frequencies, release: Release, columns: tuple[str, ...] | None
) -> Sketch:
    """The sketch of a release: all that it holds follows from the noised numbers and the design."""
    assert frequencies.bounds is not None
    is_full = has_full_moment(frequencies.m, frequencies.n)
    mean, covariance = noised_moments(frequencies, release, full=is_full)
    weight = release.size
    shift = mean - frequencies.origin
    tally = Tally(
        release.sums.astype(np.float64),
        weight,
        max(1, round(weight)),
        frequencies.bounds.lower,
        frequencies.bounds.upper,
        weight * shift,
        weight * covariance.plus_outer(shift).values,
        tight=False,
        squared_weight=weight * release.max_weight,
    )
    return Sketch(frequencies, tally, columns, release=release)


def add_releases(a: Sketch, b: Sketch, population: str | None) -> Sketch:
    """The release of the rows of both sketches, of which both must be releases."""
    if a.release is None or b.release is None:
        raise ParameterError(
            "One of these sketches is a private release and the other is not: their sum would "
            "hold exact sums of rows. Release each of them first."
        )
    budget = _joint_budget(a.release.budget, b.release.budget, population)
    columns = agreed_columns(a, b)
    return released_sketch(a.frequencies, a.release.plus(b.release, budget), columns)


def _joint_budget(a: Budget, b: Budget, population: str | None) -> Budget:
    if population == "disjoint":
        return a.largest(b)
    if population == "same":
        return a.together(b)
    seen = "" if population is None else f" (not {population!r})"
    raise ParameterError(
        f"What private releases reveal together depends on whose rows they are{seen}: merge them "
        "with ",
        Argument("population", "disjoint"),
        " if no one is in two of them, or with ",
        Argument("population", "same"),
        " otherwise.",
    )
