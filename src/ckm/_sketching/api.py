"""`sketch(...)`: one pass over any data, ending in a `Sketch`."""

import logging
import time
from collections.abc import Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from ckm._core.frequencies import Frequencies
from ckm._core.laws import DEFAULT_DISTRIBUTION
from ckm._core.sketch import Sketch
from ckm._kernels import kernel_for
from ckm._kernels.spec import MAX_TURNS
from ckm._sketching.accumulate import State, run
from ckm._sketching.checkpoint import CHECKPOINT_INTERVAL, CheckpointWriter
from ckm._sketching.choose import Choice, choose_frequencies, resolve_like
from ckm._sketching.jobs import SketchJob, sketch_partitions
from ckm._sources import ColumnRequest, Source, open_rows
from ckm._sources.adapters import WithoutMissing
from ckm._sources.blocks import BLOCK_ROWS, split_blocks
from ckm._sources.engines.base import PartitionedSource
from ckm._sources.prefetch import read
from ckm._util.checks import check_whole_number
from ckm._util.device import check_device, resolve_device
from ckm._util.parallel import thread_count
from ckm._util.progress import rows_bar
from ckm._util.random import seed_of
from ckm._util.warn import warn_user
from ckm.errors import MissingRowsWarning, ParameterError, PhaseWarning

_log = logging.getLogger(__name__)


