"""Listening: one socket for all addresses of this machine."""

from __future__ import annotations

import errno
import socket


def listen_everywhere(port: int) -> socket.socket:
    """One socket for IPv6 and IPv4; for IPv4 alone where the machine has no other.

    Raises:
        OSError: the port is in use.
    """
    try:
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise
        return socket.create_server(("", port))
