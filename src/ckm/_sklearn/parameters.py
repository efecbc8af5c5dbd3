"""The parameters of estimators, checked before a pass over the data."""

from typing import Any

from ckm._decoding.api import require_size, uses_cells
from ckm._decoding.requirements import require_rows
from ckm._messages import Argument
from ckm._sketching.options import SketchOptions, check_cells, resolve_size
from ckm._sklearn.rows import ValidatedRows
from ckm._sklearn.starts import check_init
from ckm._sources.engines.base import PartitionedSource
from ckm._util.checks import check_metric, check_nan_of_sketch, check_whole_number
from ckm._util.device import resolve_device
from ckm.errors import ParameterError

AUTO = "auto"


def largest_clusters(n_clusters: Any, max_clusters: Any) -> int:
    """The number of clusters that a sketch is made for: the largest, if it is to be chosen."""
    if isinstance(n_clusters, str):
        if n_clusters != AUTO:
            raise ParameterError(
                Argument("n_clusters"),
                f' must be "auto" or a whole number from 1 on; got {n_clusters!r}.',
            )
        return check_whole_number(max_clusters, "max_clusters", 1)
    return check_whole_number(n_clusters, "n_clusters", 1)


def least_clusters(n_clusters: Any) -> int:
    """The number of rows that is needed."""
    return 1 if isinstance(n_clusters, str) else n_clusters


def require_rows_here(rows: ValidatedRows, polish: int) -> None:
    """Refuse to polish on rows that stay with the workers of an engine."""
    if isinstance(rows.source, PartitionedSource) and polish:
        raise ParameterError(
            Argument("polish", polish),
            f" visits all rows again, and these stay with {rows.source.engine}; set ",
            Argument("polish", 0),
            ".",
        )


def check_polish(polish: Any, is_rereadable: bool) -> None:
    """Refuse polish where the rows cannot be read again."""
    if check_whole_number(polish, "polish", 0) and not is_rereadable:
        raise ParameterError(
            Argument("polish", polish),
            " visits all rows again, and neither partial_fit nor from_sketch has them; set ",
            Argument("polish", 0),
            ", or use fit.",
        )


def require_metric(metric: str, known: str) -> None:
    """Refuse another metric than that of the sketch that a model is made of."""
    if check_metric(metric) != known:
        raise ParameterError(
            Argument("metric", metric),
            f" is not that of the sketch, which is {known!r}; leave it out.",
        )


def check_parameters(
    model: Any, rows: ValidatedRows | None, sketch: Any = None, has_pool: bool = False
) -> None:
    """Report, before the pass over the data, what decoding would report after it.

    `rows` are those that `fit` can read again; `partial_fit` has none, but may have a `sketch`
    whose frequencies are fixed, and sampled rows (`has_pool`).
    """
    n_clusters = largest_clusters(model.n_clusters, model.max_clusters)
    check_whole_number(model.max_iter, "max_iter", 1)
    check_whole_number(model.pool, "pool", 0)
    check_cells(model.cells)
    check_nan_of_sketch(model.nan)
    SketchOptions(standardize=model.standardize, metric=model.metric).check_metric()
    check_polish(model.polish, rows is not None and rows.source.is_rereadable)
    size = None if model.sketch_size == "auto" else model.sketch_size
    asked = SketchOptions(
        n_clusters, size, distribution=model.distribution, projection=model.projection
    )
    dimension = asked.expected_dimension(model.n_features_in_)
    # How many axes "auto" chooses is not known yet.
    is_open = dimension != model.n_features_in_ and isinstance(model.projection, str)
    cells = model.cells if uses_cells(model.decoder) else 0
    resolve_size(n_clusters, size, 1 if is_open else dimension, cells)
    resolve_device(model.device)
    check_init(model, has_rows=rows is not None or has_pool)
    if sketch is not None:
        require_size(sketch, n_clusters, model.decoder)
    if rows is None:
        return
    require_rows_here(rows, model.polish)
    if rows.n_rows is not None:
        require_rows(rows.n_rows, least_clusters(model.n_clusters))
