"""`Sketcher`: a sketch that grows with every batch of rows."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np

from ckm._core.frequencies import Frequencies
from ckm._core.laws import DEFAULT_DISTRIBUTION
from ckm._core.sketch import Sketch
from ckm._messages import Argument, Message
from ckm._sketching.api import sketch
from ckm._sketching.choose import resolve_like
from ckm._sketching.options import SketchOptions
from ckm._sources import ColumnRequest, open_rows
from ckm._sources.arrays import ArraySource
from ckm._sources.blocks import BLOCK_ROWS
from ckm._util.arrays import FloatArray, RowsArray
from ckm._util.checks import check_whole_number
from ckm._util.device import resolve_device
from ckm._util.parallel import thread_count
from ckm._util.random import seed_of, stream
from ckm._util.warn import warn_user
from ckm.errors import DataError, HeadWarning

# Rows that are held back before the frequencies are chosen, and sketched at a time after that: one
# block, so that small batches cost no more than large ones.
HEAD_ROWS = BLOCK_ROWS


class Sketcher:
    """Sketch rows in batches, as they arrive.

    `update` adds a batch, and `result` returns the sketch of all rows so far. For the same
    frequencies its sums are bit-identical to those of `ckm.sketch` on all rows at once.

    Unless `like` gives frequencies, the first 16 384 rows determine their scale and origin (or the
    rows before the first call of `result`, if they are fewer). These rows should be
    representative of the others.

    Parameters
    ----------
    n_clusters : int, optional
        The number K of clusters that the sketch will be decoded to. Sets the size of the sketch to
        m = 5 K n unless `sketch_size` is given.
    sketch_size : int, optional
        The number m of frequencies.
    scale : "auto" or float, default="auto"
        The variance sigma^2 that the frequencies are scaled to; "auto" estimates it from the first
        rows.
    distribution : {"multiscale", "structured", "adapted-radius", "folded-gaussian", "gaussian"}, \
default="multiscale"
        The law that the frequencies are drawn from.
    standardize : bool, default=False
        Divide each column by its standard deviation in the first rows. Centroids are returned in
        the units of the data.
    like : Sketch, Frequencies, str or path, optional
        A sketch, its frequencies, or the name of its file. The new sketch uses the same
        frequencies and column names, so that the two can be merged.
    columns : list of str, optional
        The columns of a table to use, in this order; by default all numeric ones.
    weight_column : str, optional
        The column of a table that holds the weights of rows.
    nan : {"error", "drop"}, default="error"
        How to handle missing values: raise an error, or drop their rows.
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
        standardize: bool = False,
        like: Sketch | Frequencies | str | Path | None = None,
        columns: Sequence[str] | None = None,
        weight_column: str | None = None,
        nan: str = "error",
        pool: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> None:
        self._options = SketchOptions(n_clusters, sketch_size, scale, distribution, standardize)
        self._like = resolve_like(like)
        self._nan = nan
        self._request = ColumnRequest(
            columns, weight_column, None if self._like is None else self._like.columns
        )
        self._pass_arguments: dict[str, Any] = {
            "pool": check_whole_number(pool, "pool", 0),
            "n_jobs": thread_count(n_jobs),
            "device": device,
        }
        self._seed = seed_of(random_state)
        resolve_device(device)
        if self._like is None:
            self._options.check()
        self._total: Sketch | None = None
        # Rows that are not in the total yet, and their number.
        self._waiting = list[tuple[RowsArray, FloatArray | None]]()
        self._n_waiting = 0
        # Rows that the frequencies were chosen by, until the first others arrive.
        self._n_head = 0

    @property
    def count(self) -> int:
        """The number of rows so far."""
        return self._n_waiting + (0 if self._total is None else self._total.count)

    def update(self, batch: Any, sample_weight: Any = None) -> Self:
        """Add a batch of rows.

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
            If the rows cannot be used, or do not have the width of earlier batches. Nothing is
            added then.
        MismatchError
            If the columns are not those of earlier batches.
        """
        source = open_rows(batch, self._request, sample_weight, self._nan)
        parts = []
        for chunk in source.chunks():
            chunk.require_finite(source.columns)
            rows, weights = chunk.rows_with_weight()
            parts.append((np.array(rows), None if weights is None else np.array(weights)))
        self._check_width(source.n_features)
        if self._request.like is None:
            self._request = self._request._replace(like=source.columns, like_name="the first batch")
        self._waiting += parts
        self._n_waiting += sum(len(rows) for rows, _ in parts)
        if self._n_waiting >= HEAD_ROWS:
            self._flush()
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
        if self._n_waiting or self._total is None:
            self._flush()
        assert self._total is not None
        return self._total

    def _flush(self) -> None:
        """Sketch the rows that wait, and add them to the total."""
        if not self._waiting and self._like is None:
            raise DataError("There are no rows to sketch, as no batch came yet; call update first.")
        rows, weights = self._join_waiting()
        source = ArraySource(rows, self._request.like)
        arguments = self._pass_arguments | {"sample_weight": weights}
        if self._total is None:
            arguments |= {"like": self._like} if self._like else asdict(self._options)
            self._total = sketch(source, random_state=self._seed, **arguments)
            self._n_head = len(rows) if self._like is None else 0
        else:
            self._warn_head()
            # Each part of the pool is drawn from a stream of its own.
            seed = int(stream(self._seed, "pool", self._total.count).integers(2**63))
            self._total += sketch(source, random_state=seed, like=self._total, **arguments)
        self._waiting = []
        self._n_waiting = 0

    def _join_waiting(self) -> tuple[RowsArray, FloatArray | None]:
        """All rows that wait, with their weights if any of them have weights."""
        width = self._width()
        if width is None:
            assert self._like is not None
            width = self._like.frequencies.n
        # The empty table stands for no batch at all.
        tables = [rows for rows, _ in self._waiting]
        joined = np.concatenate([np.empty((0, width), np.float32), *tables])
        if all(weights is None for _, weights in self._waiting):
            return joined, None
        parts = [
            np.ones(len(rows)) if weights is None else weights for rows, weights in self._waiting
        ]
        return joined, np.concatenate(parts)

    def _warn_head(self) -> None:
        """Warn, once, that the first rows have determined scale and origin."""
        if not self._n_head:
            return
        warn_user(
            Message(
                f"The scale and the origin come from the first {self._n_head:,} rows: the others "
                "should look like them. Shuffle the rows, or start from an earlier sketch: ",
                Argument("like", ..., function="Sketcher"),
                ", or CompressiveKMeans.from_sketch.",
            ),
            HeadWarning,
        )
        self._n_head = 0

    def _width(self) -> int | None:
        """The number of columns of the batches so far; None before the first."""
        if self._waiting:
            return int(self._waiting[0][0].shape[1])
        return None if self._total is None else self._total.frequencies.n

    def _check_width(self, n: int) -> None:
        before = self._width()
        if before is not None and n != before:
            raise DataError(
                f"This batch has {n} columns where those before had {before}; "
                "give batches of one width."
            )
