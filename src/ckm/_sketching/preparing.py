"""What is done to a source before its pass, and said after it."""

from dataclasses import replace
from typing import Any

from ckm._core.preparation import Preparation, categories_of
from ckm._messages import Argument
from ckm._sketching.accumulate import State
from ckm._sketching.choose import draw_first_pilot, read_first_rows
from ckm._sketching.options import PassOptions, SketchOptions
from ckm._sketching.pilot import Pilot
from ckm._sketching.screening import Screening
from ckm._sources import Source
from ckm._sources.adapters import Imputed, WithoutMissing, in_preparation
from ckm._sources.engines.base import PartitionedSource
from ckm._sources.user_cap import UserCapped
from ckm._util.checks import EUCLIDEAN
from ckm._util.random import stream
from ckm._util.warn import warn_user
from ckm.errors import MismatchError, MissingRowsWarning, ParameterError


def look_at_table(
    source: Source,
    options: SketchOptions,
    execution: PassOptions,
    screening: Screening,
    imputes: bool,
) -> tuple[Source, Pilot | None, Preparation | None]:
    """The rows without columns that were left out, their pilot if it is known now, and what is to
    be done to the columns.
    """
    if options.metric != EUCLIDEAN:
        return source, None, options.preparation(source.columns)
    complete = WithoutMissing(source) if imputes else source
    rng = stream(execution.seed, "pilot")
    read = read_first_rows(complete, options, rng)
    if read is None:
        return source, None, options.preparation(source.columns)
    standardize = bool(options.standardize)
    pilot = read.pilot(rng, standardize=standardize)
    source, kept = screening.screen(
        source,
        pilot,
        standardize=standardize,
        preparation=options.preparation(source.columns),
    )
    preparation = options.preparation(source.columns)
    if kept is not None:
        read = read.of_columns(kept)
    if preparation is not None:
        read = read.prepared(preparation)
    if kept is not None or (preparation is not None and preparation.changes_rows):
        # Which rows are far from the others depends on the columns.
        pilot = read.pilot(rng, standardize=standardize)
    if imputes and len(pilot):
        # Rows with gaps lie elsewhere than complete ones; anchors are chosen for both.
        filled = Imputed(prepare(source, preparation), pilot.origin)
        pilot = draw_first_pilot(filled, options, execution.seed) or pilot
    return source, pilot, preparation


def prepare(source: Source, preparation: Preparation | None) -> Source:
    """The source with its columns prepared, here or by the workers that read it."""
    if isinstance(source, PartitionedSource):
        if preparation is None or not preparation.changes_rows:
            return source
        return source.with_reader(replace(source.reader, preparation=preparation))
    return in_preparation(source, preparation)


def require_same_categories(source: Source, preparation: Preparation | None) -> None:
    """Refuse rows whose categories are not coded as those of an earlier sketch or checkpoint."""
    if source.columns is not None and source.categories != categories_of(preparation):
        raise MismatchError(
            "The categories of this data are coded in another way than those of the sketch that is "
            "continued: its values may have changed. Begin anew, or give that sketch as ",
            Argument("like", ...),
            ".",
        )


def warn_imputed(source: Imputed, state: State) -> None:
    """Warn of missing values that were filled in."""
    if source.values_filled:
        warn_user(
            f"Filled in {source.values_filled:,} missing values of {source.rows:,} of "
            f"{state.rows:,} rows with the origin of their columns.",
            MissingRowsWarning,
        )


def require_resumable_weights(source: Source, sample_weight: Any) -> None:
    """Refuse weights beside several files: a pass that stops after the first could not go on."""
    if sample_weight is not None and len(source.parts) > 1:
        raise ParameterError(
            "A checkpoint of several files needs their weights in the files, so that reading can "
            "continue in the middle; use ",
            Argument("weight_column", ...),
            ".",
        )


def warn_dropped_rows(state: State, source: Source) -> None:
    """Warn of rows that were left out because of missing values."""
    n_dropped = state.dropped
    if isinstance(source, UserCapped):
        n_dropped -= source.n_left_out
        source = source.inside
    if not n_dropped:
        return
    first = source.first if isinstance(source, WithoutMissing) else ""
    where = f"; the first is {first}" if first else ""
    warn_user(
        f"Left out {n_dropped:,} of {state.rows:,} rows, which have missing values{where}.",
        MissingRowsWarning,
    )
