"""One pass over any data: open it, look at it as a table, choose the frequencies, accumulate the
sums, and warn of what was seen.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from typing import Any

from ckm._core.categories import as_categories
from ckm._core.defaults import CHECKPOINT_INTERVAL
from ckm._core.frequencies import Frequencies
from ckm._core.sketch import Sketch
from ckm._messages import Argument
from ckm._sketching.accumulate import State
from ckm._sketching.checkpoint import CheckpointWriter
from ckm._sketching.choose import categories_like, choose_design, resolve_like
from ckm._sketching.effort import word_before_pass
from ckm._sketching.options import PassOptions, SketchOptions
from ckm._sketching.phases import has_large_phases, warn_of_large_phases
from ckm._sketching.preparing import (
    look_at_table,
    prepare,
    require_resumable_weights,
    require_same_categories,
    warn_dropped_rows,
    warn_imputed,
)
from ckm._sketching.recorded import record_options
from ckm._sketching.run import plan_pass
from ckm._sketching.screening import NO_SCREENING, Screening, with_columns
from ckm._sketching.wide import wide_block_rows
from ckm._sources import ColumnRequest, Source, open_rows
from ckm._sources.adapters import Imputed, WithoutMissing
from ckm._sources.engines.base import PartitionedSource
from ckm._sources.user_column import check_user_cap
from ckm._util.checks import check_whole_number
from ckm._util.parallel import thread_count
from ckm._util.random import RandomState, seed_of
from ckm.errors import ParameterError


def as_names(names: Sequence[str] | None) -> tuple[str, ...]:
    """Names of columns as a tuple: one, several or none."""
    return (names,) if isinstance(names, str) else tuple(map(str, names or ()))


def sketch_screened(
    data: Any,
    screening: Screening,
    *,
    like: Sketch | Frequencies | str | PathLike[str] | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    weight_column: str | None = None,
    user_column: str | None = None,
    max_rows_per_user: int | None = None,
    nan: str = "error",
    log: Sequence[str] | None = None,
    categories: Any = None,
    pool: int = 0,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    device: str = "auto",
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_interval: float = CHECKPOINT_INTERVAL,
    resume: bool = False,
    progress: bool = False,
    **design: Any,
) -> Sketch:
    """`sketch`, with what happens to a table before the pass. `design` are its other arguments."""
    options = SketchOptions(**design, log=as_names(log))
    execution = PassOptions(
        check_whole_number(pool, "pool", 0), seed_of(random_state), n_jobs, device, progress
    )
    cap = check_user_cap(user_column, max_rows_per_user)
    model = resolve_like(like)
    asked = as_categories(categories)
    request = ColumnRequest(columns, weight_column, user=cap, exclude=exclude, categories=asked)

    # Open the data, and the checkpoint.
    if cap is not None and checkpoint is not None:
        raise ParameterError(
            Argument("checkpoint", ...),
            " does not keep how many rows of each user were read; leave out one of it and ",
            Argument("max_rows_per_user", ...),
            ".",
        )
    if model is not None:
        coded = categories_like(model, asked)
        width = model.frequencies.n_features
        request = request._replace(like=model.columns or (), categories=coded, like_features=width)
    source = open_rows(data, request, sample_weight, nan)
    options = replace(options, categories=source.categories)
    writer = None
    if checkpoint is not None:
        require_resumable_weights(source, sample_weight)
        recorded = record_options(options, execution, request, model, nan, sample_weight)
        if isinstance(source, PartitionedSource):
            recorded |= source.reader.record()
        writer = CheckpointWriter(
            checkpoint,
            recorded,
            source,
            resume=resume,
            any_seed=random_state is None,
            interval=checkpoint_interval,
        )
        execution = replace(execution, seed=writer.options["random_state"])
    elif resume:
        raise ParameterError(
            Argument("resume", True),
            " continues from a checkpoint; name it with ",
            Argument("checkpoint", ...),
            ".",
        )

    # Choose the frequencies, and accumulate the sums.
    if request.columns is not None:
        screening = replace(screening, is_chosen=True)
    with writer or nullcontext():
        result, state = _run_pass(
            source, options, execution, model, writer, screening, imputes=nan == "impute"
        )
    warn_dropped_rows(state, source)
    if has_large_phases(result):
        warn_of_large_phases(result)
    return result


def sketch_source(
    source: Source,
    options: SketchOptions,
    execution: PassOptions,
    model: Sketch | None,
    *,
    imputes: bool = False,
) -> Sketch:
    """Sketch the rows of a source with the frequencies of `model`, or with new ones if it is None.

    No warning about the rows is given, but of missing values that were replaced, and no checkpoint
    is written.
    """
    return _run_pass(source, options, execution, model, None, NO_SCREENING, imputes=imputes)[0]


def _run_pass(
    source: Source,
    options: SketchOptions,
    execution: PassOptions,
    model: Sketch | None,
    writer: CheckpointWriter | None,
    screening: Screening,
    *,
    imputes: bool = False,
) -> tuple[Sketch, State]:
    """Sketch the rows of a source, from the checkpoint on that `writer` resumes."""
    # Before anything is read: the device may not exist.
    kernel = plan_pass(source, execution).kernel
    if options.cells == "auto" and model is None and not kernel.keeps_cells:
        options = replace(options, cells=0)
    resumed = None if writer is None else writer.resumed_from
    known = model if resumed is None else resumed.sketch
    pilot = None
    if known is None:
        source, pilot, preparation = look_at_table(source, options, execution, screening, imputes)
    else:
        preparation = known.frequencies.preparation
        source = with_columns(source, known.columns)
        require_same_categories(source, preparation)
    source = prepare(source, preparation)
    if resumed is not None:
        design = resumed.sketch.design
        state = resumed.state
    else:
        complete = WithoutMissing(source) if imputes and pilot is None else source
        design = choose_design(complete, options, model, execution.seed, pilot)
        state = State.empty(design, execution.capacity)
    if imputes:
        source = Imputed(source, design.frequencies.row_origin)
    this_pass = plan_pass(source, execution)
    if writer is not None:
        this_pass = replace(this_pass, step=writer.step)
    if design.frequencies.projection is not None and this_pass.block_rows is None:
        source.prefer_chunk_rows(wide_block_rows(source.n_features))
    word = word_before_pass(source.n_rows, design, thread_count(execution.n_jobs))
    if word is not None:
        screening.before_long_pass(word)
    names = source.columns or (None if model is None else model.columns)

    def to_sketch(state: State) -> Sketch:
        return Sketch(design.frequencies, state.tally, names, state.pool, state.cells)

    def write(state: State) -> None:
        assert writer is not None
        writer.update(to_sketch(state), state)

    state = this_pass.run(design, state, None if writer is None else write)
    if source.user_cap is not None and state.tally.bounded is not None:
        bounded = replace(state.tally.bounded, user_cap=source.user_cap)
        state = replace(state, tally=replace(state.tally, bounded=bounded))
    if isinstance(source, Imputed):
        warn_imputed(source, state)
    return to_sketch(state), state
