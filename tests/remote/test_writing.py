"""What is written to a store appears at once, complete, or not at all."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import fail
from files_of_every_kind import rows, write_parquet

import ckm
from ckm._core.storage import serialise
from ckm._util.files import atomic_file
from ckm._util.stores import arrow
from ckm.errors import OutputError, SketchFileError

pytestmark = pytest.mark.xdist_group("remote")

ENDLESS = 10**6
# More than one part of an upload, and not a whole number of them.
LARGE = 25_000_001


@pytest.fixture
def sketch() -> ckm.Sketch:
    return ckm.sketch(rows(), n_clusters=3, random_state=0)


def test_a_sketch_comes_back(s3: Any, sketch: ckm.Sketch) -> None:
    sketch.save(f"{s3.url}/deep/s.ckm")
    assert s3.get("deep/s.ckm") == serialise(sketch)
    assert ckm.load(f"{s3.url}/deep/s.ckm") == sketch
    again = ckm.sketch(rows(), like=f"{s3.url}/deep/s.ckm")
    assert again == sketch
    assert s3.names() == ["deep/s.ckm"]


@pytest.mark.slow
def test_a_large_object_comes_back(s3: Any) -> None:
    content = np.random.default_rng(0).bytes(LARGE)
    with atomic_file(f"{s3.url}/large.bin") as file:
        file.write(content)
    assert s3.get("large.bin") == content
    assert s3.faults.count("PUT", "partNumber") == 3


def test_an_error_in_the_block_leaves_the_old_object(s3: Any) -> None:
    address = s3.put("old.bin", b"old")
    with pytest.raises(ZeroDivisionError):
        _write_and_fail(address)
    assert s3.get("old.bin") == b"old"
    assert s3.faults.count("PUT") == 0


def _write_and_fail(address: str) -> None:
    with atomic_file(address) as file:
        file.write(b"new")
        raise ZeroDivisionError


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("503", marks=pytest.mark.sampled), "reset"])
def test_a_failed_upload_leaves_the_old_object(kind: str, s3: Any, sketch: ckm.Sketch) -> None:
    address = s3.put("s.ckm", b"old")
    s3.faults.add(kind, method="PUT", times=ENDLESS)
    with pytest.raises(OutputError, match=rf"Cannot write {address}: .*; check the address"):
        sketch.save(address)
    s3.faults.clear()
    assert s3.get("s.ckm") == b"old"


def test_an_upload_is_tried_again(s3: Any, sketch: ckm.Sketch) -> None:
    s3.faults.add("503", method="PUT", times=2)
    sketch.save(f"{s3.url}/s.ckm")
    assert ckm.load(f"{s3.url}/s.ckm") == sketch


@pytest.mark.slow
@pytest.mark.parametrize("fails", ["partNumber=2", "partNumber=1", "POST"])
def test_an_upload_that_fails_in_the_middle(fails: str, s3: Any) -> None:
    address = s3.put("large.bin", b"old")
    method = "POST" if fails == "POST" else "PUT"
    pattern = "uploadId" if fails == "POST" else fails
    s3.faults.add("503", method=method, pattern=pattern, times=ENDLESS)
    with pytest.raises(OutputError, match="Cannot write"), atomic_file(address) as file:
        file.write(bytes(LARGE))
    # The server is well again, and what is left of the failed upload is released.
    s3.faults.clear()
    gc.collect()
    assert s3.get("large.bin") == b"old"


def test_labels_that_fail_leave_the_old_object(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    X = rows()
    X[-1, 0] = np.nan
    Path("c.csv").write_text("cluster,weight,[0],[1],[2]\n0,1.0,0,0,0\n")
    np.save("gaps.npy", X)
    address = s3.put("labels.npy", b"old")
    fail("predict", "gaps.npy", "-c", "c.csv", "-o", address)
    assert s3.get("labels.npy") == b"old"


def test_refused_before_any_work(s3: Any, web: Any, tmp_path: Path) -> None:
    data = s3.upload(tmp_path / write_parquet(rows(), tmp_path))
    s3.faults.clear()
    for output, reason in [
        (f"{web.url}/s.ckm", "web servers are only read"),
        ("s3://no-such-bucket/s.ckm", "there is no bucket 'no-such-bucket'"),
        (f"{s3.url}/folder.ckm/", "it is a folder; name a file in it"),
    ]:
        assert reason in fail("sketch", data, "-k", 3, "-o", output)
    assert s3.faults.count("GET", "rows.parquet") == 0
    assert "must end in .ckm" in fail("sketch", data, "-k", 3, "-o", f"{s3.url}/s.csv", status=2)


def test_a_damaged_sketch(s3: Any, sketch: ckm.Sketch) -> None:
    content = serialise(sketch)
    for damaged, reason in [
        (content[:-1], "is truncated"),
        (content + b"x", "longer than its header says"),
        (b"nothing", "is not a sketch"),
    ]:
        with pytest.raises(SketchFileError, match=rf"s3://.*/s.ckm {reason}|{reason}"):
            ckm.load(s3.put("s.ckm", damaged))


def test_an_interrupted_upload_is_complete_or_absent(
    s3: Any, sketch: ckm.Sketch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while bytes are sent: the object is not completed with those sent so far."""

    class Interrupted:
        def __init__(self, **options: Any) -> None:
            self._thread = real(**options)
            self.start = self._thread.start

        def join(self) -> None:
            self._thread.join()
            raise KeyboardInterrupt

    real = arrow.Thread
    monkeypatch.setattr(arrow, "Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        sketch.save(f"{s3.url}/s.ckm")
    assert s3.get("s.ckm") == serialise(sketch)
