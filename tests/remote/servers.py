"""Servers that tests start: an S3 server (moto), a proxy before it that injects faults, and a web
server of files that can be asked for ranges of bytes.
"""

import base64
import hashlib
import http.client
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

HOST = "127.0.0.1"
# The secret key of the S3 server of the tests, which must not be shown.
SECRET = "wJalrXUtnFEMI-K7MDENG-SECRET"
# Headers that belong to one connection, not to what is sent.
_OF_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "date"}
_SLOW_DOWN = (
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)


class Request(NamedTuple):
    """A request as a server saw it."""

    method: str
    path: str
    range: str | None
    bytes_sent: int


@dataclass
class Fault:
    """What goes wrong, for the next `times` requests that match."""

    kind: str
    method: str = "GET"
    pattern: str = ""
    times: int = 1
    seconds: float = 0.0

    def matches(self, method: str, path: str) -> bool:
        return (
            self.times > 0 and method == self.method and re.search(self.pattern, path) is not None
        )


@dataclass
class Faults:
    """Faults to come, and what was requested."""

    coming: list[Fault] = field(default_factory=list)
    seen: list[Request] = field(default_factory=list)
    before: Callable[[str, str], None] | None = None
    lock: Any = field(default_factory=Lock)
    ending: Event = field(default_factory=Event)

    def add(self, kind: str, **options: Any) -> Fault:
        fault = Fault(kind, **options)
        self.coming.append(fault)
        return fault

    def next(self, method: str, path: str) -> Fault | None:
        with self.lock:
            for fault in self.coming:
                if fault.matches(method, path):
                    fault.times -= 1
                    return fault
        return None

    def count(self, method: str, pattern: str = "") -> int:
        return len(self.requests(method, pattern))

    def requests(self, method: str, pattern: str = "") -> list[Request]:
        found = [item for item in self.seen if item.method == method]
        return [item for item in found if re.search(pattern, item.path)]

    def clear(self) -> None:
        self.coming.clear()
        self.seen.clear()
        self.before = None


class Answer(NamedTuple):
    """What a server sends."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class _Handler(BaseHTTPRequestHandler):
    """Answers with `server.answer`, with the faults of `server.faults`."""

    protocol_version = "HTTP/1.1"
    server: "_Server"

    def _serve(self) -> None:
        body = self._body()
        faults = self.server.faults
        if faults.before is not None:
            faults.before(self.command, self.path)
        fault = faults.next(self.command, self.path)
        kind = None if fault is None else fault.kind
        sent = 0
        if kind == "reset":
            self._reset()
        elif kind == "hang":
            assert fault is not None
            faults.ending.wait(fault.seconds)
            self.close_connection = True
        elif kind == "503":
            sent = self._send(Answer(503, [("Content-Type", "application/xml")], _SLOW_DOWN))
        else:
            if kind == "slow":
                assert fault is not None
                time.sleep(fault.seconds)
            answer = self.server.answer(self.command, self.path, dict(self.headers.items()), body)
            sent = self._send(answer, cut=kind == "truncate")
        faults.seen.append(Request(self.command, self.path, self.headers.get("Range"), sent))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(pieces)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    def _send(self, answer: Answer, cut: bool = False) -> int:
        is_head = self.command == "HEAD"
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        if not is_head:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        body = b"" if is_head else answer.body
        if cut:
            body = body[: len(body) // 2]
            self.close_connection = True
        self.wfile.write(body)
        return len(body)

    def _reset(self) -> None:
        """End the connection as a server that crashes does."""
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle(self) -> None:
        # A client that went away is no news.
        try:
            super().handle()
        except (OSError, ValueError):
            self.close_connection = True

    def finish(self) -> None:
        with suppress(OSError, ValueError):
            super().finish()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answer: Callable[[str, str, dict[str, str], bytes], Answer]) -> None:
        super().__init__((HOST, 0), _Handler)
        self.faults = Faults()
        self.answer = answer

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}"


@contextmanager
def running(server: _Server) -> Iterator[_Server]:
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.faults.ending.set()
        server.shutdown()
        server.server_close()
        thread.join()


def proxy_of(port: int) -> _Server:
    """A proxy that passes requests on to a server of this machine."""

    def answer(method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        upstream = http.client.HTTPConnection(HOST, port, timeout=60)
        try:
            kept = {k: v for k, v in headers.items() if k.lower() not in _OF_CONNECTION}
            upstream.request(method, path, body, kept)
            response = upstream.getresponse()
            found = [(k, v) for k, v in response.getheaders() if k.lower() not in _OF_CONNECTION]
            length = response.getheader("Content-Length")
            if method == "HEAD" and length is not None:
                found.append(("Content-Length", length))
            return Answer(response.status, found, response.read())
        finally:
            upstream.close()

    return _Server(answer)


@dataclass
class WebFiles:
    """Files of a web server; `user` and `token` are required where they are set."""

    files: dict[str, bytes] = field(default_factory=dict)
    user: str | None = None
    token: str | None = None
    has_ranges: bool = True
    has_tags: bool = True

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        parts = urlsplit(path)
        if self.user is not None:
            expected = "Basic " + base64.b64encode(self.user.encode()).decode()
            if headers.get("Authorization") != expected:
                return Answer(401, [("WWW-Authenticate", "Basic")], b"")
        if self.token is not None and f"token={self.token}" not in parts.query:
            return Answer(403, [], b"no")
        name = parts.path.lstrip("/")
        if not name or name.endswith("/"):
            return self._page(name)
        content = self.files.get(name)
        if content is None:
            return Answer(404, [], b"none")
        tags = [("ETag", _tag(content))] if self.has_tags else []
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("Range", ""))
        if asked is None or not self.has_ranges:
            return Answer(200, tags, content)
        low = int(asked[1])
        high = min(int(asked[2]) + 1, len(content))
        if low >= len(content):
            return Answer(416, [("Content-Range", f"bytes */{len(content)}")], b"")
        span = ("Content-Range", f"bytes {low}-{high - 1}/{len(content)}")
        return Answer(206, [*tags, span], content[low:high])

    def _page(self, folder: str) -> Answer:
        """The page of a folder, as Apache and nginx make it."""
        inside = {
            rest.partition("/")[0] + ("/" if "/" in rest else "")
            for name in self.files
            if name.startswith(folder) and (rest := name.removeprefix(folder))
        }
        if not inside:
            return Answer(404, [], b"none")
        links = ['<a href="?C=N;O=D">Name</a>', '<a href="../">..</a>']
        links += [f'<a href="{name}">{name}</a>' for name in sorted(inside)]
        return Answer(200, [("Content-Type", "text/html")], "\n".join(links).encode())


@lru_cache
def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'


def web_server(files: WebFiles) -> _Server:
    return _Server(files.answer)


@contextmanager
def s3_server() -> Iterator[int]:
    """An S3 server in a process of its own; yields its port."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, "the S3 server did not start"
        try:
            socket.create_connection((HOST, port), 1.0).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError("the S3 server did not answer")
