"""Tasks spread over processes, and the files that these processes share."""

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from rich.progress import Progress
from threadpoolctl import threadpool_limits

import ckm
from benchmarks.harness import console

# Guards the files that processes share. Each worker process sets it when it starts.
_lock: AbstractContextManager[Any] = nullcontext()


class Outcome(NamedTuple):
    """The result of a task, and one sentence per failure."""

    found: Any
    failures: list[str]


def work_all(
    work: Callable[[Any], Outcome], tasks: Sequence[Any], jobs: int, stopped: str = "Stopped."
) -> list[Any]:
    """Run every task in `jobs` processes with one BLAS thread each, and return the results.

    Each failure message is printed once.
    """
    context = multiprocessing.get_context("spawn")
    found = []
    printed = set()
    with (
        ProcessPoolExecutor(jobs, context, _start_worker, (context.Lock(),)) as executor,
        Progress(console=console) as progress,
    ):
        bar = progress.add_task("Measuring", total=len(tasks))
        futures = [executor.submit(_in_one_thread, work, task) for task in tasks]
        try:
            for future in as_completed(futures):
                outcome = future.result()
                found.append(outcome.found)
                for sentence in outcome.failures:
                    if sentence not in printed:
                        console.print(sentence, markup=False)
                        printed.add(sentence)
                progress.advance(bar)
        except KeyboardInterrupt:
            executor.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise SystemExit(stopped) from None
    return found


def _start_worker(shared: Any) -> None:
    """Store the lock, and load compiled code, so that no measured time includes loading."""
    global _lock
    _lock = shared
    # The parent process handles the interrupt and terminates its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    X = ckm.datasets.gaussian_mixture(2000, 3, 2, random_state=0).rows
    sketch = ckm.sketch(X, n_clusters=3, random_state=0, n_jobs=1)
    for decoder in ("auto", "clompr"):
        ckm.decode(sketch, 3, decoder=decoder, random_state=0)


def _in_one_thread(work: Callable[[Any], Outcome], task: Any) -> Outcome:
    with threadpool_limits(1):
        return work(task)


def locked() -> AbstractContextManager[Any]:
    """Return the lock around files that other processes of this run use too."""
    return _lock


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a file to write beside `path`; it is renamed to `path` when the block ends well."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


class RunLog(NamedTuple):
    """A file with one JSON object per line, one per finished run."""

    path: Path

    def read(self) -> list[dict[str, Any]]:
        """Return every entry; a line cut short by a crash is skipped."""
        if not self.path.exists():
            return []
        found = []
        for line in self.path.read_text().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                found.append(entry)
        return found

    def append(self, entry: dict[str, Any]) -> None:
        """Add an entry, on a line of its own even after a crash left half a line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(), self.path.open("a+") as file:
            if file.seek(0, 2) and not self.path.read_bytes().endswith(b"\n"):
                file.write("\n")
            file.write(_line(entry))

    def rewrite(self, entries: Iterable[dict[str, Any]]) -> None:
        """Replace the file by these entries."""
        with replacing(self.path) as part:
            part.write_text("".join(map(_line, entries)))


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, separators=(",", ":"), default=float) + "\n"
