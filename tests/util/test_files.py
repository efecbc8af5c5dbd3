"""Atomic writes: the file appears complete when the block ends, or not at all."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ckm._util.files import atomic_file, write_atomically
from ckm.errors import InputFileError, OutputError


def test_the_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "result"
    with atomic_file(path) as file:
        file.write(b"some bytes")
        assert not path.exists()
    assert path.read_bytes() == b"some bytes"
    assert os.listdir(tmp_path) == ["result"]


def test_the_file_can_be_read_and_rewritten_inside_the_block(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "result") as file:
        file.write(b"0123")
        file.seek(0)
        assert file.read(2) == b"01"
        file.seek(0)
        file.write(b"abcd")
    assert (tmp_path / "result").read_bytes() == b"abcd"


@pytest.mark.parametrize("error", [ValueError("wrong"), KeyboardInterrupt()])
def test_an_exception_leaves_the_old_file(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "result"
    path.write_bytes(b"old")

    def write_and_fail() -> None:
        with atomic_file(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(type(error)):
        write_and_fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["result"]


def test_errors_of_the_system_become_output_errors(tmp_path: Path) -> None:
    path = tmp_path / "result"
    with pytest.raises(OutputError, match=r"Cannot write .*result: .*choose"), atomic_file(path):
        raise OSError(28, os.strerror(28))
    with pytest.raises(InputFileError, match="this file"), atomic_file(path):
        raise InputFileError("Cannot read this file.")
    assert os.listdir(tmp_path) == []


# Links


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_the_target_of_a_link_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"
    (tmp_path / "lost").symlink_to(tmp_path / "none" / "target")
    with pytest.raises(OutputError, match=r"the folder .*none does not exist; make it first"):
        write_atomically(tmp_path / "lost", b"new")


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OutputError, match="symbolic link to itself; choose another"):
        write_atomically(tmp_path / "a", b"new")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_temporary_names_differ(tmp_path: Path) -> None:
    names = set()
    for _ in range(5):
        with atomic_file(tmp_path / "result"):
            names |= set(os.listdir(tmp_path)) - {"result"}
    assert len(names) == 5
    assert not any(str(os.getpid()) in name for name in names)


@pytest.mark.parametrize("plant", ["link", "file"])
def test_a_planted_temporary_file_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: str
) -> None:
    """Even if somebody guesses the temporary name and puts a link there."""
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * (2 * size))
    with atomic_file(tmp_path / "result"):
        (name,) = os.listdir(tmp_path)
    os.unlink(tmp_path / "result")
    victim = tmp_path / "victim"
    victim.write_bytes(b"valuable")
    if plant == "link":
        (tmp_path / name).symlink_to(victim)
    else:
        os.link(victim, tmp_path / name)
    with pytest.raises(OutputError, match=r"Cannot write .*result"):
        write_atomically(tmp_path / "result", b"new")
    assert victim.read_bytes() == b"valuable"
    assert sorted(os.listdir(tmp_path)) == sorted(["victim", name])


# Permissions


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o666, 0o755], ids=oct)
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, umask: int, mode: int) -> None:
    path = tmp_path / "result"
    path.write_bytes(b"old")
    path.chmod(mode)
    (tmp_path / "link").symlink_to(path)
    for name in ("result", "link"):
        with atomic_file(tmp_path / name) as file:
            (temporary,) = set(os.listdir(tmp_path)) - {"result", "link"}
            assert mode_of(tmp_path / temporary) == mode, "at no moment can more people read it"
            file.write(b"new")
        assert mode_of(path) == mode


def test_a_new_file_has_the_permissions_of_the_umask(tmp_path: Path, umask: int) -> None:
    write_atomically(tmp_path / "result", b"")
    assert mode_of(tmp_path / "result") == 0o666 & ~umask


def test_ctrl_c_right_after_the_file_is_complete_stays_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os_replace = os.replace

    def interrupted(*names: str | Path) -> None:
        os_replace(*names)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "s.ckm", b"new")
    assert (tmp_path / "s.ckm").read_bytes() == b"new"
    assert len(list(tmp_path.iterdir())) == 1
