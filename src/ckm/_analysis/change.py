"""What a monitor reports: where it stands, and each change that it found."""

from dataclasses import dataclass

import numpy as np

from ckm._core.sketch import Sketch
from ckm._util.summary import Shown, Summary


@dataclass(frozen=True, eq=False, repr=False)
class Change(Shown):
    """A change of a stream, as `ckm.Monitor` found it.

    Parameters
    ----------
    row : int
        The estimated time of the change: how many rows of the stream came before it. It is known to
        about a fifth of the `window`, and at best to a block.
    noticed : int
        How many rows had come when the change was noticed.
    statistic : float
        The weighted squared distance between the sketches before and after, in units of what
        chance makes it on average: about 1 without a change.
    threshold : float
        The value that `statistic` had to exceed.
    p_value : float
        The probability of such a `statistic` without a change, for this window alone.
    effect : float
        The distance between the two distributions as their sketches see it (the root mean squared
        difference of characteristic functions), without what chance adds. It does not grow with
        the number of rows.
    before : Sketch
        The rows before the change, to be decoded or compared.
    after : Sketch
        The rows after it, up to `noticed`.
    place : str
        The name of the batch that the change is in, and the row there, if batches have names.

    See Also
    --------
    Monitor : Watch a stream for change.

    Examples
    --------
    >>> import ckm, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitor = ckm.Monitor(reference=1000, sketch_size=50, random_state=0)
    >>> _ = monitor.update(rng.normal(size=(3000, 2)))
    >>> [change] = monitor.update(rng.normal(size=(1000, 2)) + [2.0, 0.0]).changes
    >>> change.row, change.noticed
    (3000, 3100)
    >>> (change.after.mean - change.before.mean).round()
    array([2., 0.])
    """

    row: int
    noticed: int
    statistic: float
    threshold: float
    p_value: float
    effect: float
    before: Sketch
    after: Sketch
    place: str = ""

    @property
    def window(self) -> int:
        """The number of rows after the change that it was found from: also the delay."""
        return self.noticed - self.row

    def __repr__(self) -> str:
        where = f", {self.place}" if self.place else ""
        return (
            f"Change(row={self.row}{where}, noticed={self.noticed}, effect={self.effect:.4g}, "
            f"statistic={self.statistic:.4g}, threshold={self.threshold:.4g})"
        )

    def summary(self) -> Summary:
        """Show it as a title, a table and some sentences.

        Returns
        -------
        Summary
            What `print` shows as text, and a notebook as HTML.
        """
        rows = [
            ("rows before the change", f"{self.row:,}"),
            ("noticed after", f"{self.window:,} rows"),
            ("statistic", f"{self.statistic:.4g}"),
            ("threshold", f"{self.threshold:.4g}"),
            ("p-value of this window", f"{self.p_value:.2g}"),
            ("effect", f"{self.effect:.4g}"),
        ]
        if self.place:
            rows.insert(0, ("place", self.place))
        note = f"Before: {self.before.count:,} rows; after: {self.after.count:,} rows."
        return Summary("A change of the stream", ("", "value"), tuple(rows), (note,))


@dataclass(frozen=True, eq=False, repr=False)
class MonitorStatus(Shown):
    """Where a monitor stands after a batch.

    Parameters
    ----------
    rows : int
        How many rows have come.
    watching : bool
        Whether the reference is complete, so that changes can be found.
    alarm : bool
        Whether a change was noticed in this batch; with ``on_change="continue"``, also whether the
        rows since an earlier change still differ.
    changes : tuple of Change
        The changes that were noticed in this batch.
    statistic : float
        That of the last change, if there is one; otherwise that of the window which differs most
        from what came before it, at the last block of rows. NaN before any rows were watched.
    threshold : float
        The value that `statistic` had to exceed for an alarm.
    p_value : float
        The probability of such a `statistic` without a change, for this window alone.
    window : int
        The number of rows in that window, up to the present; 0 before any rows were watched.
    waiting_for : str
        What the reference lacks, in words; empty once it is complete.

    See Also
    --------
    Monitor : Watch a stream for change.

    Examples
    --------
    >>> import ckm, numpy as np
    >>> monitor = ckm.Monitor(reference=1000, sketch_size=50, random_state=0)
    >>> status = monitor.update(np.random.default_rng(0).normal(size=(800, 2)))
    >>> print(status)
    800 rows: waiting for 200 more rows of the reference
    >>> bool(status), status.watching
    (False, False)
    """

    rows: int
    watching: bool
    alarm: bool = False
    changes: tuple[Change, ...] = ()
    statistic: float = np.nan
    threshold: float = np.nan
    p_value: float = np.nan
    window: int = 0
    waiting_for: str = ""

    def __bool__(self) -> bool:
        return self.alarm

    def __repr__(self) -> str:
        found = f", changes={list(self.changes)}" if self.changes else ""
        return (
            f"MonitorStatus(rows={self.rows}, watching={self.watching}, alarm={self.alarm}, "
            f"statistic={self.statistic:.4g}, threshold={self.threshold:.4g}{found})"
        )

    def summary(self) -> Summary:
        """Show it as a title, a table and some sentences.

        Returns
        -------
        Summary
            What `print` shows as text, and a notebook as HTML.
        """
        title = f"{self.rows:,} rows: {self._verdict()}"
        notes = tuple(
            f"Changed after row {change.row:,}{f' ({change.place})' if change.place else ''}, "
            f"noticed {change.window:,} rows later; effect {_shown_effect(change)}."
            for change in self.changes
        )
        if not self.window:
            return Summary(title, notes=notes)
        row = (
            f"last {self.window:,} rows",
            f"{self.statistic:.4g}",
            f"{self.threshold:.4g}",
            f"{self.p_value:.2g}",
        )
        return Summary(title, ("window", "statistic", "threshold", "p-value"), (row,), notes)

    def _verdict(self) -> str:
        if self.changes:
            return "change" if len(self.changes) == 1 else f"{len(self.changes)} changes"
        if self.alarm:
            return "still changed"
        return "no change" if self.watching else f"waiting for {self.waiting_for}"


def _shown_effect(change: Change) -> str:
    """The effect, with a word on why it may be zero although there was a change."""
    shown = f"{change.effect:.4g}"
    return shown if change.effect else f"{shown} (not measurable yet from so few rows)"
