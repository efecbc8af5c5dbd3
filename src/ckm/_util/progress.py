"""A progress bar on standard error: rows, rows per second, bytes, time left.

Nothing is shown if standard error is not a terminal.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Called with a number of rows, and optionally the number of bytes that were read for them.
OnRows = Callable[..., None]


def ignore(rows: int, n_bytes: int = 0) -> None:
    """Report nothing."""


class _Progress:
    """How far a pass has come.

    It advances by rows, or by bytes if only the total number of bytes is known.
    """

    def __init__(self, total_rows: int | None, total_bytes: int | None) -> None:
        self._total_rows = total_rows
        self._total_bytes = total_bytes
        self._rows = 0
        self._bytes = 0
        self._start = time.monotonic()

    @property
    def _counts_rows(self) -> bool:
        return self._total_rows is not None or self._total_bytes is None

    @property
    def total(self) -> int | None:
        """All steps of the bar, if they are known."""
        return self._total_rows if self._total_rows is not None else self._total_bytes

    def add(self, rows: int, n_bytes: int) -> int:
        """Count rows and bytes; returns by how many steps the bar advances."""
        self._rows += rows
        self._bytes += n_bytes
        return rows if self._counts_rows else n_bytes

    def rate(self) -> float:
        """Millions of rows per second."""
        return self._rows / max(time.monotonic() - self._start, 1e-3) / 1e6

    def text(self, format_bytes: Callable[[int], str]) -> str:
        """Rows, speed and bytes so far, as the bar shows them."""
        text = f"{self._rows:,} rows {self.rate():.2f} M/s"
        n_bytes = self._bytes
        if self._total_rows is not None:
            done = min(self._rows, self._total_rows)
            n_bytes = (self._total_bytes or 0) * done // max(self._total_rows, 1)
        return f"{text} {format_bytes(n_bytes)}" if n_bytes else text


@contextmanager
def rows_bar(
    title: str, total: int | None, enabled: bool, total_bytes: int | None = None
) -> Iterator[OnRows]:
    """A progress bar, as a function to be called with the rows (and bytes) that were processed.

    `total` and `total_bytes` are the rows and bytes of all the data, None if unknown.
    """
    if not enabled:
        yield ignore
        return
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(20),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(True),
    )
    console = Console(stderr=True)
    progress = _Progress(total, total_bytes)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=progress.total, done="")

        def advance(rows: int, n_bytes: int = 0) -> None:
            steps = progress.add(rows, n_bytes)
            bar.update(task, advance=steps, done=progress.text(decimal))

        yield advance
