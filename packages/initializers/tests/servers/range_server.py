"""An HTTP server of files with ranges, which can fail on demand.

The standard library's server is enough: it runs in a thread of a test or demo, and needs no event loop there.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
from dataclasses import dataclass
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Self
from urllib.parse import unquote, urlsplit

_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
_CHUNK = 1 << 20
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request that was received."""

    method: str
    path: str
    range: tuple[int, int | None] | None
    """First byte, and the byte after the last one."""
    authorization: str | None


@dataclass(slots=True)
class AnswerFault:
    """How some answers differ from what was asked for."""

    status: int | None = None
    """Answer with this status and no file."""
    cut: int | None = None
    """Close the connection after so many bytes of the body."""
    stalls: bool = False
    """Send no body until the server is released."""
    flips: bool = False
    """Change the first byte of the body."""
    times: int = 1
    """For so many requests."""
    skips: int = 0
    """After so many requests."""
    matches: str = ""
    """Only for paths that contain this."""
    headers: tuple[tuple[str, str], ...] = ()
    shift: int = 0
    """Send a range that begins so many bytes later than the one that was asked for."""
    claims: int = 0
    """Say that the file has so many bytes."""
    version: str = ""
    """Say that the file has this ETag."""

    def applies(self, path: str) -> bool:
        """Whether it is the turn of this request, which counts as one."""
        if self.matches not in path or not self.times:
            return False
        if self.skips:
            self.skips -= 1
            return False
        self.times -= 1
        return True


class RangeServer:
    """Serves `files` by path from a thread, on a free port of loopback by default; a context manager."""

    def __init__(self, *, is_ranged: bool = True, tells_size: bool = True, port: int = 0, host: str = LOOPBACK) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: list[AnswerFault] = []
        self.requests: list[ReceivedRequest] = []
        self.tokens: set[str] = set()
        """Tokens that may read; all requests may where there are none."""
        self.is_ranged, self.tells_size = is_ranged, tells_size
        self.stalled = threading.Event()
        """A request stalls."""
        self._released = threading.Event()
        self._lock = threading.Lock()
        handler = type("Handler", (self.handler_class(),), {"owner": self})
        self._server = _Server((host, port), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The URL of the server, without a slash at the end."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def release(self) -> None:
        """Release stalled requests."""
        self._released.set()

    def wait_for_release(self) -> None:
        """Stall a request."""
        self.stalled.set()
        self._released.wait()

    def ranges(self, path: str) -> list[tuple[int, int | None] | None]:
        """What was read of a file, in the order of the requests."""
        return [request.range for request in self.requests if request.path == path and request.method == "GET"]

    def take_fault(self, request: ReceivedRequest) -> AnswerFault | None:
        """Note the request, and choose how it fails."""
        with self._lock:
            self.requests.append(request)
            return next((fault for fault in self.faults if fault.applies(request.path)), None)

    def handler_class(self) -> type[RangeHandler]:
        """The class that answers requests."""
        return RangeHandler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: tests kill their clients."""


class RangeHandler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    owner: ClassVar[RangeServer]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 name of the base class
        """Print nothing."""

    def do_GET(self) -> None:
        """Serve a file."""
        self.serve()

    def do_HEAD(self) -> None:
        """Serve the headers of a file."""
        self.serve()

    def serve(self) -> None:
        """Answer with the file of the path."""
        path, fault = self.begin()
        if fault is not None and fault.status is not None:
            self.answer(fault.status, headers=dict(fault.headers))
        elif path not in self.owner.files:
            self.answer(404)
        elif self.owner.tokens and self.token() not in self.owner.tokens:
            self.answer(401 if self.token() is None else 403)
        else:
            self.send_file(self.owner.files[path], fault)

    def begin(self) -> tuple[str, AnswerFault | None]:
        """The path of the request, which is noted, and how it fails."""
        found = _RANGE.fullmatch(self.headers.get("Range", ""))
        asked = (int(found[1]), int(found[2]) + 1 if found[2] else None) if found else None
        path = unquote(urlsplit(self.path).path)
        request = ReceivedRequest(self.command, path, asked, self.headers.get("Authorization"))
        return path, self.owner.take_fault(request)

    def token(self) -> str | None:
        """The bearer token of the request."""
        kind, _, token = self.headers.get("Authorization", "").partition(" ")
        return token if kind == "Bearer" else None

    def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Send a whole answer."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_file(
        self, content: bytes, fault: AnswerFault | None = None, headers: dict[str, str] | None = None
    ) -> None:
        """Send a file, or the range of it that was asked for."""
        fault = fault or AnswerFault()
        start, end = 0, len(content)
        found = _RANGE.fullmatch(self.headers.get("Range", "")) if self.owner.is_ranged else None
        if found and content:
            start, end = int(found[1]), min(int(found[2]) + 1 if found[2] else end, end)
            start += fault.shift
        self.send_response(206 if found and content else 200)
        for name, value in (headers or {"ETag": fault.version or _etag(content)}).items():
            self.send_header(name, value)
        if found and content:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{fault.claims or len(content)}")
        if self.owner.tells_size:
            self.send_header("Content-Length", str(end - start))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self._send_body(memoryview(content)[start:end], fault)

    def _send_body(self, body: memoryview, fault: AnswerFault) -> None:
        if fault.stalls:
            self.owner.wait_for_release()
        if fault.flips:
            body = memoryview(bytes([body[0] ^ 1]) + bytes(body[1:]))
        if fault.cut is not None:
            body = body[: fault.cut]
            self.close_connection = True
        with contextlib.suppress(ConnectionError):
            for start in range(0, len(body), _CHUNK):
                self.wfile.write(body[start : start + _CHUNK])
        if not self.owner.tells_size:
            self.close_connection = True


@lru_cache(maxsize=1024)
def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'
