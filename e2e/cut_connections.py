"""A way to an API server that can be cut: a TCP proxy."""

from __future__ import annotations

import select
import socket
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class CuttableProxy(socketserver.ThreadingTCPServer):
    """Passes connections on until they are cut."""

    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.upstream = host, port
        self.open: set[socket.socket] = set()
        self.is_cut = False
        self.passed = 0
        """How many connections have been passed on."""

    def connect_upstream(self) -> socket.socket:
        """A connection to where those of the clients lead."""
        return socket.create_connection(self.upstream)

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Break all connections and let nobody connect again meanwhile."""
        self.is_cut = True
        for connection in list(self.open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        try:
            yield
        finally:
            self.is_cut = False


class _Connection(socketserver.BaseRequestHandler):
    server: CuttableProxy
    request: socket.socket

    def handle(self) -> None:
        if self.server.is_cut:
            return
        with self.server.connect_upstream() as upstream:
            self.server.open.add(self.request)
            self.server.passed += 1
            try:
                _pass_on(self.request, upstream)
            except OSError:
                pass
            finally:
                self.server.open.discard(self.request)


def _pass_on(client: socket.socket, server: socket.socket) -> None:
    """Until one of them closes; nothing of what the server says later reaches the client."""
    while True:
        readable, _, _ = select.select([client, server], [], [])
        for source in readable:
            data = source.recv(1 << 16)
            if not data:
                return
            (server if source is client else client).sendall(data)
