"""Credentials reach the server, and appear nowhere else: in no message, log, file or output."""

import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import run
from files_of_every_kind import KINDS, rows, write_csv, write_parquet
from servers import SECRET

import ckm
from ckm._core.storage import serialise
from ckm.errors import CkmError

pytestmark = pytest.mark.xdist_group("remote")

PASSWORD = "hunter2-PASSWORD"
TOKEN = "hunter2-TOKEN/%2B=="
OPTIONS: dict[str, Any] = {"n_clusters": 3, "random_state": 0}


def everything_about(action: Callable[[], Any], caplog: pytest.LogCaptureFixture) -> str:
    """The traceback of an action that fails, and all that the library logs meanwhile."""
    with caplog.at_level(logging.DEBUG, "ckm"), pytest.raises(CkmError) as caught:
        action()
    error = caught.value
    shown = "".join(traceback.format_exception(error))
    logged = "".join(record.getMessage() for record in caplog.records if "ckm" in record.name)
    return f"{shown}\n{error!r}\n{logged}"


def secret_address(web: Any, key: str) -> str:
    """The address of a file that needs a password and a signature."""
    web.served.user = f"ann:{PASSWORD}"
    web.served.token = TOKEN
    host = web.url.removeprefix("http://")
    return f"http://ann:{PASSWORD}@{host}/{key}?token={TOKEN}&X-Amz-Signature=hunter2"


@pytest.mark.parametrize("kind", ["parquet", "hdf5"])
def test_a_signed_address_is_read(kind: str, web: Any, tmp_path: Path) -> None:
    name = KINDS[kind](rows(), tmp_path)
    file, mark, inner = name.partition("::")
    web.upload(tmp_path / file)
    found = ckm.sketch(secret_address(web, file) + mark + inner, **OPTIONS)
    assert found == ckm.sketch(str(tmp_path / name), **OPTIONS)


def test_files_hold_no_credentials(web: Any, tmp_path: Path) -> None:
    name = write_parquet(rows(), tmp_path)
    web.upload(tmp_path / name)
    address = secret_address(web, name)
    checkpoint = tmp_path / "pass.part"
    s = ckm.sketch(address, checkpoint=checkpoint, **OPTIONS)
    assert b"hunter2" not in checkpoint.read_bytes()
    assert b"hunter2" not in serialise(s)
    # Signatures expire: the same file may be read on with another one.
    other = address.replace("Signature=hunter2", "Signature=another")
    assert ckm.sketch(other, checkpoint=checkpoint, resume=True, **OPTIONS) == s


@pytest.mark.parametrize(
    "spoil",
    [
        lambda web: setattr(web.served, "token", "another"),
        lambda web: setattr(web.served, "user", "bob:another"),
        lambda web: web.served.files.clear(),
        lambda web: web.served.files.update({"rows.csv": b"a,b\n1,x,3\n\n"}),
        lambda web: web.served.files.update({"rows.csv": b""}),
        lambda web: setattr(web.served, "has_ranges", False),
        lambda web: web.faults.add("reset", times=1000),
        lambda web: web.faults.add("truncate", times=1000),
    ],
    ids=["token", "user", "missing", "damaged", "empty", "ranges", "reset", "truncated"],
)
def test_errors_of_a_signed_address(
    spoil: Callable[[Any], None],
    web: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ckm._util.stores.ranges._FIRST_WAIT", 0.01)
    web.upload(tmp_path / write_csv(rows(), tmp_path))
    address = secret_address(web, "rows.csv")
    spoil(web)
    shown = everything_about(lambda: ckm.sketch(address, **OPTIONS), caplog)
    assert "rows.csv" in shown
    for secret in ("hunter2", PASSWORD, TOKEN, "ann:"):
        assert secret not in shown


def test_no_server(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("ckm._util.stores.ranges._FIRST_WAIT", 0.01)
    address = f"http://ann:{PASSWORD}@127.0.0.1:1/rows.csv?token={PASSWORD}"
    shown = everything_about(lambda: ckm.sketch(address, **OPTIONS), caplog)
    assert "Cannot read http://127.0.0.1:1/rows.csv?..." in shown
    assert PASSWORD not in shown


def test_keys_in_an_s3_address(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    s3.upload(tmp_path / write_parquet(rows(), tmp_path))
    address = f"s3://AKIAOTHER:{PASSWORD}@{s3.name}/rows.parquet"
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert ckm.sketch(address, **OPTIONS) == ckm.sketch(str(tmp_path / "rows.parquet"), **OPTIONS)
    missing = address.replace("rows.parquet", "none.parquet")
    shown = everything_about(lambda: ckm.sketch(missing, **OPTIONS), caplog)
    assert PASSWORD not in shown
    assert "AKIAOTHER" not in shown


@pytest.mark.slow
@pytest.mark.sampled
def test_commands_show_no_credentials(web: Any, s3: Any, tmp_path: Path) -> None:
    web.upload(tmp_path / write_csv(rows(), tmp_path))
    address = secret_address(web, "rows.csv")
    output = f"s3://AKIAOTHER:{PASSWORD}@{s3.name}/s.ckm"
    said = [
        run("sketch", address, "-k", 3, "-o", output, "-v"),
        run("decode", output, "-k", 3, "-o", output.replace("s.ckm", "c.json")),
        run("sketch", address, address, "-k", 3, "-o", output, expect=1),
        run("sketch", address, "-k", 3, "-o", address.replace(".csv", ".ckm"), expect=1),
        run("inspect", output),
        run("inspect", output.replace("s.ckm", "none.ckm"), expect=1),
    ]
    for out, err in said:
        for secret in ("hunter2", PASSWORD, TOKEN, SECRET, "AKIAOTHER"):
            assert secret not in out + err
    for name in s3.names():
        assert b"hunter2" not in s3.get(name)
