"""A pass over objects that stops anywhere continues with the same bytes, unless they changed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command import fail, run
from files_of_every_kind import KINDS, rows, table

import ckm
from ckm._core.storage import serialise
from ckm._sketching.checkpoint import from_bytes
from ckm.errors import CheckpointError, InputFileError, ParameterError

pytestmark = pytest.mark.xdist_group("remote")

OPTIONS: dict[str, Any] = {"sketch_size": 20, "random_state": 3, "n_jobs": 1}
ENDLESS = 10**6


def upload_parts(store: Any, folder: Path, kind: str, count: int = 3, size: int = 300) -> list[str]:
    """Some objects with `size` rows each."""
    X = rows(count * size)
    addresses = []
    for i in range(count):
        inside = folder / f"part-{i}"
        inside.mkdir(exist_ok=True)
        name = KINDS[kind](X[i * size : i * size + size], inside)
        file, mark, inner = name.partition("::")
        addresses.append(store.upload(inside / file, f"part-{i}/{file}") + mark + inner)
    return addresses


def stop_in_the_last(store: Any, addresses: list[str], **options: Any) -> None:
    """A pass that fails when it reads the last object, and so leaves a checkpoint."""
    like = ckm.sketch(rows(100), **OPTIONS)
    fault = None

    def break_later(method: str, path: str) -> None:
        # Once the pass is at the fourth object, the last becomes unreadable.
        nonlocal fault
        if "part-3" in path and len(store.faults.requests("GET", "part-3")) > 1 and fault is None:
            fault = store.faults.add("reset", pattern="part-5", times=ENDLESS)

    store.faults.clear()
    store.faults.before = break_later
    with pytest.raises(InputFileError):
        ckm.sketch(addresses, like=like, checkpoint_interval=0.0, **options)
    store.faults.clear()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "npy", pytest.param("parquet", marks=pytest.mark.sampled)])
def test_a_broken_pass_continues(kind: str, s3: Any, tmp_path: Path) -> None:
    addresses = upload_parts(s3, tmp_path, kind, count=6, size=10_000)
    like = ckm.sketch(rows(100), **OPTIONS)
    whole = serialise(ckm.sketch(addresses, like=like))
    checkpoint = f"{s3.url}/pass.part"
    stop_in_the_last(s3, addresses, checkpoint=checkpoint)
    kept = from_bytes(s3.get("pass.part"))
    assert 0 < kept.rows < 60_000
    s3.faults.seen.clear()
    found = ckm.sketch(addresses, like=like, checkpoint=checkpoint, resume=True)
    assert serialise(found) == whole


def _is_metadata(key: str) -> bool:
    """Whether an object holds what Zarr knows of an array, and no rows."""
    return key.endswith(".json") or "/.z" in key


@pytest.mark.parametrize("kind", ["parquet", "npy", "zarr"])
def test_a_changed_object_is_refused(kind: str, s3: Any, tmp_path: Path) -> None:
    addresses = upload_parts(s3, tmp_path, kind)
    like = ckm.sketch(rows(100), **OPTIONS)
    checkpoint = str(tmp_path / "pass.part")
    ckm.sketch(addresses, like=like, checkpoint=checkpoint)
    ckm.sketch(addresses, like=like, checkpoint=checkpoint, resume=True)
    # As many bytes, and the same time for all that S3 tells of it (seconds).
    key = next(key for key in s3.names() if key.startswith("part-0") and not _is_metadata(key))
    content = bytearray(s3.get(key))
    content[len(content) // 2] ^= 1
    if kind == "zarr":
        content += b"\0"  # whose listing tells sizes and times only
    s3.put(key, bytes(content))
    with pytest.raises(CheckpointError, match="has changed since the checkpoint"):
        ckm.sketch(addresses, like=like, checkpoint=checkpoint, resume=True)


def test_the_same_object_written_again_is_the_same(s3: Any, tmp_path: Path) -> None:
    addresses = upload_parts(s3, tmp_path, "parquet")
    like = ckm.sketch(rows(100), **OPTIONS)
    checkpoint = str(tmp_path / "pass.part")
    before = ckm.sketch(addresses, like=like, checkpoint=checkpoint)
    upload_parts(s3, tmp_path, "parquet")
    assert ckm.sketch(addresses, like=like, checkpoint=checkpoint, resume=True) == before


def test_a_changed_file_of_a_web_server_is_refused(web: Any, tmp_path: Path) -> None:
    addresses = upload_parts(web, tmp_path, "npy")
    like = ckm.sketch(rows(100), **OPTIONS)
    checkpoint = str(tmp_path / "pass.part")
    ckm.sketch(addresses, like=like, checkpoint=checkpoint)
    content = bytearray(web.served.files["part-0/rows.npy"])
    content[-1] ^= 1
    web.put("part-0/rows.npy", bytes(content))
    with pytest.raises(CheckpointError, match="has changed since the checkpoint"):
        ckm.sketch(addresses, like=like, checkpoint=checkpoint, resume=True)


def test_a_server_that_tells_no_changes_gets_no_checkpoint(web: Any, tmp_path: Path) -> None:
    web.served.has_tags = False
    addresses = upload_parts(web, tmp_path, "npy")
    with pytest.raises(ParameterError, match=r"neither an ETag nor a time of change"):
        ckm.sketch(addresses, checkpoint=str(tmp_path / "pass.part"), **OPTIONS)


@pytest.mark.parametrize("store", ["s3", "web"])
@pytest.mark.parametrize(
    "kind",
    [
        "parquet",
        pytest.param("csv", marks=pytest.mark.slow),
        "npy",
        pytest.param("stream", marks=pytest.mark.slow),
    ],
)
def test_an_object_that_changes_meanwhile(
    store: str, kind: str, s3: Any, web: Any, tmp_path: Path
) -> None:
    server = {"s3": s3, "web": web}[store]
    X = rows()
    name = KINDS[kind](X, tmp_path)
    address = server.upload(tmp_path / name)
    like = ckm.sketch(rows(100), **OPTIONS)
    KINDS[kind](X[:, ::-1], tmp_path)
    state = {"requests": 0}

    def replace(method: str, path: str) -> None:
        state["requests"] += name in path
        if state["requests"] == 5:
            server.faults.before = None
            server.upload(tmp_path / name)

    server.faults.before = replace
    with pytest.raises(InputFileError, match="has changed while it was read"):
        ckm.sketch([address] * 3, like=like)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_command_continues(number: int, s3: Any, tmp_path: Path) -> None:
    X = rows(60_000)
    for i in range(6):
        path = tmp_path / f"part-{i}.parquet"
        pq.write_table(table(X[i * 10_000 : i * 10_000 + 10_000]), path)
        s3.upload(path, f"data/{path.name}")
    code = (
        "import ckm, sys;"
        "ckm.sketch(sys.argv[1], sketch_size=20, random_state=3, checkpoint=sys.argv[2],"
        " resume=True, checkpoint_interval=0.0).save(sys.argv[3])"
    )
    arguments = [f"{s3.url}/data/*.parquet", f"{s3.url}/pass.part", f"{s3.url}/out.ckm"]
    command = [sys.executable, "-c", code, *arguments]
    s3.faults.add("slow", pattern="part-[45]", times=ENDLESS, seconds=1.0)
    process = subprocess.Popen(command, env=os.environ.copy())
    end = time.monotonic() + 120
    while "pass.part" not in s3.names() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(number)
    process.wait(60)
    s3.faults.clear()
    assert "out.ckm" not in s3.names()
    subprocess.run(command, check=True, timeout=240)
    whole = ckm.sketch(arguments[0], sketch_size=20, random_state=3)
    assert s3.get("out.ckm") == serialise(whole)


def test_the_checkpoint_of_a_command_is_removed(s3: Any, tmp_path: Path) -> None:
    addresses = upload_parts(s3, tmp_path, "npy")
    checkpoint = f"{s3.url}/pass.part"
    run("sketch", *addresses, "-m", 20, "--checkpoint", checkpoint, "-o", f"{s3.url}/s.ckm", "-q")
    assert "pass.part" not in s3.names()
    ckm.sketch(addresses, sketch_size=20, checkpoint=checkpoint)
    message = fail(
        "sketch", *addresses, "-m", 20, "--checkpoint", checkpoint, "-o", tmp_path / "s.ckm"
    )
    assert "There is a checkpoint" in message
    assert "--resume" in message
