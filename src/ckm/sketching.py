"""`sketch(...)`: one pass over any data, ending in a `Sketch`."""

import os
import warnings
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from ckm.checks import FREQUENCIES_PER_PARAMETER, positive_variance, require_enough, whole_number
from ckm.distributions import DEFAULT_DISTRIBUTION, law
from ckm.errors import DataError, MismatchError, MissingRowsWarning, ParameterError, PhaseWarning, ScaleWarning
from ckm.frequencies import Frequencies, draw_frequencies
from ckm.kernels import load_kernel
from ckm.kernels.arithmetic import MAX_TURNS
from ckm.progress import rows_bar
from ckm.readonly import Array
from ckm.runners.local import PoolPlan, blocks_of, run, thread_count
from ckm.scale import Pilot, cluster_variance, draw_pilot, estimate_scale, total_variance
from ckm.seeding import seed_of, stream
from ckm.sketches import Sketch
from ckm.sources import Source, Wanted, open_source
from ckm.sources.adapters import Weighted, WithoutMissing
from ckm.sources.columns import checked_weights
from ckm.sources.reading import read
from ckm.storage import load


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
    pool: int = 0,
    random_state: Any = None,
    n_jobs: int | None = None,
    kernel: str = "auto",
    progress: bool = False,
) -> Sketch:
    """Sketch data in one pass: z_j = sum_l beta_l exp(-i omega_j^T (x_l - origin)) / sum_l beta_l  (equation 3).

    Parameters
    ----------
    data : array, data frame, file name, glob pattern, folder, list of file names, query, stream, or iterable of batches
        The rows: a NumPy array (N, n), a sparse matrix; a pandas, polars (also lazy), PyArrow or DuckDB table, anything with
        `__arrow_c_stream__`; `.npy`, `.csv` (also `.gz`, `.zst`), `.parquet`, `.arrow`, `.feather`, `.h5` and `.zarr` files; "-" for
        standard input; a cursor; arrays, tensors or frames one after another, or a function that returns them. docs/sources.md has an
        example of each. No rows give an empty sketch.
    n_clusters : int, optional
        How many clusters it will be decoded to; sets the size m = 5 * n_clusters * n unless `sketch_size` is given.
    sketch_size : int, optional
        The number m of frequencies.
    scale : "auto" or float
        The variance sigma^2 that frequencies are scaled to; "auto" estimates it from a sample of the rows: the variance within
        `n_clusters` clusters (m / 5 n where only `sketch_size` is given) for "multiscale", the paper's rule for the other laws.
    distribution : {"multiscale", "adapted-radius", "folded-gaussian", "gaussian"}
        The law that frequencies are drawn from: "adapted-radius" is the paper's, "multiscale" the same at many scales, so that results
        hardly depend on `scale`.
    like : Sketch, Frequencies or file name, optional
        Use these frequencies (and column names), so that the result can be merged with what they came from.
    sample_weight : array (N,), optional
        Non-negative weights beta; a weight of two is a row given twice, a weight of zero a row left out.
    columns : list of str, optional
        The columns of a table to use, in this order; by default all that hold numbers, and a warning names those left out.
    weight_column : str, optional
        The column of a table that holds the weights beta.
    nan : {"error", "drop"}
        What to do with a missing value: refuse it with its place, or leave out its row, with a warning that says how many were.
    pool : int
        How many sampled rows to keep in the sketch, for the decoder to start from and to place centroids by; a hundred for each cluster
        count for as much as the sketch. Rows far from the mean are more likely to be kept, since few of them may decide the SSE.
    random_state : None, int, Generator or RandomState
        Decides the frequencies, the sample and the pool.
    n_jobs : int, optional
        Threads; None means every core. The result does not depend on it.
    kernel : {"auto", "numba", "reference"}
        What computes the sums.
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
    threads, compute, seed = thread_count(n_jobs), load_kernel(kernel), seed_of(random_state)
    capacity = whole_number(pool, "pool", 0)
    plan = PoolPlan(capacity, seed) if capacity else None
    model = _resolve_like(like)
    source = open_rows(data, Wanted(columns, weight_column, None if model is None else model.columns), sample_weight, nan)
    if model is None:
        m = resolve_size(n_clusters, sketch_size, source.n_features)
        frequencies = _choose_frequencies(source, n_clusters, m, scale, distribution, seed)
    else:
        frequencies = _checked_like(model, source, sketch_size, scale, distribution)
        resolve_size(n_clusters, frequencies.m, frequencies.n)
    with rows_bar("Sketching", source.n_rows, progress) as on_rows, closing(read(source)) as chunks:
        blocks = blocks_of(chunks)
        tally, kept = run(compute, frequencies, blocks, pool=plan, n_threads=threads, on_rows=on_rows, columns=source.columns)
    result = Sketch(frequencies, tally, source.columns or (model.columns if model else None), kept)
    _tell_dropped(source)
    _warn_of_large_phases(result)
    return result


def resolve_size(n_clusters: int | None, sketch_size: int | None, n_features: int) -> int:
    """The number m of frequencies: `sketch_size`, else five for each of the K n coordinates to be found (Section 4.3)."""
    if n_clusters is not None:
        n_clusters = whole_number(n_clusters, "n_clusters", 1)
    if sketch_size is not None:
        m = whole_number(sketch_size, "sketch_size", 1)
        if n_clusters is not None:
            require_enough(m, n_clusters, n_features)
        return m
    if n_clusters is None:
        raise ParameterError(
            "The size of the sketch is not known: give n_clusters=K (m = 5 * K * n frequencies follow), or sketch_size=m itself."
        )
    return FREQUENCIES_PER_PARAMETER * n_clusters * n_features


def _resolve_like(like: Sketch | Frequencies | str | Path | None) -> Sketch | None:
    if like is None or isinstance(like, Sketch):
        return like
    if isinstance(like, Frequencies):
        return Sketch.empty(like)
    if isinstance(like, (str, os.PathLike)):
        return load(like)
    raise ParameterError(f"like= takes a sketch, frequencies, or the name of a sketch file; got {type(like).__name__}.")


def _checked_like(model: Sketch, source: Source, sketch_size: int | None, scale: float | str, distribution: str) -> Frequencies:
    frequencies = model.frequencies
    if source.columns is not None and model.columns is not None and source.columns != model.columns:
        raise MismatchError(
            f"The data's columns ({', '.join(source.columns)}) are not those of the sketch given as like= ({', '.join(model.columns)}); "
            f"give the same columns."
        )
    if source.n_features != frequencies.n:
        raise MismatchError(
            f"The data has {source.n_features} columns where the sketch given as like= has {frequencies.n}; give the same columns."
        )
    if sketch_size is not None and sketch_size != frequencies.m:
        raise ParameterError(f"sketch_size={sketch_size} contradicts like=, which has {frequencies.m} frequencies; leave it out.")
    if scale != "auto" and scale != frequencies.scale:
        raise ParameterError(f"scale={scale} contradicts like=, which has the scale {frequencies.scale:g}; leave it out.")
    if distribution not in (DEFAULT_DISTRIBUTION, frequencies.distribution):
        raise ParameterError(f"distribution={distribution!r} contradicts like=, which has {frequencies.distribution!r}; leave it out.")
    return frequencies


def open_rows(data: Any, wanted: Wanted, sample_weight: Any = None, nan: str = "error") -> Source:
    """The source behind `data`, with its weights, and without rows that are to be dropped."""
    if nan not in ("error", "drop"):
        raise ParameterError(f"nan must be 'error' or 'drop'; got {nan!r}.")
    source = open_source(data, wanted)
    if sample_weight is not None:
        if wanted.weight is not None:
            raise ParameterError(f"weight_column={wanted.weight!r} and sample_weight= are both given; leave one out.")
        source = Weighted(source, _checked_weights(sample_weight, source))
    return WithoutMissing(source) if nan == "drop" else source


def _checked_weights(sample_weight: Any, source: Source) -> Array:
    try:
        weights = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must be numbers, one for each row: {error}.") from None
    if weights.ndim != 1 or (source.n_rows is not None and len(weights) != source.n_rows):
        raise DataError(f"sample_weight has shape {weights.shape} for {source.n_rows} rows; give one weight for each row.")
    if np.isnan(weights).any():
        raise DataError(f"sample_weight must be finite and not negative; weight {int(np.argmax(np.isnan(weights)))} is nan.")
    return checked_weights(weights, "sample_weight")


def _tell_dropped(source: Source) -> None:
    if isinstance(source, WithoutMissing) and source.dropped:
        warnings.warn(
            f"Left out {source.dropped:,} of {source.seen:,} rows, which have missing values; the first is {source.first}.",
            MissingRowsWarning,
            stacklevel=3,
        )


def _choose_frequencies(source: Source, K: int | None, m: int, scale: float | str, distribution: str, seed: int) -> Frequencies:
    """Draw Omega around the pilot's mean, at the pilot's scale unless one is given."""
    law(distribution)
    given = None if isinstance(scale, str) and scale == "auto" else positive_variance(scale)
    pilot = draw_pilot(source, stream(seed, "pilot"))
    origin = pilot.origin if len(pilot.rows) else np.zeros(source.n_features)
    sigma2 = (
        _scale_of(pilot, K or max(1, m // (FREQUENCIES_PER_PARAMETER * source.n_features)), distribution, seed) if given is None else given
    )
    spread = total_variance(pilot) / source.n_features if len(pilot.rows) else 0.0
    return draw_frequencies(m, source.n_features, scale=sigma2, distribution=distribution, origin=origin, spread=spread or None, seed=seed)


def _scale_of(pilot: Pilot, K: int, distribution: str, seed: int) -> float:
    if not len(pilot.rows):
        warnings.warn(
            "There are no rows to estimate the scale from: assuming data of unit variance around zero. Give scale= (a variance), or like=.",
            ScaleWarning,
            stacklevel=4,
        )
        return 1.0
    rng = stream(seed, "scale")
    return cluster_variance(pilot, K, rng) if distribution == "multiscale" else estimate_scale(pilot, rng)


def _warn_of_large_phases(sketch: Sketch) -> None:
    if not sketch.count:
        return
    origin = sketch.frequencies.origin
    reach = np.maximum(np.abs(sketch.lower - origin), np.abs(sketch.upper - origin))
    turns = float((np.abs(sketch.frequencies.turns) @ reach).max())
    if turns > MAX_TURNS:
        warnings.warn(
            f"Some rows lie so far out ({turns:.3g} turns of phase) that float32 cannot place them: they add noise to the sketch. "
            f"Remove outliers, or give a larger scale= (now {sketch.frequencies.scale:.3g}).",
            PhaseWarning,
            stacklevel=3,
        )
