"""`ordered_map`: results in order, and no thread at work once it has ended."""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from ckm._util.parallel import ordered_map


def test_results_come_in_order_without_waiting_for_idle_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited = list[bool]()
    shutdown = ThreadPoolExecutor.shutdown

    def recording(self: ThreadPoolExecutor, wait: bool = True, **how: bool) -> None:
        waited.append(wait)
        shutdown(self, wait, **how)

    def work(item: int) -> int:
        time.sleep(0.02 * (item == 0))
        return item**2

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", recording)
    assert list(ordered_map(work, range(20), 2)) == [(item, item**2) for item in range(20)]
    assert waited == [False]


def test_an_interrupt_waits_for_the_task_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    at_work = list[int]()
    started = threading.Event()

    def work(item: int) -> None:
        at_work.append(item)
        started.set()
        time.sleep(0.1)
        at_work.remove(item)

    def stop(future: Future[None]) -> None:
        started.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", stop)
    with pytest.raises(KeyboardInterrupt):
        list(ordered_map(work, [0], 2))
    assert not at_work


@pytest.mark.parametrize("ended_by", ["error", "caller"])
def test_no_thread_is_at_work_once_the_map_has_ended(ended_by: str) -> None:
    started = threading.Event()
    at_work = set[int]()

    def work(item: int) -> int:
        if item == 0:
            started.wait()
            if ended_by == "error":
                raise ValueError("the first")
            return item
        at_work.add(item)
        started.set()
        time.sleep(0.1)
        at_work.remove(item)
        return item

    results = ordered_map(work, range(4), 2)
    if ended_by == "error":
        with pytest.raises(ValueError, match="the first"):
            next(results)
    else:
        next(results)
        results.close()
    assert not at_work
