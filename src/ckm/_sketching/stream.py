"""`Sketcher`: a sketch that grows with every batch of rows."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from threading import RLock
from typing import Any, NamedTuple, Self

import numpy as np

from ckm._core.categories import as_categories
from ckm._core.defaults import DEFAULT_DISTRIBUTION
from ckm._core.frequencies import Frequencies
from ckm._core.sketch import Sketch
from ckm._messages import Argument, Message
from ckm._sketching.choose import categories_like, resolve_like
from ckm._sketching.options import PassOptions, SketchOptions
from ckm._sketching.phases import has_large_phases, warn_of_large_phases
from ckm._sketching.screened_pass import as_names, sketch_source
from ckm._sources import Chunk, ColumnRequest, open_rows
from ckm._sources.arrays import ArraySource
from ckm._sources.settings import BLOCK_ROWS
from ckm._util.arrays import FloatArray, RowsArray
from ckm._util.checks import (
    COSINE,
    EUCLIDEAN,
    check_nan_of_sketch,
    check_whole_number,
    require_float32,
)
from ckm._util.device import resolve_device
from ckm._util.parallel import thread_count
from ckm._util.random import RandomState, seed_of, stream
from ckm._util.warn import warn_user
from ckm.errors import DataError, HeadWarning, NonFiniteError

# Rows that are held back before the frequencies are chosen, and sketched at a time after that: one
# block, so that small batches cost no more than large ones.
HEAD_ROWS = BLOCK_ROWS


class _Part(NamedTuple):
    """Rows (b, n), and their weights if they have weights."""

    rows: RowsArray
    weights: FloatArray | None


class Sketcher:
    """Sketch rows in batches, as they arrive.

    `update` adds a batch, and `result` returns the sketch of all rows so far. For the same
    frequencies its sums are bit-identical to those of `ckm.sketch` on all rows at once. Several
    threads may use one `Sketcher`.

    Unless `like` gives frequencies, the first 16 384 rows determine their scale and origin (or the
    rows before the first call of `result`, if they are fewer). These rows should be
    representative of the others.

    Parameters
    ----------
    n_clusters : int, optional
        The number K of clusters that the sketch will be decoded to. Sets the size of the sketch to
        m = 5 K n unless `sketch_size` is given; beside cells to fewer, but at least 2 K n, if
        n > 10 or K n > 800.
    sketch_size : int, optional
        The number m of frequencies.
    scale : "auto" or float, default="auto"
        The variance sigma^2 that the frequencies are scaled to; "auto" estimates it from the first
        rows.
    distribution : {"multiscale", "structured", "adapted-radius", "folded-gaussian", "gaussian"}, \
