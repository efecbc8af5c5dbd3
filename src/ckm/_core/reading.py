"""A sketch made of the metadata and tensors of a file, each of them checked."""

import math

import numpy as np

from ckm._core.bounds import BoundedSums, Bounds
from ckm._core.categories import Category
from ckm._core.cells import Anchors, Cells
from ckm._core.column_sums import ColumnSums
from ckm._core.container import Metadata, Tensors
from ckm._core.frequencies import Frequencies
from ckm._core.pool import Pool
from ckm._core.preparation import Preparation
from ckm._core.projection import Projection
from ckm._core.release_parts import released_from_parts
from ckm._core.sketch import Sketch
from ckm._core.tally import Tally
from ckm._core.validity import check_cells, check_frequencies, check_pool, check_tally
from ckm._core.whole_numbers import from_limbs
from ckm._util.checks import EUCLIDEAN, check_whole_number
from ckm._util.random import seed_of

# The types of tensors that are not float64.
_SUMS = ("<i8", "<f8")
_DTYPES = {
    "projection.axes": ("<f4", "<i2"),
    "cells.wide": ("<i8", "<f8"),
    "cells.wide_exponents": ("<i8",),
    "turns": ("<f4",),
    "signs": ("|i1",),
    "sums": _SUMS,
    "cells.anchors": ("<f4",),
    "cells.exponents": ("<i8",),
    "cells.mass": _SUMS,
    "cells.sums": _SUMS,
    "cells.squares": _SUMS,
    "bounded.first": ("<i8",),
    "bounded.second": ("<i8",),
    "release.sums": ("<i8",),
    "release.first": ("<i8",),
    "release.second": ("<i8",),
}

# The arrays of cells, in the order of `Cells.arrays`.
CELL_SUMS = ("cells.mass", "cells.sums", "cells.squares", "cells.wide")


def sketch_from_parts(metadata: Metadata, tensors: Tensors) -> Sketch:
    """The sketch with these metadata and tensors; ValueError and others where it cannot be one."""
    _check_dtypes(tensors)
    # Forged numbers may overflow while they are checked.
    with np.errstate(all="ignore"):
        f = _frequencies(metadata, tensors)
        check_frequencies(f)
        if metadata.get("release") is not None:
            columns = _columns(metadata["columns"], f.n_features)
            return released_from_parts(metadata, tensors, f, columns)
        t = _tally(metadata, tensors)
        check_tally(t, f)
        columns = _columns(metadata["columns"], f.n_features)
        pool = None
        if metadata["pool"] is not None:
            pool = _pool(metadata["pool"], tensors)
            check_pool(pool, f.n, t)
        cells = None
        # Version 4 may have none.
        if metadata["version"] > 2 and metadata["cells"] is not None:
            cells = _cells(metadata["cells"], tensors, f)
            check_cells(cells, f, t)
    return Sketch(f, t, columns, pool, cells)


def _check_dtypes(tensors: Tensors) -> None:
    """Refuse tensors of other types than those that are written, before they are converted."""
    for name, tensor in tensors.items():
        known = _DTYPES.get(name, ("<f8",))
        if tensor.dtype.newbyteorder("<").str not in known:
            raise ValueError(f"{name} must be {' or '.join(known)}, and is {tensor.dtype.str}")


def _frequencies(metadata: Metadata, tensors: Tensors) -> Frequencies:
    seed = metadata["seed"]
    spread = None if metadata["version"] == 1 else metadata["spread"]
    f = Frequencies(
        tensors["turns"],
        tensors["origin"],
        scale=float(metadata["scale"]),
        distribution=str(metadata["distribution"]),
        seed=None if seed is None else seed_of(seed),
        spread=None if spread is None else float(spread),
        units=tensors.get("units"),
        signs=tensors.get("signs"),
        projection=_projection(metadata, tensors),
        metric=metadata.get("metric", EUCLIDEAN) if metadata["version"] > 3 else EUCLIDEAN,
        bounds=_bounds(metadata, tensors),
        preparation=_preparation(metadata),
    )
    if f.bounds is not None:
        return f
    is_plain = f.projection is None and f.metric == EUCLIDEAN and f.preparation is None
    if metadata["version"] > 3 and is_plain and "squared_weight" not in metadata:
        raise ValueError("sketches of unweighted rows as they are have an earlier version")
    return f


