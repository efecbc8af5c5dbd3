"""An S3 server for all tests of this folder, reached through a proxy that injects faults."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import SECRET, Faults, WebFiles, proxy_of, running, s3_server, web_server

pytest.importorskip("moto")
pytest.importorskip("aiohttp")


class Bucket:
    """A bucket of the S3 server, seen by a client of its own (boto3)."""

    def __init__(self, client: object, name: str, faults: Faults) -> None:
        self.client = client
        self.name = name
        self.faults = faults

    @property
    def url(self) -> str:
        return f"s3://{self.name}"

    def put(self, key: str, body: bytes) -> str:
        self.client.put_object(Bucket=self.name, Key=key, Body=body)  # type: ignore[attr-defined]
        return f"{self.url}/{key}"

    def get(self, key: str) -> bytes:
        answer = self.client.get_object(Bucket=self.name, Key=key)  # type: ignore[attr-defined]
        body: bytes = answer["Body"].read()
        return body

    def names(self) -> list[str]:
        listed = self.client.list_objects_v2(Bucket=self.name)  # type: ignore[attr-defined]
        return sorted(item["Key"] for item in listed.get("Contents", []))

    def upload(self, path: Path, key: str | None = None) -> str:
        """Upload a file, or all files of a folder."""
        key = key or path.name
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                if file.is_file():
                    self.put(f"{key}/{file.relative_to(path).as_posix()}", file.read_bytes())
            return f"{self.url}/{key}"
        return self.put(key, path.read_bytes())


@pytest.fixture(scope="session")
def s3_ports() -> Iterator[tuple[int, Faults, str]]:
    """The S3 server's port, the faults of the proxy, and the proxy's address."""
    with s3_server() as port, running(proxy_of(port)) as proxy:
        yield port, proxy.faults, proxy.url


@pytest.fixture
def s3(
    s3_ports: tuple[int, Faults, str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> Bucket:
    """An empty bucket; the library reaches it through the proxy."""
    import boto3

    port, faults, url = s3_ports
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    name = f"bucket-{os.getpid()}-{abs(hash(request.node.nodeid)) % 10**9}"
    client.create_bucket(Bucket=name)
    faults.clear()
    return Bucket(client, name, faults)


class Web:
    """A web server: its files, its address, its faults."""

    def __init__(self, files: WebFiles, url: str, faults: Faults) -> None:
        self.served = files
        self.url = url
        self.faults = faults

    def put(self, key: str, body: bytes) -> str:
        self.served.files[key] = body
        return f"{self.url}/{key}"

    def upload(self, path: Path, key: str | None = None) -> str:
        return self.put(key or path.name, path.read_bytes())


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A web server without files."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    files = WebFiles()
    with running(web_server(files)) as server:
        yield Web(files, server.url, server.faults)
