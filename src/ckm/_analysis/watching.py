"""A stream being watched: rows go to the reference first, then in blocks to a dyadic grid, which is
searched for a change after every block.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ckm._analysis.change import Change, MonitorStatus
from ckm._analysis.change_law import MIN_MEAN, ChangeLaw, find_directions, row_features
from ckm._analysis.dyadic import Bucket, Buckets, Splits, compare_sides, push
from ckm._core.cells import Design
from ckm._core.frequencies import Frequencies
from ckm._core.sketch import Sketch, empty_tally
from ckm._core.tally import Tally
from ckm._kernels import kernel_for
from ckm._sketching.accumulate import BlockSketcher
from ckm._sketching.choose import choose_design
from ckm._sketching.options import SketchOptions
from ckm._sketching.screening import warn_of_numbering
from ckm._sources.arrays import ArraySource
from ckm._sources.base import Chunk
from ckm._sources.blocks import Block, as_floats
from ckm._util.arrays import Array, FloatArray, RowsArray

ROWS = "rows"
BATCHES = "batches"
RESTART = "restart"
CONTINUE = "continue"

# Tests at one level that chance makes as many of as a block is searched by all windows: those of
# a block overlap, and so do those of the next. Random walks in 5 to 240 dimensions have 4.4 to 5.7;
# more is kept because the law of T is estimated.
TESTS_PER_BLOCK = 12
# Batches from which the variation between batches is estimated.
MIN_BATCHES = 40
# Points of the history, at most; an even number.
MAX_HISTORY = 1024
# Batches of the shortest window: the mean of one batch of dependent rows may be far from Gaussian.
MIN_WINDOW = 4


@dataclass(frozen=True)
class WatchOptions:
    """What a stream is watched with.

    Parameters
    ----------
    reference : int
        Rows that frequencies, directions and, for independent rows, the law of T come from.
    run_length : float
        The average number of rows to a false alarm.
    block : int
        Rows between two searches, where rows are independent.
    dependence : str
        `ROWS` for independent rows, `BATCHES` for independent batches of rows.
    on_change : str
        `RESTART` or `CONTINUE`.
    sketch : SketchOptions
        How frequencies are chosen, if none are given.
    seed : int
        Determines the frequencies.
    """

    reference: int
    run_length: float
    block: int
    dependence: str
    on_change: str
    sketch: SketchOptions
    seed: int


@dataclass
class Watch:
    """Where a stream stands. Its fields are immutable values: a copy of it is another state.

    Parameters
    ----------
    options : WatchOptions
        What the stream is watched with.
    columns : tuple of str, optional
        The names of the columns; an empty tuple if there are none, None if it is not known yet.
    frequencies : Frequencies, optional
        The frequencies, once they are known.
    base : Tally, optional
        The rows that all others are compared with: given ones, or those of the reference.
    closed : int
        The rows that are in the grid, in the base, or forgotten.
    head : tuple of arrays
        The rows of the reference that frequencies and directions wait for.
    directions : float64 array (d, 2m), optional
        P, once it is known.
    units : tuple of Tally
        The rows of the head, and then the batches from which the law of T will be estimated.
    law : ChangeLaw, optional
        The law of T, once it is known.
    level : float
        The probability below which T is an alarm.
    past : Bucket, optional
        The base as a bucket.
    buckets : tuple of Bucket
        The grid.
    unfinished : Tally, optional
        The rows of a block that is not complete.
    in_alarm : bool
        Whether the last block was one of an alarm.
    history : tuple of pairs
        The rows so far, and T in units of its threshold, after each block; the largest of several
        blocks once there are many.
    found : tuple of pairs
        Where each change was, and where it was noticed.
    changes : list of Change
        What was found since the list was emptied.
    """

    options: WatchOptions
    columns: tuple[str, ...] | None = None
    frequencies: Frequencies | None = None
    base: Tally | None = None
    closed: int = 0
    head: tuple[RowsArray, ...] = ()
    directions: FloatArray | None = None
    units: tuple[Tally, ...] = ()
    law: ChangeLaw | None = None
    level: float = 0.0
    past: Bucket | None = None
    buckets: Buckets = ()
    unfinished: Tally | None = None
    in_alarm: bool = False
    history: tuple[tuple[int, float], ...] = ()
    found: tuple[tuple[int, int], ...] = ()
    changes: list[Change] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        waiting = 0 if self.unfinished is None else self.unfinished.count
        return self.closed + waiting + self._n_head + sum(unit.count for unit in self.units)

    @property
    def _n_head(self) -> int:
        return sum(map(len, self.head))

    def add(self, rows: Array) -> None:
        """Add rows, which are finite, in their order."""
        while len(rows):
            if self.directions is None:
                n = self.options.reference - self._n_head
                self.head = (*self.head, _copied([rows[:n]]))
                if self._n_head == self.options.reference:
                    self._learn()
            else:
                n = self._room(len(rows))
                tally = self._tally(rows[:n])
                self.unfinished = tally if self.unfinished is None else self.unfinished + tally
                if self._room(1) == 0:
                    self._close_block()
            rows = rows[n:]

    def end_batch(self) -> None:
        """End a batch: the next rows belong to another."""
        if self.options.dependence == BATCHES and self.unfinished is not None:
            self._close_block()

    def _room(self, n: int) -> int:
        """How many of the next n rows belong to the present block."""
        if self.options.dependence == BATCHES:
            return n
        return min(n, self.options.block - (self.unfinished.count if self.unfinished else 0))

    def _tally(self, rows: Array) -> Tally:
        assert self.frequencies is not None
        sketch_block = BlockSketcher(kernel_for(None), Design(self.frequencies))
        return sketch_block(Block(rows, None, 0, 0, Chunk(rows), 0))[0]

    def _learn(self) -> None:
        """Choose frequencies and directions by the head."""
        head = self.head
        rows = _copied(head)
        if self.frequencies is None:
            source = ArraySource(rows)
            design = choose_design(source, self.options.sketch, None, self.options.seed)
            self.frequencies = design.frequencies
            warn_of_numbering(rows, self.columns)
        self.head = ()
        features = row_features(self.frequencies, rows)
        if self.options.dependence == BATCHES:
            self.directions = find_directions(features)
            # Directions are fitted to these rows: batches to come tell how much chance moves them.
            self.units = (self._tally(rows),)
            return
        # One half finds the directions; the other, to which they are not fitted, tells how much
        # chance moves rows along them.
        self.directions = find_directions(features[::2])
        law = ChangeLaw.of_rows(features[1::2] @ self.directions.T)
        if self.base is None:
            self.closed += len(rows)
            self._begin(law, self._tally(rows), self.options.block)
        else:
            self._begin(law, self.base, self.options.block)
            self.add(rows)

    def _learn_between(self) -> None:
        """Estimate how much chance moves batches."""
        assert self.directions is not None
        units = self.units
        self.units = ()
        counts = np.array([unit.count for unit in units[1:]], np.float64)
        sums = np.stack([Bucket.of(unit, self.directions).y for unit in units[1:]])
        law = ChangeLaw.of_batches(sums / counts[:, None], counts)
        if self.base is None:
            self.closed += sum(unit.count for unit in units)
            self._begin(law, sum(units[1:], units[0]), counts.mean())
            return
        self._begin(law, self.base, counts.mean())
        for unit in units:
            self._search(unit)

    def _begin(self, law: ChangeLaw, base: Tally, block: float) -> None:
        """Watch, for blocks of so many rows."""
        assert self.directions is not None
        self.law = law
        self.level = float(block) / (TESTS_PER_BLOCK * self.options.run_length)
        self.base = base
        self.past = Bucket.of(base, self.directions)

    def _close_block(self) -> None:
        block = self.unfinished
        assert block is not None
        self.unfinished = None
        if self.law is not None:
            self._search(block)
            return
        self.units = (*self.units, block)
        # The first are the rows that directions are fitted to.
        if len(self.units) > MIN_BATCHES:
            self._learn_between()

    def _search(self, block: Tally) -> None:
        """Add a block to the grid, and look for a change."""
        if self.law is None or self.directions is None:
            # A change in an earlier one of several batches started the reference anew.
            self.closed += block.count
            return
        self.buckets = push(self.buckets, block, self.directions)
        self.closed += block.count
        split = self.most_different()
        if split is None:
            return
        self.history = _thinned((*self.history, (self.closed, split.statistic / split.threshold)))
        was_in_alarm = self.in_alarm
        self.in_alarm = split.p_value < self.level
        if self.in_alarm and not was_in_alarm:
            self.changes = [*self.changes, self._describe(split)]
            self.found = (*self.found, (self.closed - split.after, self.closed))
        if self.in_alarm and self.options.on_change == RESTART:
            self._restart()

    def _restart(self) -> None:
        """Forget all rows; the next ones are a new reference for the same frequencies."""
        self.base = None
        self.directions = None
        self.law = None
        self.level = 0.0
        self.past = None
        self.buckets = ()
        self.in_alarm = False

    def most_different(self) -> "Split | None":
        """The window that differs most from what came before it; None if there is none."""
        shortest = MIN_WINDOW if self.options.dependence == BATCHES else 1
        # The latest buckets are of one block each.
        n_splits = len(self.buckets) + 1 - shortest
        if self.law is None or self.past is None or n_splits < 1:
            return None
        splits = Splits(*(part[:n_splits] for part in compare_sides(self.past, self.buckets)))
        p_values = self.law.tail(splits.statistics, splits.before, splits.after)
        # Of several that are certain, the one with the largest statistic.
        best = int(np.lexsort((-splits.statistics, p_values))[0])
        return Split.of(splits, best, float(p_values[best]), self.law, self.level)

    def _describe(self, split: "Split") -> Change:
        assert self.base is not None
        assert self.frequencies is not None
        before = self.base
        for bucket in self.buckets[: split.number]:
            before = before + bucket.tally
        after = empty_tally(self.frequencies)
        for bucket in self.buckets[split.number :]:
            after = after + bucket.tally
        old = Sketch(self.frequencies, before, self.columns or None)
        new = Sketch(self.frequencies, after, self.columns or None)
        return Change(
            row=self.closed - split.after,
            noticed=self.closed,
            statistic=split.statistic,
            threshold=split.threshold,
            p_value=split.p_value,
            effect=effect_size(old, new),
            before=old,
            after=new,
        )

    def status(self) -> MonitorStatus:
        """What there is to say now, with the changes since the list was emptied."""
        found = tuple(self.changes)
        split = self.most_different()
        alarm = bool(found) or self.in_alarm
        watching = self.law is not None
        waiting_for = "" if watching else self._missing()
        if found:
            last = found[-1]
            numbers = (last.statistic, last.threshold, last.p_value, last.window)
        elif split is not None:
            numbers = (split.statistic, split.threshold, split.p_value, split.after)
        else:
            return MonitorStatus(self.rows, watching, alarm, waiting_for=waiting_for)
        return MonitorStatus(self.rows, watching, alarm, found, *numbers, waiting_for)

    def _missing(self) -> str:
        if self.directions is None:
            missing = self.options.reference - self._n_head
            return f"{missing:,} more rows of the reference"
        return f"{MIN_BATCHES + 1 - len(self.units)} more batches of the reference"


@dataclass(frozen=True)
class Split:
    """One way to cut the grid in two.

    Parameters
    ----------
    number : int
        How many buckets come before.
    after : int
        The rows after.
    statistic, threshold : float
        T, and what it must exceed, in units of its mean without a change.
    p_value : float
        The probability of a larger T without a change.
    """

    number: int
    after: int
    statistic: float
    threshold: float
    p_value: float

    @classmethod
    def of(
        cls, splits: Splits, number: int, p_value: float, law: ChangeLaw, level: float
    ) -> "Split":
        """One of several."""
        unit = law.first if law.first > MIN_MEAN else 1.0
        after = int(splits.after[number])
        threshold = law.quantile(level, float(splits.before[number]), after)
        statistic = float(splits.statistics[number])
        return cls(number, after, statistic / unit, threshold / unit, p_value)


def _thinned(history: tuple[tuple[int, float], ...]) -> tuple[tuple[int, float], ...]:
    """At most `MAX_HISTORY` points: once there are more, the larger one of every two."""
    if len(history) < MAX_HISTORY:
        return history
    pairs = zip(history[::2], history[1::2], strict=True)
    return tuple((second[0], max(first[1], second[1])) for first, second in pairs)


def _copied(parts: Sequence[Array]) -> RowsArray:
    """Rows one below the other, in floats."""
    rows: RowsArray = np.concatenate([as_floats(part) for part in parts])
    return rows


def effect_size(a: Sketch, b: Sketch) -> float:
    """The distance between the distributions of two sketches: the root mean squared difference of
    their characteristic functions, less what chance adds to its square.
    """
    share = a.count / (a.count + b.count)
    pooled = share * a.z + (1 - share) * b.z
    noise = (1 / a.count + 1 / b.count) * (1 - np.abs(pooled) ** 2).mean()
    return float(np.sqrt(max(0.0, (np.abs(a.z - b.z) ** 2).mean() - noise)))
