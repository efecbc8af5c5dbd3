"""Addresses: taken apart, and shown without credentials."""

import os
import pickle
from pathlib import Path

import pytest

from ckm._util.address import Address, as_path, hide_secrets, is_address, parse_address


@pytest.mark.parametrize(
    ("text", "scheme", "host", "key", "inner"),
    [
        ("s3://bucket/a/b.csv", "s3", "bucket", "a/b.csv", None),
        ("S3://Bucket/A.csv", "s3", "Bucket", "A.csv", None),
        ("s3://bucket", "s3", "bucket", "", None),
        ("s3://bucket/part-?.csv", "s3", "bucket", "part-?.csv", None),
        ("s3://bucket/a#1.csv", "s3", "bucket", "a#1.csv", None),
        ("s3://b/a.h5::x/y", "s3", "b", "a.h5", "x/y"),
        ("HTTPS://Host:8000/A.csv", "https", "host:8000", "A.csv", None),
        ("https://[::1]:8000/a.h5::x", "https", "[::1]:8000", "a.h5", "x"),
        ("https://host/a.h5?t=1::x", "https", "host", "a.h5", "x"),
        (
            "abfss://box@me.dfs.core.windows.net/a",
            "abfss",
            "box@me.dfs.core.windows.net",
            "a",
            None,
        ),
        ("memory://folder/a.csv", "memory", "folder", "a.csv", None),
    ],
)
def test_parts(text: str, scheme: str, host: str, key: str, inner: str | None) -> None:
    found = parse_address(text)
    assert (found.scheme, found.host, found.key, found.inner) == (scheme, host, key, inner)
    assert parse_address(found.complete) == found
    assert pickle.loads(pickle.dumps(found)) == found


def test_endings() -> None:
    address = parse_address("https://host/a.b/rows.csv.gz?x=.parquet")
    assert (address.name, address.suffix, address.suffixes) == (
        "rows.csv.gz",
        ".gz",
        [".csv", ".gz"],
    )


@pytest.mark.parametrize(
    "text",
    [
        "https://ann:hunter2@host/a.csv",
        "https://host/a.csv?X-Amz-Signature=hunter2&X-Amz-Expires=60",
        "s3://KEY:hunter2@bucket/a.csv",
        "https://hunter2@host/a.csv?token=hunter2#hunter2",
    ],
)
def test_secrets_are_not_shown(text: str) -> None:
    address = parse_address(text)
    for shown in (str(address), repr(address), f"{address}", address.hide_secrets(f"bad: {text}")):
        assert "hunter2" not in shown
        assert "a.csv" in shown
    assert "hunter2" not in hide_secrets(f"Cannot get '{text}', sorry")
    assert "hunter2" in os.fspath(address)


def test_secrets_of_the_environment_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    assert hide_secrets("signed with hunter2 today") == "signed with ... today"


@pytest.mark.parametrize("text", ["rows.csv", "C:/rows.csv", "a/b://c", "./s3://b", "c://rows"])
def test_what_is_no_address(text: str) -> None:
    assert not is_address(text)
    assert as_path(text) == Path(text)


def test_one_object_has_one_identity() -> None:
    same = ("s3://b/k.csv", "S3://b/k.csv", "s3://KEY:SECRET@b/k.csv", "s3://b/k.csv?region=x")
    assert len({parse_address(text).identity for text in same}) == 1
    other = ("https://h/a?id=1", "https://h/a?id=2", "https://h/b", "http://h/a")
    assert len({parse_address(text).identity for text in other}) == len(other)
    assert isinstance(as_path(parse_address("s3://b/k")), Address)
