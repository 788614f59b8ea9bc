"""Listening: sockets for an address, or for all addresses of this machine."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket


async def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets for all addresses of a host, or of this machine if it is "".

    Raises:
        OSError: the port is in use, or the host is unknown or not ours.
    """
    if not host:
        return [listen_everywhere(port)]
    listeners: list[socket.socket] = []
    try:
        for family, address in await _addresses(host, port):
            listeners.append(socket.create_server(address, family=family))
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    return listeners


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


async def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return list(dict.fromkeys((family, (str(address[0]), port)) for family, _, _, _, address in found))
    return [(socket.AF_INET if version == 4 else socket.AF_INET6, (host, port))]
