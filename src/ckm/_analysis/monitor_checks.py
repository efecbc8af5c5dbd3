"""What a monitor refuses: options out of range, weighted rows, batches of another width; and the
rows of a batch as they are watched.
"""

import math
from typing import Any

from ckm._analysis.watching import Watch
from ckm._core.preparation import categories_of
from ckm._core.sketch import Sketch
from ckm._messages import Argument
from ckm._sources import ColumnRequest, Source, open_rows
from ckm._sources.adapters import in_preparation
from ckm.errors import DataError, ParameterError

MIN_RUN_BLOCKS = 10
MAX_RUN_LENGTH = 1e15


def check_run_length(run_length: Any, block: int) -> float:
    """The average number of rows between false alarms, which must be some blocks."""
    try:
        number = math.nan if isinstance(run_length, (str, bytes, bool)) else float(run_length)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not MIN_RUN_BLOCKS * block <= number <= MAX_RUN_LENGTH:
        raise ParameterError(
            Argument("run_length"),
            f" must be a number of rows from {MIN_RUN_BLOCKS * block:,} ({MIN_RUN_BLOCKS} blocks) "
            f"to {MAX_RUN_LENGTH:g}; got {run_length!r}.",
        )
    return number


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(
            Argument(name), f" must be {' or '.join(map(repr, choices))}; got {value!r}."
        )
    return value


def open_batch(watch: Watch, batch: Any, columns: Any, nan: str) -> Source:
    """The rows of a batch, prepared as those of the frequencies were."""
    preparation = None if watch.frequencies is None else watch.frequencies.preparation
    coded = categories_of(preparation)
    request = ColumnRequest(columns, None, watch.columns, categories=coded)
    if watch.columns is not None and watch.rows:
        request = request._replace(like_name="the first batch")
    return in_preparation(open_rows(batch, request, None, nan), preparation)


def require_unweighted(model: Sketch) -> None:
    """Refuse weighted and decayed rows: how much chance moves their mean is not known."""
    size = model.tally.effective_size
    if model.weight != model.count or size != model.count:
        raise ParameterError(
            "The sketch given as ",
            Argument("like", ...),
            f" has {model.count:,} rows of weight {model.weight:.6g}, and a monitor compares rows "
            "of weight one; sketch them without weights, or give only its frequencies.",
        )


def check_width(watch: Watch, source: Source) -> None:
    """Refuse another number of columns than before, or too many for the size of the sketch."""
    n = source.n_features
    before = None if watch.frequencies is None else watch.frequencies.n_features
    if watch.head:
        before = int(watch.head[0].shape[1])
    if before is None:
        watch.options.sketch.check(n)
    elif n != before:
        raise DataError(
            f"This batch has {n} columns where those before had {before}; "
            "give batches of one width."
        )
