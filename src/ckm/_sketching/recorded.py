"""The options of a pass, as a checkpoint records them."""

import hashlib
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from ckm._core.sketch import Sketch
from ckm._sketching.choose import (
    design_like,
)
from ckm._sketching.options import PassOptions, SketchOptions
from ckm._sources import ColumnRequest
from ckm._util.device import to_host


def record_options(
    options: SketchOptions,
    execution: PassOptions,
    request: ColumnRequest,
    model: Sketch | None,
    nan: str,
    sample_weight: Any = None,
) -> dict[str, Any]:
    """The arguments that a pass must be resumed with: all that its result depends on.

    Weights are represented by a digest.
    """
    digest = None
    if sample_weight is not None:
        weights = np.ascontiguousarray(to_host(sample_weight), np.float64)
        digest = hashlib.sha256(weights.tobytes()).hexdigest()
    columns = [request.columns] if isinstance(request.columns, str) else request.columns
    optional = {
        "exclude": request.excluded,
        "log": list(options.log),
        "categories": [category.record() for category in request.categories],
    }
    recorded = asdict(replace(options, projection=None, categories=()))
    del recorded["log"]
    del recorded["categories"]
    del recorded["serves_one_fit"]
    return (
        recorded
        | {name: names for name, names in optional.items() if names}
        | {
            "projection": _recorded_projection(options.projection),
            "scale": options.given_scale or "auto",
            "standardize": options.standardize if options.is_robust else bool(options.standardize),
            "sample_weight": digest,
            "like": None if model is None else design_like(model, options).fingerprint,
            "columns": None if columns is None else list(columns),
            "weight_column": request.weight,
            "nan": nan,
            "pool": execution.capacity,
            "device": execution.device,
            "random_state": execution.seed,
        }
    )


def _recorded_projection(projection: Any) -> int | str | None:
    """A projection as an option of a checkpoint; a matrix is represented by a digest."""
    if projection is None or isinstance(projection, str):
        return projection
    if isinstance(projection, (int, np.integer)):
        return int(projection)
    matrix = np.ascontiguousarray(projection, np.float64)
    return hashlib.sha256(matrix.tobytes()).hexdigest()
