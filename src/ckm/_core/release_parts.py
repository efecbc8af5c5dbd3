"""Private releases in files: the design, the noised numbers and the budget, and nothing else.

Two data sets with the same noised numbers give the same bytes: whatever else a sketch shows (bounds
of the data, moments) is left out, or follows from the noised numbers when the file is read.
"""

import numpy as np

from ckm._core.budget import Budget
from ckm._core.container import Metadata, Tensors
from ckm._core.frequencies import Frequencies
from ckm._core.release import Release
from ckm._core.released import released_sketch
from ckm._core.sketch import Sketch

# Whole numbers beyond what JSON readers hold in a float are written as text.
_MAX_DIGITS = 60
# Noised sums whose products with steps are still numbers: far beyond any rows.
_MAX_SUM = 2**62


def design_tensors(f: Frequencies) -> Tensors:
    """The tensors of frequencies that are not projected: all of a public design."""
    tensors: Tensors = {"turns": f.turns, "origin": f.origin}
    if f.units is not None:
        tensors["units"] = f.units
    if f.signs is not None:
        tensors["signs"] = f.signs
    if f.bounds is not None:
        tensors["bounds"] = np.stack([f.bounds.lower, f.bounds.upper])
    return tensors


def cap_metadata(f: Frequencies) -> Metadata:
    """The public cap on weights, for a design that has one."""
    cap = None if f.bounds is None else f.bounds.max_weight
    return {} if cap is None else {"max_weight": cap}


def released_to_parts(sketch: Sketch, version: int) -> tuple[Metadata, Tensors]:
    """Metadata and tensors of a private release."""
    f = sketch.frequencies
    release = sketch.release
    assert release is not None
    budget = release.budget
    tensors = design_tensors(f)
    tensors["release.sums"] = release.sums
    tensors["release.first"] = release.first
    tensors["release.second"] = release.second
    metadata = {
        "version": version,
        "distribution": f.distribution,
        "scale": f.scale,
        "seed": f.seed,
        "spread": f.spread,
        "columns": None if sketch.columns is None else list(sketch.columns),
        "projection": None,
        **cap_metadata(f),
        "release": {
            "count": str(release.count),
            "variance": str(release.variance),
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "rho": budget.rho,
            "unit": budget.unit,
            "max_rows_per_user": budget.max_rows_per_user,
        },
    }
    return metadata, tensors


def released_from_parts(
    metadata: Metadata, tensors: Tensors, f: Frequencies, columns: tuple[str, ...] | None
) -> Sketch:
    """The release with these metadata and tensors; ValueError where it cannot be one."""
    own = metadata["release"]
    budget = Budget(own["epsilon"], own["delta"], own["rho"], own["unit"], own["max_rows_per_user"])
    release = Release(
        tensors["release.sums"],
        _whole(own["count"]),
        tensors["release.first"],
        tensors["release.second"],
        _whole(own["variance"]),
        budget,
        1 if f.bounds is None else f.bounds.row_copies,
    )
    shapes = (release.sums.shape, release.first.shape, release.second.shape)
    if f.bounds is None or shapes != ((2, f.m), (f.n,), (f.n,)):
        raise ValueError(f"shapes {shapes} do not fit {f.m} frequencies in {f.n} columns")
    arrays = (release.sums, release.first, release.second)
    if release.variance < 1 or any((np.abs(a.astype(float)) > _MAX_SUM).any() for a in arrays):
        raise ValueError("the noised sums are out of range")
    return released_sketch(f, release, columns)


def _whole(text: object) -> int:
    """A whole number that was written as text; ValueError for anything else."""
    if not isinstance(text, str) or len(text) > _MAX_DIGITS or str(int(text)) != text:
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)
