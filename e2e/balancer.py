"""One address in front of several servers of this machine, as a Service is in front of its pods."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class Balancer(CuttableProxy):
    """Leads each connection to one of the servers in turn, skipping those that are down or taken out."""

    request_queue_size = 128

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__("127.0.0.1", ports[0])
        self.ports = list(ports)
        self.out: set[int] = set()
        """Ports that get no new connections, as endpoints that are no longer ready."""
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

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients see that their connection is closed."""


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
