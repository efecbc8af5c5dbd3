"""Google Cloud Storage, on an emulator: read, found by pattern, and written."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from files_of_every_kind import rows, write_parquet
from servers import HOST

import ckm
from ckm._core.storage import serialise
from ckm._util.address import parse_address
from ckm._util.stores import upload_file
from ckm.errors import CheckpointError, MissingFileError, OutputError

pytest.importorskip("gcp_storage_emulator")
pytestmark = [pytest.mark.xdist_group("remote"), pytest.mark.slow]

BUCKET = "rows"
CODE = "from gcp_storage_emulator.__main__ import main; main()"


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty bucket."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = str(free.getsockname()[1])
    arguments = ["start", "--host", HOST, "--port", port, "--in-memory", "--default-bucket", BUCKET]
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{HOST}:{port}")
    monkeypatch.setenv("NO_PROXY", HOST)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and process.poll() is None:
            try:
                socket.create_connection((HOST, int(port)), 1.0).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"gs://{BUCKET}"
    finally:
        process.terminate()
        process.wait(30)


def test_google(google: str, tmp_path: Path) -> None:
    local = tmp_path / write_parquet(rows(), tmp_path)
    address = f"{google}/folder/rows.parquet"
    upload_file(local, parse_address(address))
    like = ckm.sketch(local, n_clusters=3, random_state=0)
    for data in (
        address,
        f"{google}/folder/*.parquet",
        f"{google}/folder",
        f"{google}/**/*.parquet",
    ):
        assert serialise(ckm.sketch(data, n_clusters=3, random_state=0)) == serialise(like)
    like.save(f"{google}/s.ckm")
    assert ckm.load(f"{google}/s.ckm") == like
    checkpoint = f"{google}/pass.part"
    ckm.sketch(address, like=like, checkpoint=checkpoint)
    upload_file(tmp_path / write_parquet(rows()[::-1], tmp_path), parse_address(address))
    with pytest.raises(CheckpointError, match="has changed since the checkpoint"):
        ckm.sketch(address, like=like, checkpoint=checkpoint, resume=True)
    with pytest.raises(MissingFileError, match=r"none\.parquet"):
        ckm.sketch(f"{google}/none.parquet", n_clusters=3)
    with pytest.raises(OutputError, match="there is no bucket 'no-bucket'"):
        like.save("gs://no-bucket/s.ckm")
