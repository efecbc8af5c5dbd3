"""Sketches as files, in the container of `ckm._core.container`."""

from os import PathLike

from ckm._core.container import (
    ContainerKind,
    Metadata,
    Tensors,
    pack_container,
    read_container,
    restore,
)
from ckm._core.reading import CELL_SUMS, sketch_from_parts
from ckm._core.release_parts import cap_metadata, design_tensors, released_to_parts
from ckm._core.sketch import Sketch
from ckm._core.tally import Tally
from ckm._core.whole_numbers import to_limbs
from ckm._util.address import as_path
from ckm._util.checks import EUCLIDEAN
from ckm._util.files import check_name, write_atomically
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
        for name, numbers in zip(CELL_SUMS, cells.arrays, strict=False):
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
