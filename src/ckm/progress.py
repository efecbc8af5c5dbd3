"""A progress bar on standard error: rows, rows per second, time left. Nothing when standard error is not a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

OnRows = Callable[[int], None]


def ignore(rows: int) -> None:
    """Report nothing."""


@contextmanager
def rows_bar(title: str, total: int | None, enabled: bool) -> Iterator[OnRows]:
    """A bar that advances by the number of rows it is called with."""
    if not enabled:
        yield ignore
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Speed(ProgressColumn):
        """Rows done and rows per second."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{int(task.completed):,} rows" + (f" {speed / 1e6:.2f} M/s" if speed else ""))

    columns = (TextColumn("{task.description}"), BarColumn(20), Speed(), TimeRemainingColumn(elapsed_when_finished=True))
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda rows: bar.advance(task, rows)
