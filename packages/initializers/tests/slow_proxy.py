"""A proxy in front of a server, which can stop in the middle of what the server sends."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Self, cast
from urllib.parse import urlsplit


class SlowProxy(ThreadingTCPServer):
    """Passes connections on to a server, from threads; a context manager."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, url: str) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.upstream = urlsplit(url).hostname, urlsplit(url).port
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.sent = 0
        """Bytes that the server has sent."""
        self.limit: int | None = None
        """After so many of them the connection that is busy stays open, and nothing more arrives."""
        self.stalled = threading.Event()
        self._released = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def release(self) -> None:
        """Pass on the rest, if somebody still listens."""
        self._released.set()

    def pass_on(self, data: bytes, client: socket.socket) -> None:
        """Give the client what the server has sent, now or when that is released."""
        self.sent += len(data)
        if self.limit is not None and self.sent > self.limit:
            self.stalled.set()
            self._released.wait()
        client.sendall(data)


class _Connection(BaseRequestHandler):
    request: socket.socket

    def handle(self) -> None:
        proxy = cast("SlowProxy", self.server)
        with socket.create_connection(proxy.upstream) as server, suppress(OSError):
            while True:
                for source in select.select([self.request, server], [], [])[0]:
                    data = source.recv(1 << 16)
                    if not data:
                        return
                    if source is server:
                        proxy.pass_on(data, self.request)
                    else:
                        server.sendall(data)
