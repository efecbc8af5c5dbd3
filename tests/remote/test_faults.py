"""Servers that are slow, that break connections, that are overloaded, that send half of an answer:
the right sketch, or one clear error, within bounded time.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from files_of_every_kind import KINDS, rows, write_csv, write_npy, write_parquet

import ckm
from ckm._core.storage import serialise
from ckm._sources import open_source
from ckm._util.stores import ATTEMPTS, arrow, ranges
from ckm._util.stores import web as web_store
from ckm.errors import InputFileError

pytestmark = [pytest.mark.xdist_group("remote"), pytest.mark.slow]

OPTIONS: dict[str, Any] = {"n_clusters": 3, "random_state": 0}
ENDLESS = 10**6
# Seconds after which a test with an impatient client must be over; it takes a few.
LIMIT = 60.0


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A client that waits a second for an answer."""
    for module in (arrow, web_store):
        monkeypatch.setattr(module, "READ_SECONDS", 1.0)
        monkeypatch.setattr(module, "CONNECT_SECONDS", 1.0)
        module._store.cache_clear()
    monkeypatch.setattr(ranges, "_FIRST_WAIT", 0.02)
    yield
    for module in (arrow, web_store):
        module._store.cache_clear()


def store_named(name: str, s3: Any, web: Any) -> Any:
    return {"s3": s3, "web": web}[name]


@pytest.mark.parametrize("store", ["s3", "web"])
@pytest.mark.parametrize("kind", ["slow", "503", "reset", "truncate", "hang"])
@pytest.mark.parametrize("write", [write_parquet, write_csv, write_npy])
def test_faults_that_pass(
    store: str, kind: str, write: Any, s3: Any, web: Any, impatient: None, tmp_path: Path
) -> None:
    server = store_named(store, s3, web)
    name = write(rows(), tmp_path)
    address = server.upload(tmp_path / name)
    expected = serialise(ckm.sketch(str(tmp_path / name), **OPTIONS))
    fault = server.faults.add(kind, pattern=name, times=3, seconds=0.2 if kind == "slow" else 20.0)
    began = time.monotonic()
    assert serialise(ckm.sketch(address, **OPTIONS)) == expected
    assert time.monotonic() - began < LIMIT
    assert fault.times == 0


@pytest.mark.parametrize("store", ["s3", "web"])
@pytest.mark.parametrize("kind", ["503", "reset", "truncate", "hang"])
@pytest.mark.parametrize("write", [write_parquet, write_csv, write_npy])
def test_faults_that_stay(
    store: str, kind: str, write: Any, s3: Any, web: Any, impatient: None, tmp_path: Path
) -> None:
    server = store_named(store, s3, web)
    name = write(rows(), tmp_path)
    address = server.upload(tmp_path / name)
    server.faults.add(kind, pattern=name, times=ENDLESS, seconds=20.0)
    began = time.monotonic()
    with pytest.raises(InputFileError, match=rf"Cannot read {address}: .*; check the") as caught:
        ckm.sketch(address, **OPTIONS)
    assert time.monotonic() - began < LIMIT
    assert "\n" not in str(caught.value)
    assert f"tried {ATTEMPTS} times" in str(caught.value)
    assert server.faults.count("GET", name) <= 2 * ATTEMPTS


@pytest.mark.sampled
@pytest.mark.parametrize("store", ["s3", "web"])
@pytest.mark.parametrize("kind", ["503", "truncate"])
def test_a_fault_that_passes(
    store: str, kind: str, s3: Any, web: Any, impatient: None, tmp_path: Path
) -> None:
    test_faults_that_pass(store, kind, write_parquet, s3, web, impatient, tmp_path)


@pytest.mark.parametrize("store", ["s3", "web"])
@pytest.mark.parametrize("kind", ["arrow", "stream", "gzip", "hdf5", "zarr"])
def test_every_kind_is_cut_short_with_an_error(
    store: str, kind: str, s3: Any, web: Any, impatient: None, tmp_path: Path
) -> None:
    if (store, kind) == ("web", "zarr"):
        pytest.skip("Zarr is read from stores only")
    server = store_named(store, s3, web)
    name = KINDS[kind](rows(30_000), tmp_path)
    file, mark, inner = name.partition("::")
    address = server.upload(tmp_path / file) + mark + inner
    source = open_source(address)
    server.faults.add("truncate", pattern=file, times=ENDLESS)
    for action in (lambda: list(source.chunks()), lambda: open_source(address)):
        with pytest.raises(InputFileError, match=rf"Cannot read .*{file}.*tried {ATTEMPTS} times"):
            action()
