"""A progress bar on standard error: rows, rows per second, bytes, time left. Nothing when standard
error is not a terminal.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnRows = Callable[..., None]  # (rows, bytes read for them where that is known)


def ignore(rows: int, n_bytes: int = 0) -> None:
    """Report nothing."""


@contextmanager
def rows_bar(
    title: str, total: int | None, enabled: bool, total_bytes: int | None = None
) -> Iterator[OnRows]:
    """A bar that advances by the rows it is called with; by their bytes, where the number of all
    rows is not known but that of bytes is.
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
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=total if total is not None else total_bytes, done="")
        rows, read, began = 0, 0, time.monotonic()

        def advance(more: int, n_bytes: int = 0) -> None:
            nonlocal rows, read
            rows, read = rows + more, read + n_bytes
            seen = read if total is None else (total_bytes or 0) * min(rows, total) // max(total, 1)
            done = f"{rows:,} rows {rows / max(time.monotonic() - began, 1e-3) / 1e6:.2f} M/s" + (
                f" {decimal(seen)}" if seen else ""
            )
            bar.update(
                task,
                advance=more if total is not None or total_bytes is None else n_bytes,
                done=done,
            )

        yield advance
