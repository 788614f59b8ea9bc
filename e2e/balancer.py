"""One address in front of several servers of this machine, as a Service is in front of its pods."""

from __future__ import annotations

import itertools
import select
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress


class Balancer(socketserver.ThreadingTCPServer):
    """Leads each connection to one of the servers in turn, skipping those that are down or taken out."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.ports = list(ports)
        self.out: set[int] = set()
        """Ports that get no new connections, as endpoints that are no longer ready."""
        self.open: set[socket.socket] = set()
        self.is_cut = False
        self.loses: Callable[[], bool] = lambda: False
        """Asked for each answer, whether its connection closes instead; the server has done what it was asked for."""
        self._turn = itertools.count()

    @property
    def port(self) -> int:
        """Where clients connect."""
        return int(self.server_address[1])

    def connect_upstream(self) -> socket.socket:
        """Raises OSError, which closes the connection of the client, where all servers are down."""
        turn = next(self._turn)
        problem = OSError("no server is ready")
        for offset in range(len(self.ports)):
            port = self.ports[(turn + offset) % len(self.ports)]
            if port in self.out:
                continue
            try:
                return socket.create_connection(("127.0.0.1", port))
            except OSError as error:
                problem = error
        raise problem

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

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients see that their connection is closed."""


class _Connection(socketserver.BaseRequestHandler):
    server: Balancer
    request: socket.socket

    def handle(self) -> None:
        if self.server.is_cut:
            return
        with self.server.connect_upstream() as upstream:
            self.server.open.add(self.request)
            try:
                _pass_on(self.request, upstream, self.server.loses)
            except OSError:
                pass
            finally:
                self.server.open.discard(self.request)


def _pass_on(client: socket.socket, server: socket.socket, loses: Callable[[], bool]) -> None:
    """Until one of them closes, or an answer is lost; nothing of what the server says later reaches the client."""
    asked = False
    while True:
        readable, _, _ = select.select([client, server], [], [])
        for source in readable:
            data = source.recv(1 << 16)
            if not data or (asked and source is server and loses()):
                return
            asked = source is client
            (server if source is client else client).sendall(data)


@contextmanager
def balanced(ports: Sequence[int]) -> Iterator[Balancer]:
    """A balancer that runs until the context closes."""
    with Balancer(ports) as balancer:
        thread = threading.Thread(target=balancer.serve_forever, kwargs={"poll_interval": 0.1})
        thread.start()
        try:
            yield balancer
        finally:
            balancer.shutdown()
            thread.join()
