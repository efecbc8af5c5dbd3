"""A lock is held by one at a time, and no longer than its process lives."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ckm._util.locks import WriteLock, keep_locks, lock_for_command
from ckm.errors import OutputError

HOLD = """
import sys, time
from ckm._util.locks import WriteLock
lock = WriteLock(sys.argv[1])
print("locked", flush=True)
time.sleep(600)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.ckm"


def test_a_second_lock_is_refused_until_the_first_is_released(path: Path) -> None:
    with WriteLock(path), pytest.raises(OutputError, match=r"s\.ckm: this process is writing it"):
        WriteLock(path)
    with WriteLock(path):
        pass
    assert not list(path.parent.iterdir()), "no file is left"


def test_releasing_twice_leaves_the_lock_of_another_alone(path: Path) -> None:
    first = WriteLock(path)
    first.release()
    with WriteLock(path):
        first.release()
        with pytest.raises(OutputError):
            WriteLock(path)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_lock_ends_with_its_process(path: Path, number: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        message = rf"s\.ckm: another process \({process.pid}\) is writing it; wait until it ends"
        with pytest.raises(OutputError, match=message):
            WriteLock(path)
        process.send_signal(number)
    with WriteLock(path):
        pass
    assert not list(path.parent.iterdir())


def test_all_names_of_a_file_have_one_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    link = path.with_name("link.ckm")
    path.touch()
    link.symlink_to(path)
    with WriteLock(path):
        for name in ("s.ckm", "./s.ckm", link, f"../{path.parent.name}/s.ckm"):
            with pytest.raises(OutputError, match="is writing it"):
                WriteLock(name)


def test_a_planted_link_is_not_followed(path: Path) -> None:
    victim = path.with_name("victim")
    victim.write_text("precious")
    path.with_name("s.ckm.lock").symlink_to(victim)
    with pytest.raises(OutputError, match=r"Cannot lock .*s\.ckm"):
        WriteLock(path)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("content", [b"precious", b"7" * 33, b"12 34", b"-5"])
def test_a_file_that_is_not_a_lock_is_kept(path: Path, content: bytes) -> None:
    other = path.with_name("s.ckm.lock")
    other.write_bytes(content)
    with pytest.raises(OutputError, match=r"s\.ckm\.lock is another file, not a lock; rename it"):
        WriteLock(path)
    assert other.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"12345"])
def test_the_lock_that_a_killed_process_left_is_taken_over(path: Path, content: bytes) -> None:
    path.with_name("s.ckm.lock").write_bytes(content)
    with WriteLock(path):
        pass
    assert not list(path.parent.iterdir())


def test_among_many_threads_one_holds_the_lock(path: Path) -> None:
    holders = []
    overlaps = []

    def work() -> None:
        for _ in range(300):
            try:
                lock = WriteLock(path)
            except OutputError:
                continue
            holders.append(1)
            if len(holders) > 1:
                overlaps.append(1)
            holders.pop()
            lock.release()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not overlaps


def test_a_command_keeps_its_locks_to_its_end(path: Path) -> None:
    with keep_locks():
        lock_for_command(path)
        with pytest.raises(OutputError):
            WriteLock(path)
    lock_for_command(path)
    with WriteLock(path):
        pass