def _projection(metadata: Metadata, tensors: Tensors) -> Projection | None:
    if metadata["version"] < 4 or metadata["projection"] is None:
        return None
    kept = metadata["projection"]["kept"]
    return Projection(
        tensors["projection.axes"],
        tensors.get("projection.origin"),
        tensors.get("projection.units"),
        None if kept is None else float(kept),
    )


def _preparation(metadata: Metadata) -> Preparation | None:
    if metadata["version"] < 4 or "preparation" not in metadata:
        return None
    record = metadata["preparation"]
    if not isinstance(record["robust"], bool):
        raise ValueError(f"{record['robust']!r} does not say whether units are robust")
    logged = tuple(check_whole_number(j, "log", 0) for j in record["log"])
    categories = tuple(map(Category.of_record, record.get("categories", ())))
    found = Preparation(logged, record["robust"], categories)
    if not found:
        raise ValueError("a preparation does something")
    return found


def _tally(metadata: Metadata, tensors: Tensors) -> Tally:
    return Tally(
        tensors["sums"],
        float(metadata["weight"]),
        int(metadata["count"]),
        tensors["lower"],
        tensors["upper"],
        tensors["first"],
        tensors["second"],
        bool(metadata["tight"]),
        _column_sums(metadata, tensors),
        _squared_weight(metadata),
        _bounded(metadata, tensors),
    )


def _bounds(metadata: Metadata, tensors: Tensors) -> Bounds | None:
    if metadata["version"] < 5:
        return None
    lower, upper = tensors["bounds"]
    return Bounds(lower, upper, metadata.get("max_weight"))


def _bounded(metadata: Metadata, tensors: Tensors) -> BoundedSums | None:
    if metadata["version"] < 5 or metadata["bounded"] is None:
        return None
    own = metadata["bounded"]
    cap = own["user_cap"]
    return BoundedSums(
        tensors["bounded.first"],
        tensors["bounded.second"],
        check_whole_number(own["clipped"], "clipped", 0),
        None if cap is None else check_whole_number(cap, "user_cap", 0),
        check_whole_number(own.get("capped", 0), "capped", 0),
    )


def _squared_weight(metadata: Metadata) -> float | None:
    if metadata["version"] < 4 or "squared_weight" not in metadata:
        return None
    squares = metadata["squared_weight"]
    if not isinstance(squares, float) or not 0 < squares < math.inf:
        raise ValueError(f"squared weights must add up to a positive number, not {squares!r}")
    return squares


def _column_sums(metadata: Metadata, tensors: Tensors) -> ColumnSums | None:
    if metadata["version"] < 4 or metadata["projection"] is None:
        return None
    return ColumnSums(tensors["columns.first"], tensors["columns.second"])


def _columns(names: list[str] | None, n: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if len(names) != n or not all(isinstance(name, str) for name in names):
        raise ValueError(f"there must be {n} column names")
    return tuple(names)


def _pool(metadata: Metadata, tensors: Tensors) -> Pool:
    weights = tensors["pool.weights"]
    return Pool(
        tensors["pool.rows"],
        weights,
        tensors.get("pool.odds", weights),  # version 1 sampled by weight alone
        tensors["pool.keys"],
        check_whole_number(metadata["capacity"], "capacity", 1),
        check_whole_number(metadata["seen"], "seen", 0),
    )


def _cells(metadata: Metadata, tensors: Tensors, f: Frequencies) -> Cells:
    anchors = Anchors(
        tensors["cells.anchors"],
        np.ones(f.n) if f.units is None else 1 / f.units,
        tensors["cells.exponents"],
        _whole(metadata["square_exponent"]),
        float(metadata["spread"]),
        tensors.get("cells.wide_exponents"),
    )
    numbers = []
    for name, ndim in zip(CELL_SUMS, (1, 2, 1, 2), strict=True):
        if name == "cells.wide" and name not in tensors:
            continue
        tensor = tensors[name]
        # Numbers beyond int64 have one more dimension.
        numbers.append(from_limbs(tensor) if tensor.ndim == ndim + 1 else tensor)
    return Cells(anchors, *numbers)


def _whole(number: object) -> int:
    """An integer of either sign; ValueError for anything else."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(f"{number!r} is not a whole number")
    return number