default="multiscale"
        The distribution of the frequencies.
    standardize : bool or "robust", default=False
        Divide each column by its standard deviation. Frequencies are drawn for that of the first
        rows; distances are measured by that of all rows. "robust" divides by the interquartile
        range of the first rows. Centroids are returned in the units of the data.
    projection : "auto", int, array (d, n) or None, default="auto"
        What wide rows are projected to, as in `ckm.sketch`.
    metric : {"euclidean", "cosine"}, default="euclidean"
        With "cosine", each row is divided by its length before anything else. A row of zeros stays
        as it is.
    like : Sketch, Frequencies, str or path, optional
        A sketch, its frequencies, or the name of its file. The new sketch uses the same
        frequencies and column names, so that the two can be merged.
    columns : list of str, optional
        The columns of a table to use, in this order; by default all numeric ones.
    exclude : list of str, optional
        Columns of a table that are not used.
    weight_column : str, optional
        The column of a table that holds the weights of rows.
    nan : {"error", "drop", "impute"}, default="error"
        How to handle missing values: raise an error, drop their rows, or replace them by the origin
        of the frequencies, which is about the mean of their column in the first rows.
    log : list of str, optional
        Columns that are replaced by their logarithms first, `sign(x) log(1 + |x|)`.
    categories : list of str or dict, optional
        Columns of text, whole numbers or booleans that are coded as in `ckm.sketch`. The values
        that are told apart are those of the first batch.
    cells : "auto" or int, default="auto"
        The number of anchors around which cells of rows are kept; "auto" is 16 per cluster
        (48 from 500 clusters on), at least 160; 0 none.
    pool : int, default=0
        The number of sampled rows to keep in the sketch.
    random_state : int, Generator, RandomState or None, default=None
        Determines the frequencies and the pool. None uses a new seed.
    n_jobs : int, optional
        The number of threads; None means all cores. The result does not depend on it.
    device : {"auto", "cpu", "cuda", "cuda:0", "cuda:1", ...}, default="auto"
        Where the sums are computed: "auto" is the CPU, since rows are collected there.

    See Also
    --------
    sketch : Sketch data in one pass.

    Examples
    --------
    >>> import ckm, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sketcher = ckm.Sketcher(n_clusters=3, random_state=0)
    >>> for _ in range(10):
    ...     _ = sketcher.update(rng.normal(size=(100, 2)))
    >>> sketcher.count, sketcher.result().count
    (1000, 1000)
    """

    def __init__(
        self,
        *,
        n_clusters: int | None = None,
        sketch_size: int | None = None,
        scale: float | str = "auto",
        distribution: str = DEFAULT_DISTRIBUTION,
        standardize: bool | str = False,
        projection: Any = "auto",
        metric: str = EUCLIDEAN,
        like: Sketch | Frequencies | str | PathLike[str] | None = None,
        columns: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        weight_column: str | None = None,
        nan: str = "error",
        log: Sequence[str] | None = None,
        categories: Any = None,
        cells: int | str = "auto",
        pool: int = 0,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> None:
        self._options = SketchOptions(
            n_clusters,
            sketch_size,
            scale,
            distribution,
            standardize,
            cells,
            projection,
            metric,
            as_names(log),
        )
        self._like = resolve_like(like)
        self._nan = check_nan_of_sketch(nan)
        asked = as_categories(categories)
        if self._like is not None:
            asked = categories_like(self._like, asked)
        self._request = ColumnRequest(
            columns,
            weight_column,
            None if self._like is None else self._like.columns or (),
            exclude=exclude,
            categories=asked,
            like_features=None if self._like is None else self._like.frequencies.n_features,
        )
        self._pass_options = PassOptions(
            check_whole_number(pool, "pool", 0),
            seed_of(random_state),
            thread_count(n_jobs),
            device,
            progress=False,
        )
        resolve_device(device)
        if self._like is None:
            self._options.check()
        # All state below changes under this lock.
        self._lock = RLock()
        self._total: Sketch | None = None
        # Rows that are not in the total yet, and their number.
        self._waiting = list[_Part]()
        self._n_waiting = 0
        # Rows that the frequencies were chosen by, until the first others arrive.
        self._n_head = 0
        self._has_warned_of_phases = False

    def __repr__(self) -> str:
        return f"Sketcher({self.count:,} rows so far)"

    @property
    def count(self) -> int:
        """The number of rows so far."""
        with self._lock:
            return self._n_waiting + (0 if self._total is None else self._total.count)

    def update(self, batch: Any, sample_weight: Any = None) -> Self:
        """Add a batch of rows.

        Several threads may add batches at the same time. The whole batch is added, or nothing of
        it if this method raises an exception.

        Parameters
        ----------
        batch : array-like, data frame, file name or other data
            The rows (b, n): anything that `ckm.sketch` accepts, except the data of an engine. They
            are copied, so that the memory can be reused.
        sample_weight : array-like of shape (b,), optional
            Non-negative weights of the rows.

        Returns
        -------
        Sketcher
            This object.

        Raises
        ------
        DataError
            If the rows cannot be used, or do not have the width of earlier batches.
        NonFiniteError
            If a value is missing, infinite, or too large for float32.
        MismatchError
            If the columns are not those of earlier batches.
        """
        with self._lock:
            source = open_rows(batch, self._request, sample_weight, self._nan)
            self._check_width(source.n_features)
            parts = [self._checked_part(chunk, source.columns) for chunk in source.chunks()]
            n_rows = sum(len(part.rows) for part in parts)
            request = self._request
            if request.like is None:
                request = request._replace(
                    like=source.columns or (),
                    like_name="the first batch",
                    categories=source.categories,
                    like_features=source.n_features,
                )
            if self._n_waiting + n_rows >= HEAD_ROWS:
                self._sketch_rows([*self._waiting, *parts], request)
            else:
                self._request = request
                self._waiting += parts
                self._n_waiting += n_rows
        return self

    def result(self) -> Sketch:
        """Return the sketch of all rows so far; further batches can be added after it.

        The first call settles the frequencies.

        Returns
        -------
        Sketch
            A value that later batches do not change.

        Raises
        ------
        DataError
            If there was no batch yet, and no `like`.
        """
        with self._lock:
            if self._n_waiting or self._total is None:
                self._sketch_rows(self._waiting, self._request)
            assert self._total is not None
            return self._total

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=RLock(), _waiting=list(state["_waiting"]))

    def _checked_part(self, chunk: Chunk, columns: tuple[str, ...] | None) -> _Part:
        """Copy the rows of a chunk; raises for a value that a kernel would refuse later."""
        checked = chunk
        if self._nan == "impute":
            rows = np.asarray(chunk.rows, np.float64)
            checked = chunk._replace(rows=np.where(np.isnan(rows), 0.0, rows))
        require_usable(checked, columns, self._frequencies, self._options.metric)
        kept, weights = chunk.rows_with_weight()
        return _Part(np.array(kept), None if weights is None else np.array(weights))

    def _sketch_rows(self, parts: Sequence[_Part], request: ColumnRequest) -> None:
        """Add parts to the total; they are all that waits from then on."""
        if not parts and self._like is None:
            raise DataError("There are no rows to sketch, as no batch came yet; call update first.")
        rows, weights = self._joined(parts)
        source = ArraySource(rows, request.like or None, weights)
        source.categories = request.categories
        n_head = 0
        imputes = self._nan == "impute"
        if self._total is None:
            options = replace(self._options, categories=request.categories)
            options = options if self._like is None else SketchOptions()
            execution = self._pass_options
            total = sketch_source(source, options, execution, self._like, imputes=imputes)
            n_head = len(rows) if self._like is None else 0
        else:
            self._warn_of_head()
            # Each part of the pool is drawn from a stream of its own.
            seed = int(stream(self._pass_options.seed, "pool", self._total.count).integers(2**63))
            execution = replace(self._pass_options, seed=seed)
            new = sketch_source(source, SketchOptions(), execution, self._total, imputes=imputes)
            total = self._total + new
        self._warn_of_phases(total)
        # What may fail is done. No call and no loop below, so that Ctrl-C cannot come in between.
        none_waiting: list[_Part] = []
        self._request = request
        self._total = total
        self._n_head = n_head
        self._waiting = none_waiting
        self._n_waiting = 0

    def _joined(self, parts: Sequence[_Part]) -> tuple[RowsArray, FloatArray | None]:
        """All rows of these parts, with their weights if any of them have weights."""
        tables = [part.rows for part in parts]
        if not tables:
            assert self._like is not None
            tables = [np.empty((0, self._like.frequencies.n_features), np.float32)]
        # The empty table makes rows of integers and booleans floats.
        joined = np.concatenate([np.empty((0, tables[0].shape[1]), np.float32), *tables])
        if all(part.weights is None for part in parts):
            return joined, None
        weights = [
            np.ones(len(part.rows)) if part.weights is None else part.weights for part in parts
        ]
        return joined, np.concatenate(weights)

    def _warn_of_head(self) -> None:
        """Warn, once, that the first rows have determined scale and origin."""
        if not self._n_head:
            return
        n_head = self._n_head
        # Before the warning: if it is raised as an error, adding the batch again succeeds.
        self._n_head = 0
        warn_user(
            Message(
                f"The scale and the origin come from the first {n_head:,} rows: the others "
                "should look like them. Shuffle the rows, or start from an earlier sketch: ",
                Argument("like", ..., function="Sketcher"),
                ", or CompressiveKMeans.from_sketch.",
            ),
            HeadWarning,
        )

    def _warn_of_phases(self, total: Sketch) -> None:
        """Warn, once, of rows that are too far from the origin."""
        if not self._has_warned_of_phases and has_large_phases(total):
            self._has_warned_of_phases = True
            warn_of_large_phases(total)

    @property
    def _frequencies(self) -> Frequencies | None:
        """The frequencies; None before the first rows have determined them."""
        known = self._total if self._total is not None else self._like
        return None if known is None else known.frequencies

    def _check_width(self, n: int) -> None:
        """Refuse another number of columns than before, or too many for the size of the sketch."""
        frequencies = self._frequencies
        before = None if frequencies is None else frequencies.n_features
        if self._waiting:
            before = int(self._waiting[0].rows.shape[1])
        if before is None:
            self._options.check(n)
        elif n != before:
            raise DataError(
                f"This batch has {n} columns where those before had {before}; "
                "give batches of one width."
            )


def require_usable(
    chunk: Chunk, columns: tuple[str, ...] | None, frequencies: Frequencies | None, metric: str
) -> None:
    """Raise `NonFiniteError` for a value that a kernel would refuse: with these frequencies, or
    with any for this metric if they are not known yet.
    """
    chunk.require_finite(columns)
    rows = np.asarray(chunk.rows, np.float64)
    try:
        if (metric if frequencies is None else frequencies.metric) == COSINE:
            # Finite rows of any size are divided by their lengths.
            pass
        elif frequencies is not None:
            origin = frequencies.origin
            if frequencies.projection is not None:
                origin = frequencies.projection.absolute(np.zeros(rows.shape[1]))
            require_float32(rows - origin)
        else:
            # The origin will be among the rows: no two of them may be too far apart.
            require_float32(2 * rows)
    except NonFiniteError as error:
        error.value = float(rows[error.row, error.column])
        raise chunk.locate_error(error, error.row, columns) from None
