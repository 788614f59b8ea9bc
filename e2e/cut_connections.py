"""A way to an API server that can be cut: a TCP proxy, and a kubeconfig that leads through it."""

from __future__ import annotations

import select
import socket
import socketserver
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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


@contextmanager
def cuttable(kubeconfig: Path, copy: Path) -> Iterator[CuttableProxy]:
    """Write a copy of a kubeconfig whose current cluster is reached through the proxy."""
    config = yaml.safe_load(kubeconfig.read_text())
    context = next(each["context"] for each in config["contexts"] if each["name"] == config["current-context"])
    cluster = next(each["cluster"] for each in config["clusters"] if each["name"] == context["cluster"])
    server = urlsplit(cluster["server"])
    assert server.hostname is not None
    with CuttableProxy(server.hostname, server.port or 443) as proxy:
        cluster.setdefault("tls-server-name", server.hostname)
        cluster["server"] = f"https://127.0.0.1:{proxy.server_address[1]}{server.path}"
        copy.touch(mode=0o600)
        copy.write_text(yaml.safe_dump(config))
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.1})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
