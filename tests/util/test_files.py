"""Atomic writes: the file appears complete when the block ends, or not at all."""

import os
import stat
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


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_the_umask_is_respected(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "result", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "result").stat().st_mode) == 0o640