def sketch(
    data: Any,
    *,
    n_clusters: int | None = None,
    sketch_size: int | None = None,
    scale: float | str = "auto",
    distribution: str = DEFAULT_DISTRIBUTION,
    like: Sketch | Frequencies | str | Path | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    weight_column: str | None = None,
    nan: str = "error",
    standardize: bool = False,
    pool: int = 0,
    random_state: Any = None,
    n_jobs: int | None = None,
    device: str = "auto",
    checkpoint: str | Path | None = None,
    checkpoint_interval: float = CHECKPOINT_INTERVAL,
    resume: bool = False,
    progress: bool = False,
) -> Sketch:
    """Sketch data in one pass: z_j = sum_l beta_l exp(-i omega_j^T (x_l - origin)) / sum_l beta_l
    (equation 3).

    Parameters
    ----------
    data : array, data frame, file name, glob pattern, folder, list of file names, query, stream,
    iterable of batches, or cluster's data
        The rows: a NumPy array (N, n), a sparse matrix, a tensor on the CPU or on a card; a pandas,
        polars (also lazy), PyArrow or DuckDB table, anything with `__arrow_c_stream__`; `.npy`,
        `.csv` (also `.gz`, `.zst`), `.parquet`, `.arrow`, `.feather`, `.h5` and `.zarr` files; "-"
        for standard input; a cursor; arrays, tensors or frames one after another, or a function
        that returns them. docs/sources.md has an example of each. No rows give an empty sketch.
        Dask arrays, data frames and bags of batches, Spark data frames and Ray datasets stay where
        they are, and workers send sums back: docs/scaling.md.
    n_clusters : int, optional
        How many clusters it will be decoded to; sets the size m = 5 * n_clusters * n unless
        `sketch_size` is given. With `like`, which has a size, it is only checked that this is not
        too small.
    sketch_size : int, optional
        The number m of frequencies.
    scale : "auto" or float
        The variance sigma^2 that frequencies are scaled to; "auto" estimates it from a sample of
        the rows: the variance within `n_clusters` clusters (m / 5 n where only `sketch_size` is
        given) for "multiscale" and "structured", the paper's rule for the other laws.
    distribution : {"multiscale", "structured", "adapted-radius", "folded-gaussian", "gaussian"}
        The law that frequencies are drawn from: "adapted-radius" is the paper's, "multiscale" the
        same at many scales, so that results hardly depend on `scale`. "structured" has the radii of
        "multiscale" and directions that a fast transform multiplies by: a row costs O(m log n)
        instead of O(m n), and a sketch's file O(m) bytes; for 100 columns and more.
    like : Sketch, Frequencies or file name, optional
        Use these frequencies (and column names), so that the result can be merged with what they
        came from.
    sample_weight : array (N,), optional
        Non-negative weights beta; a weight of two is a row given twice, a weight of zero a row left
        out.
    columns : list of str, optional
        The columns of a table to use, in this order; by default all that hold numbers, and a
        warning names those left out.
    weight_column : str, optional
        The column of a table that holds the weights beta.
    nan : {"error", "drop"}
        What to do with a missing value: refuse it with its place, or leave out its row, with a
        warning that says how many were.
    standardize : bool
        Measure each column in units of its standard deviation, as a sample of the rows has it.
        Distances and SSEs are then in these units, which the sketch keeps; centroids come back in
        the data's own. With `like`, its units are used.
    pool : int
        How many sampled rows to keep in the sketch, for the decoder to start from and to place
        centroids by; a hundred for each cluster count for as much as the sketch. Rows far from the
        mean are more likely to be kept, since few of them may decide the SSE.
    random_state : None, int, Generator or RandomState
        Decides the frequencies, the sample and the pool. None draws a new seed each time (the
        command line's --seed is 0).
    n_jobs : int, optional
        Threads; None means every core, or on a cluster one for each task. The result does not
        depend on it.
    device : {"auto", "cpu", "cuda", "cuda:0", "cuda:1", ...}
        Where the sums are computed. "auto" is where the rows are: in place for rows on a GPU, else
        on the CPU. "cuda" is every GPU that torch finds: rows on the CPU are copied there block by
        block, rows on a GPU are summed in place. "cuda:1" is that GPU alone. "cpu" copies rows on a
        GPU to the CPU block by block. A device that is not there is an error. On a cluster it is
        the device of each worker.
    checkpoint : file name, optional
        Where to write down what has been added up so far, every ten seconds and whenever the pass
        ends, however that is. Only for rows in files. It stays until it is removed.
    resume : bool
        Go on from `checkpoint`, where there is one: with the same options and files the sketch is
        the same, bit for bit, as without a stop.
    progress : bool
        Show a progress bar on a terminal.

    Returns
    -------
    Sketch

    Examples
    --------
    >>> import ckm, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> s = ckm.sketch(X, n_clusters=2, random_state=0)
    >>> s.z.shape, s.count
    ((30,), 1000)
    """
    check_device(device)
    threads, capacity = thread_count(n_jobs), check_whole_number(pool, "pool", 0)
    model, choice = (
        resolve_like(like),
        Choice(n_clusters, sketch_size, scale, distribution, standardize),
    )
    source = open_rows(
        data,
        ColumnRequest(columns, weight_column, None if model is None else model.columns),
        sample_weight,
        nan,
    )
    # On a cluster each worker resolves the device for itself.
    partitioned = isinstance(source, PartitionedSource)
    compute = kernel_for(None if partitioned else resolve_device(device, source.device))
    planned = compute.plan(source.n_features, threads, source.is_on_gpu)
    if planned is not None:
        threads = (
            1
            if source.n_rows is not None and source.n_rows <= planned.block_rows
            else planned.threads
        )
        source.prefer_chunk_rows(planned.block_rows)
    seed, keeper, begun = seed_of(random_state), None, None
    if checkpoint is not None:
        asked = choice._asdict() | {
            "like": model and model.frequencies.fingerprint,
            "columns": columns and list(columns),
        }
        asked |= {
            "weight_column": weight_column,
            "nan": nan,
            "pool": capacity,
            "device": device,
            "random_state": seed,
        }
        keeper = CheckpointWriter(
            checkpoint,
            asked,
            source,
            resume=resume,
            any_seed=random_state is None,
            interval=checkpoint_interval,
        )
        seed, begun = keeper.options["random_state"], keeper.resumed_from
    elif resume:
        raise ParameterError("resume=True goes on from a checkpoint; name it with checkpoint=.")
    frequencies = (
        choose_frequencies(source, choice, model, seed)
        if begun is None
        else begun.sketch.frequencies
    )
    names = source.columns or (model.columns if model else None)
    state = State.empty(frequencies, capacity) if begun is None else begun.state

    def so_far(state: State) -> Sketch:
        return Sketch(frequencies, state.tally, names, state.pool)

    began = time.perf_counter()
    _log.info(
        "sketching %d columns with %d frequencies (%s) in %d threads",
        frequencies.n,
        frequencies.m,
        frequencies.distribution,
        threads,
    )
    # its engine runs many tasks at a time, each on one core
    if isinstance(source, PartitionedSource):
        job = SketchJob(
            frequencies, device, capacity, seed, 1 if n_jobs is None else threads, source.columns
        )
        state = sketch_partitions(source, job)
    else:
        with (
            rows_bar("Sketching", source.n_rows, progress, source.n_bytes) as on_rows,
            keeper or nullcontext(),
            closing(
                read(source, state.place, None if planned is None else planned.block_rows)
            ) as chunks,
        ):
            on_rows(state.rows)
            blocks = split_blocks(
                chunks, state.blocks, BLOCK_ROWS if planned is None else planned.block_rows
            )
            on_state = None if keeper is None else lambda state: keeper.update(so_far(state), state)
            left = None if source.n_rows is None else source.n_rows - state.rows
            state = run(
                compute, frequencies, blocks, state, seed, n_threads=threads, on_rows=on_rows, on_state=on_state, columns=source.columns,
                n_rows=left,
            )  # fmt: skip
    _log.info("sketched %d rows in %.2f s", state.tally.count, time.perf_counter() - began)
    _tell_dropped(state, source)
    _warn_of_large_phases(so_far(state))
    return so_far(state)


def _tell_dropped(state: State, source: Source) -> None:
    if state.dropped:
        first = (
            f"; the first is {source.first}"
            if isinstance(source, WithoutMissing) and source.first
            else ""
        )
        warn_user(
            f"Left out {state.dropped:,} of {state.rows:,} rows, which have missing values{first}.",
            MissingRowsWarning,
        )


def _warn_of_large_phases(sketch: Sketch) -> None:
    if not sketch.count:
        return
    origin = sketch.frequencies.origin
    reach = np.maximum(np.abs(sketch.lower - origin), np.abs(sketch.upper - origin))
    turns = sketch.frequencies.max_turns(reach, MAX_TURNS)
    if turns > MAX_TURNS:
        warn_user(
            f"Some rows lie so far out ({turns:.3g} turns of phase) that float32 cannot place them: they add noise to the sketch. "
            f"Remove outliers, or give a larger scale= (now {sketch.frequencies.scale:.3g}).",
            PhaseWarning,
        )
