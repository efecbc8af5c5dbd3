"""`Sketcher`: a sketch that grows with every batch of rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from ckm._core.frequencies import Frequencies
from ckm._core.laws import DEFAULT_DISTRIBUTION
from ckm._core.sketch import Sketch
from ckm._sketching.api import sketch
from ckm._sketching.choose import Choice, resolve_like
from ckm._sources import ColumnRequest, open_rows
from ckm._sources.arrays import ArraySource
from ckm._sources.blocks import BLOCK_ROWS
from ckm._util.arrays import Array
from ckm._util.checks import check_whole_number
from ckm._util.device import resolve_device
from ckm._util.parallel import thread_count
from ckm._util.random import seed_of, stream
from ckm._util.warn import warn_user
from ckm.errors import DataError, HeadWarning

HEAD_ROWS = BLOCK_ROWS  # rows that choose the frequencies; then as many are sketched at a time


class Sketcher:
    """Sketch rows as they come: `update(batch)` adds some, `result()` is the sketch of all rows so
    far.

    Unless `like` gives frequencies, the first 16 384 rows (or those that came before the first
    `result()`) choose them, and should look like the rest. For the same frequencies the sums are
    those of `ckm.sketch` of all rows at once, bit for bit.

    Parameters
    ----------
    n_clusters, sketch_size, scale, distribution, standardize, like, columns, weight_column, nan,
    pool, random_state, n_jobs, device
        As in `ckm.sketch`.

    Examples
    --------
    >>> import ckm, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> growing = ckm.Sketcher(n_clusters=3, random_state=0)
    >>> for _ in range(10):
    ...     _ = growing.update(rng.normal(size=(100, 2)))
    >>> growing.count, growing.result().count
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
        self._choice = Choice(n_clusters, sketch_size, scale, distribution, standardize)
        self._like, self._nan = resolve_like(like), nan
        self._wanted = ColumnRequest(
            columns, weight_column, None if self._like is None else self._like.columns
        )
        self._how: dict[str, Any] = {
            "pool": check_whole_number(pool, "pool", 0),
            "n_jobs": thread_count(n_jobs),
            "device": device,
        }
        self._seed = seed_of(random_state)
        resolve_device(device)
        if self._like is None:
            self._choice.check()
        self._total: Sketch | None = None
        self._waiting, self._rows = list[tuple[Array, Array | None]](), 0
        self._head = 0  # rows that chose the frequencies, while no more have come

    @property
    def count(self) -> int:
        """Rows so far, those that wait to be sketched included."""
        return self._rows + (0 if self._total is None else self._total.count)

    def update(self, batch: Any, sample_weight: Any = None) -> Self:
        """Add the rows of `batch`: an array, a data frame, or whatever else `ckm.sketch` takes. A
        batch that is refused adds nothing.
        """
        source = open_rows(batch, self._wanted, sample_weight, self._nan)
        parts = []
        for chunk in source.chunks():
            chunk.require_finite(source.columns)
            rows, weights = chunk.rows_with_weight()
            # the caller may use its memory again
            parts.append((np.array(rows), None if weights is None else np.array(weights)))
        self._require_width(source.n_features)
        if self._wanted.like is None:
            self._wanted = self._wanted._replace(like=source.columns, made="the first batch")
        self._waiting += parts
        self._rows += sum(len(rows) for rows, _ in parts)
        if self._rows >= HEAD_ROWS:
            self._flush()
        return self

    def result(self) -> Sketch:
        """The sketch of all rows so far. From the first call on the frequencies are settled."""
        if self._rows or self._total is None:
            self._flush()
        assert self._total is not None
        return self._total

    def _flush(self) -> None:
        """Sketch what waits."""
        if not self._waiting and self._like is None:
            raise DataError(
                "No batch has come yet, so there is nothing to sketch; call update first."
            )
        weighted = any(weights is not None for _, weights in self._waiting)
        width = (
            self._like.frequencies.n
            if not self._waiting and self._like is not None
            else self._waiting[0][0].shape[1]
        )
        rows = np.concatenate(
            [np.empty((0, width), np.float32), *(rows for rows, _ in self._waiting)]
        )
        weights = (
            np.concatenate([np.ones(len(r)) if w is None else w for r, w in self._waiting])
            if weighted
            else None
        )
        source = ArraySource(rows, self._wanted.like)
        if self._total is None:
            options: dict[str, Any] = {"like": self._like, "random_state": self._seed} | (
                {} if self._like else self._choice._asdict()
            )
            self._total = sketch(source, sample_weight=weights, **options, **self._how)
            self._head = len(rows) if self._like is None else 0
        else:
            self._tell_of_the_head()
            # Each time the pool is drawn from a stream of its own.
            seed = int(stream(self._seed, "pool", self._total.count).integers(2**63))
            self._total = self._total + sketch(
                source, like=self._total, sample_weight=weights, random_state=seed, **self._how
            )
        self._waiting, self._rows = [], 0

    def _tell_of_the_head(self) -> None:
        if self._head:
            warn_user(
                f"The scale and the origin come from the first {self._head:,} rows: the others should look like them. Shuffle the rows, or "
                f"begin with an earlier sketch: Sketcher(like=), or CompressiveKMeans.from_sketch.",
                HeadWarning,
            )
            self._head = 0

    def _require_width(self, n: int) -> None:
        before = (
            self._waiting[0][0].shape[1]
            if self._waiting
            else None
            if self._total is None
            else self._total.frequencies.n
        )
        if before is not None and n != before:
            raise DataError(
                f"This batch has {n} columns where those before had {before}; give batches of one width."
            )
