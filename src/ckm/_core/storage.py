"""Sketches as files, in the container of `ckm._core.container`."""

import math
from os import PathLike

import numpy as np

from ckm._core.bounds import BoundedSums, Bounds
from ckm._core.categories import Category
from ckm._core.cells import Anchors, Cells, from_limbs, to_limbs
from ckm._core.container import (
    ContainerKind,
    Metadata,
    Tensors,
    pack_container,
    read_container,
    restore,
)
from ckm._core.frequencies import Frequencies
from ckm._core.pool import Pool
from ckm._core.preparation import Preparation
from ckm._core.projection import Projection
from ckm._core.release_parts import (
    cap_metadata,
    design_tensors,
    released_from_parts,
    released_to_parts,
)
from ckm._core.sketch import Sketch
from ckm._core.tally import ColumnSums, Tally
from ckm._core.validity import check_cells, check_frequencies, check_pool, check_tally
from ckm._util.address import as_path
from ckm._util.checks import EUCLIDEAN, check_whole_number
from ckm._util.files import check_name, write_atomically
from ckm._util.random import seed_of
from ckm.errors import SketchFileError

# Version 2 added the variance of the data (`spread`), the units of columns, the signs of structured
# frequencies, and the odds of the pool; version 3 added cells, version 4 projections of wide rows,
# the metric, and the squares of weights, version 5 public bounds and private releases. Each sketch
# is written as the oldest version that holds it: 2 without cells, 3 for unweighted rows.
SKETCH = ContainerKind(
    key="ckm",
    noun="sketch",
    version=5,
    error=SketchFileError,
    remedy="make one from the rows with ckm.sketch(...).save or `ckm sketch -o`.",
)

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


_CELL_SUMS = ("cells.mass", "cells.sums", "cells.squares", "cells.wide")


def save(sketch: Sketch, path: str | PathLike[str]) -> None:
    """Write `sketch` to `path`: complete under its final name, or not at all."""
    write_atomically(path, serialise(sketch))


def load(path: str | PathLike[str]) -> Sketch:
    """Read a sketch that `Sketch.save` wrote.

    Parameters
    ----------
    path : str or path-like
        The file, or its address (`s3://bucket/s.ckm`). Its name is free; `.ckm` is customary.

    Returns
    -------
    Sketch
        The sketch, identical to the one that was saved, with its pool if it had one.

    Raises
    ------
    ckm.errors.MissingFileError
        There is no such file.
    ckm.errors.SketchFileError
        The file is not a sketch, is truncated or altered in any byte, or was written by a later
        version of the library. No code in the file is ever run.

    See Also
    --------
    Sketch.save : Write a sketch to a file.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import ckm
    >>> s = ckm.sketch(np.eye(3), sketch_size=8, scale=1.0, random_state=0)
    >>> name = os.path.join(tempfile.mkdtemp(), "s.ckm")
    >>> s.save(name)
    >>> ckm.load(name) == s
    True
    """
    check_name(path)
    place = as_path(path)
    return deserialise(read_container(SKETCH, place), str(place))


def serialise(sketch: Sketch, version: int | None = None) -> bytes:
    """The bytes of a sketch file."""
    version = _version_of(sketch) if version is None else version
    return pack_container(SKETCH, *sketch_to_parts(sketch, version), version)


def _version_of(sketch: Sketch) -> int:
    """The oldest version that holds everything that this library writes of a sketch."""
    f = sketch.frequencies
    if f.bounds is not None:
        return 5
    if f.projection is not None or f.metric != EUCLIDEAN or _own_squares(sketch.tally) is not None:
        return 4
    if f.preparation is not None:
        return 4
    return 2 if sketch.cells is None else 3


def _own_squares(t: Tally) -> float | None:
    """The sum of squared weights, if it is known and does not follow from the count."""
    is_count = t.exact and t.squared_weight == t.count
    return None if is_count else t.squared_weight


