"""`Monitor`: a stream watched for change."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np

from ckm._analysis import monitor_file
from ckm._analysis.change import MonitorStatus
from ckm._analysis.monitor_checks import (
    check_choice,
    check_run_length,
    check_width,
    open_batch,
    require_unweighted,
)
from ckm._analysis.monitor_file import NamedBatch, SavedMonitor, recorded_options
from ckm._analysis.watching import BATCHES, CONTINUE, RESTART, ROWS, Watch, WatchOptions
from ckm._core.defaults import (
    DEFAULT_DISTRIBUTION,
    DEFAULT_MONITOR_SIZE,
    DEFAULT_REFERENCE,
    DEFAULT_RUN_LENGTH,
)
from ckm._core.frequencies import Frequencies
from ckm._core.sketch import Sketch
from ckm._messages import Argument
from ckm._sketching.choose import check_agreement, resolve_like
from ckm._sketching.options import SketchOptions
from ckm._sketching.stream import require_usable
from ckm._util.arrays import FloatArray
from ckm._util.checks import EUCLIDEAN, check_nan_policy, check_whole_number
from ckm._util.random import RandomState, seed_of
from ckm.errors import ParameterError

MIN_REFERENCE = 100


class Monitor:
    """Watch a stream for change.

    The first rows are a reference. After that, whenever a block of rows is complete, the latest
    rows are compared with all before them, for windows of every length: a dyadic grid of sketches
    holds the past, in a size that grows with the logarithm of the number of rows. No window has to
    be chosen. The threshold is such that false alarms come after `run_length` rows on average, or
    later.

    The same rows give the same changes, however they are split into batches (unless
    ``dependence="batches"``), and whether the monitor was saved and loaded in between or not.

    Parameters
    ----------
    reference : int, default=5000
        The rows, at the start and after each change that it starts anew from, that frequencies and
        thresholds are estimated from. Nothing is found in them. They should be as varied as those
        to come.
    run_length : float, default=1_000_000
        The average number of rows between false alarms, at least.
    block : int, default=100
        The rows after which a change is looked for, each time.
    dependence : {"rows", "batches"}, default="rows"
        What is independent: rows, or only batches. With "batches" each call of `update` is a block,
        and what chance does is estimated from the differences between the 40 batches after the
        `reference` rows. Use it if rows depend on each other, and give batches of similar sizes
        that are long compared with how far this reaches.
    on_change : {"restart", "continue"}, default="restart"
        What follows an alarm. "restart" forgets all rows, and takes the next `reference` rows as
        the new reference. "continue" goes on comparing with the past: the alarm stays until the
        rows are as before.
    like : Sketch, Frequencies, str or path, optional
        A sketch, or the name of its file, whose rows come before the stream: it is compared with
        them from its first row on. The first `reference` rows of the stream are still needed to
        estimate what chance does. Of `Frequencies`, or a sketch of no rows, only the frequencies
        are used.
    n_clusters : int, optional
        Size the sketch for K clusters, m = 5 K n.
    sketch_size : int, optional
        The number m of frequencies; 500 by default.
    scale : "auto" or float, default="auto"
        The variance that the frequencies are scaled to; "auto" estimates it from the reference.
    distribution : str, default="multiscale"
        The distribution of the frequencies, as in `ckm.sketch`.
    standardize : bool, default=False
        Divide each column by its standard deviation in the reference. Use it if columns have
        different units: a change in a column of small numbers is not seen otherwise.
    projection : "auto", int or None, default="auto"
        What wide rows are projected to, as in `ckm.sketch`.
    metric : {"euclidean", "cosine"}, default="euclidean"
        With "cosine", each row is divided by its length first.
    columns : list of str, optional
        The columns of tables to use; by default all numeric ones.
    nan : {"error", "drop"}, default="error"
        How to handle missing values: raise an error, or drop their rows, which then do not count.
    random_state : int, Generator, RandomState or None, default=None
        Determines the frequencies. None uses a new seed.

    See Also
    --------
    Sketcher : Sketch batches of rows as they arrive.

    Examples
    --------
    >>> import ckm, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitor = ckm.Monitor(reference=1000, sketch_size=50, random_state=0)
    >>> for _ in range(30):
    ...     status = monitor.update(rng.normal(size=(100, 2)))
    >>> status.watching, status.alarm
    (True, False)
    >>> while not status.alarm:
    ...     status = monitor.update(rng.normal(size=(100, 2)) + [1.0, 0.0])
    >>> abs(status.changes[0].row - 3000) <= 100
    True
    """

    def __init__(
        self,
        *,
        reference: int = DEFAULT_REFERENCE,
        run_length: float = DEFAULT_RUN_LENGTH,
        block: int = 100,
        dependence: str = ROWS,
        on_change: str = RESTART,
        like: Sketch | Frequencies | str | PathLike[str] | None = None,
        n_clusters: int | None = None,
        sketch_size: int | None = None,
        scale: float | str = "auto",
        distribution: str = DEFAULT_DISTRIBUTION,
        standardize: bool = False,
        projection: int | str | None = "auto",
        metric: str = EUCLIDEAN,
        columns: Sequence[str] | None = None,
        nan: str = "error",
        random_state: RandomState = None,
    ) -> None:
        model = resolve_like(like)
        if model is None and n_clusters is None and sketch_size is None:
            sketch_size = DEFAULT_MONITOR_SIZE
        if not (projection is None or isinstance(projection, (int, str, np.integer))):
            raise ParameterError(
                Argument("projection"),
                ' must be "auto", a number of axes, or None; got ' + f"{projection!r}.",
            )
        sketch = SketchOptions(
            n_clusters, sketch_size, scale, distribution, standardize, 0, projection, metric
        )
        if model is None:
            sketch.check()
        else:
            check_agreement(model, sketch)
        options = WatchOptions(
            check_whole_number(reference, "reference", MIN_REFERENCE),
            check_run_length(run_length, check_whole_number(block, "block", 1)),
            check_whole_number(block, "block", 1),
            check_choice(dependence, "dependence", (ROWS, BATCHES)),
            check_choice(on_change, "on_change", (RESTART, CONTINUE)),
            sketch,
            seed_of(random_state),
        )
        self._watch = Watch(options)
        if model is not None:
            require_unweighted(model)
            self._watch.frequencies = model.frequencies
            self._watch.columns = model.columns or ()
            self._watch.base = model.tally if model.count else None
        if isinstance(columns, str):
            columns = [columns]
        self._wanted = None if columns is None else list(columns)
        self._nan = check_nan_policy(nan)
        self._batches: tuple[NamedBatch, ...] = ()

    def __repr__(self) -> str:
        state = "watching" if self._watch.law is not None else "collecting a reference"
        return f"Monitor({self.rows:,} rows so far, {state})"

    @property
    def rows(self) -> int:
        """The number of rows so far, without those of `like`."""
        return self._watch.rows

    @property
    def batches(self) -> tuple[str, ...]:
        """The names of the batches so far that have names."""
        return tuple(batch.name for batch in self._batches)

    @property
    def status(self) -> MonitorStatus:
        """Where the monitor stands, without the changes that were reported already."""
        return self._watch.status()

    def update(self, batch: Any, name: str = "") -> MonitorStatus:
        """Add a batch of rows, and look for a change.

        The whole batch is added, or nothing of it if this method raises an exception.

        Parameters
        ----------
        batch : array-like, data frame, file name or other data
            The rows (b, n), in the order of time: anything that `ckm.sketch` accepts, except the
            data of an engine.
        name : str, optional
            The name of the batch, such as that of its file. A change is then also reported by the
            batch that it is in, and the row there.

        Returns
        -------
        MonitorStatus
            Whether there was a change, when, and how sure it is. True as a condition if there was
            an alarm.

        Raises
        ------
        DataError
            If the rows cannot be used, or do not have the width of earlier batches.
        NonFiniteError
            If a value is missing, infinite, or too large for float32.
        MismatchError
            If the columns are not those of earlier batches.

        Examples
        --------
        >>> import ckm, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> monitor = ckm.Monitor(reference=1000, sketch_size=50, random_state=0)
        >>> monitor.update(rng.normal(size=(900, 2)), name="monday").watching
        False
        >>> print(monitor.update(rng.normal(size=(100, 2)), name="tuesday"))
        1,000 rows: no change
        """
        watch = copy.copy(self._watch)
        watch.changes = []
        source = open_batch(watch, batch, self._wanted, self._nan)
        check_width(watch, source)
        if watch.columns is None:
            watch.columns = source.columns or ()
        start = watch.rows
        metric = watch.options.sketch.metric
        for chunk in source.chunks():
            require_usable(chunk, source.columns, watch.frequencies, metric)
            watch.add(np.asarray(chunk.rows))
        watch.end_batch()
        batches = self._batches
        if name:
            batches = (*batches, NamedBatch(str(name), start, watch.rows - start))
        watch.changes = [
            replace(change, place=place_of(change.row, batches)) for change in watch.changes
        ]
        status = watch.status()
        watch.changes = []
        # What may fail is done.
        self._watch = watch
        self._batches = batches
        return status

    @property
    def history(self) -> FloatArray:
        """What was found over time (k, 2): the number of rows so far, and the largest statistic
        since the row before, in units of its threshold. At most 1024 of them, evenly spaced.
        """
        return np.array(self._watch.history, np.float64).reshape(-1, 2)

    @property
    def found(self) -> tuple[tuple[int, int], ...]:
        """Each change so far: the estimated row, and the row when it was noticed."""
        return self._watch.found

    def plot(self, path: str | PathLike[str] | None = None) -> Any:
        """Draw the statistic over time, with its threshold and the changes. Needs matplotlib.

        Parameters
        ----------
        path : str or path-like, optional
            Where to save the plot, as PNG.

        Returns
        -------
        matplotlib.figure.Figure
            The plot.

        Examples
        --------
        >>> import ckm, numpy as np
        >>> monitor = ckm.Monitor(reference=1000, sketch_size=50, random_state=0)
        >>> _ = monitor.update(np.random.default_rng(0).normal(size=(3000, 2)))
        >>> figure = monitor.plot()  # doctest: +SKIP
        """
        from ckm._display.plots_monitor import draw_history

        return draw_history(self.history, self.found, path)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that it was made with, without `like`."""
        options = recorded_options(self._watch.options)
        sketch = options.pop("sketch")
        del sketch["cells"]
        options["random_state"] = options.pop("seed")
        options |= sketch
        return {**options, "columns": self._wanted, "nan": self._nan}

    def save(self, path: str | PathLike[str]) -> None:
        """Write the state to a file, from which `Monitor.load` continues as if nothing had been.

        While the reference is incomplete, the file holds its rows; after that, sums of rows only,
        and the smallest and largest values of columns.

        Parameters
        ----------
        path : str or path-like
            The file; an existing one is replaced, completely or not at all.

        Raises
        ------
        ckm.errors.OutputError
            The file cannot be written.

        Examples
        --------
        >>> import os, tempfile
        >>> import ckm
        >>> ckm.Monitor(random_state=0).save(os.path.join(tempfile.mkdtemp(), "stream.monitor"))
        """
        saved = SavedMonitor(self._watch, self._wanted, self._nan, self._batches)
        monitor_file.save(saved, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read the state that `save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        Monitor
            The monitor, in the same state.

        Raises
        ------
        ckm.errors.MissingFileError
            There is no such file.
        ckm.errors.CheckpointError
            The file is not the state of a monitor, or was altered. No code in the file is ever run.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> import ckm
        >>> monitor = ckm.Monitor(reference=100, sketch_size=8, random_state=0)
        >>> _ = monitor.update(np.random.default_rng(0).normal(size=(250, 2)))
        >>> name = os.path.join(tempfile.mkdtemp(), "stream.monitor")
        >>> monitor.save(name)
        >>> ckm.Monitor.load(name)
        Monitor(250 rows so far, watching)
        """
        saved = monitor_file.load(path)
        monitor = cls.__new__(cls)
        monitor._watch = saved.watch
        monitor._wanted = saved.columns
        monitor._nan = saved.nan
        monitor._batches = saved.batches
        return monitor


def require_same_options(monitor: Monitor, earlier: Monitor, name: str) -> None:
    """Refuse to continue a monitor, whose file has this name, with other options."""
    now = monitor.options
    for option, before in earlier.options.items():
        if now[option] != before:
            raise ParameterError(
                f"{name} was written with ",
                Argument(option, before),
                ", and now ",
                Argument(option, now[option]),
                " is given; give the same options, or another file for the state.",
            )


def place_of(row: int, batches: Sequence[NamedBatch]) -> str:
    """The batch that a row is in, and how many rows of it come before.

    >>> place_of(120, [NamedBatch("monday", 0, 100), NamedBatch("tuesday", 100, 50)])
    'tuesday, row 20'
    >>> place_of(150, [NamedBatch("monday", 0, 100)])
    ''
    """
    for name, start, count in reversed(batches):
        if start <= row < start + count:
            return f"{name}, row {row - start:,}"
    return ""