def deserialise(data: bytes, name: str = "these bytes") -> Sketch:
    """The sketch in `data`, refused unless `serialise` would write the same bytes."""
    return restore(SKETCH, data, name, sketch_from_parts, serialise)


def sketch_to_parts(sketch: Sketch, version: int | None = None) -> tuple[Metadata, Tensors]:
    """Metadata and tensors from which `sketch_from_parts` makes the same sketch."""
    version = _version_of(sketch) if version is None else version
    if sketch.release is not None:
        return released_to_parts(sketch, version)
    return _metadata(sketch, version), _tensors(sketch, version)


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


def _tensors(sketch: Sketch, version: int) -> Tensors:
    f = sketch.frequencies
    t = sketch.tally
    pool = sketch.pool
    tensors: Tensors = {
        "sums": t.sums,
        "lower": t.lower,
        "upper": t.upper,
        "first": t.first,
        "second": t.second,
    }
    tensors |= design_tensors(f)
    if t.bounded is not None:
        tensors["bounded.first"] = t.bounded.first
        tensors["bounded.second"] = t.bounded.second
    if f.projection is not None and t.columns is not None:
        tensors["projection.axes"] = f.projection.axes
        for name in ("origin", "units"):
            if getattr(f.projection, name) is not None:
                tensors[f"projection.{name}"] = getattr(f.projection, name)
        tensors["columns.first"] = t.columns.first
        tensors["columns.second"] = t.columns.second
    if pool is not None:
        tensors["pool.rows"] = pool.rows
        tensors["pool.weights"] = pool.weights
        tensors["pool.keys"] = pool.keys
        if version > 1:
            tensors["pool.odds"] = pool.odds
    if sketch.cells is not None and version > 2:
        cells = sketch.cells
        tensors["cells.anchors"] = cells.anchors.values
        tensors["cells.exponents"] = cells.anchors.exponents
        if cells.anchors.wide_exponents is not None:
            tensors["cells.wide_exponents"] = cells.anchors.wide_exponents
        for name, numbers in zip(_CELL_SUMS, cells.arrays, strict=False):
            tensors[name] = to_limbs(numbers) if numbers.dtype.kind == "O" else numbers
    return tensors


def _metadata(sketch: Sketch, version: int) -> Metadata:
    f = sketch.frequencies
    t = sketch.tally
    pool = sketch.pool
    metadata = {
        "version": version,
        "distribution": f.distribution,
        "scale": f.scale,
        "seed": f.seed,
        "count": t.count,
        "weight": t.weight,
        "tight": t.tight,
        "columns": None if sketch.columns is None else list(sketch.columns),
        "pool": None if pool is None else {"capacity": pool.capacity, "seen": pool.seen},
        **cap_metadata(f),
    }
    if version > 1:
        metadata["spread"] = f.spread
    if version > 3:
        metadata["projection"] = None if f.projection is None else {"kept": f.projection.kept}
        metadata["cells"] = None
        if f.metric != EUCLIDEAN:
            metadata["metric"] = f.metric
        if f.preparation is not None:
            prepared: Metadata = {
                "log": list(f.preparation.logged),
                "robust": f.preparation.is_robust,
            }
            if f.preparation.categories:
                coded = [category.record() for category in f.preparation.categories]
                prepared["categories"] = coded
            metadata["preparation"] = prepared
        if _own_squares(t) is not None:
            metadata["squared_weight"] = t.squared_weight
    if version > 4:
        metadata["release"] = None
        bounded = t.bounded
        metadata["bounded"] = None
        if bounded is not None:
            metadata["bounded"] = {"clipped": bounded.clipped, "user_cap": bounded.user_cap}
            if cap_metadata(f):
                metadata["bounded"]["capped"] = bounded.capped
    if sketch.cells is not None and version > 2:
        anchors = sketch.cells.anchors
        metadata["cells"] = {"square_exponent": anchors.square_exponent, "spread": anchors.spread}
    return metadata


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
    for name, ndim in zip(_CELL_SUMS, (1, 2, 1, 2), strict=True):
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
