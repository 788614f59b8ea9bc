"""A name server that knows no name.

Pods find each other by their hosts files; any other name does not exist in a network without a way out. Without an
answer a resolver reports a temporary failure, and programs try again and again.
"""

from __future__ import annotations

import socket

_HEADER = 12
_NAME_ERROR = b"\x81\x83"
"""Flags: response, recursion desired and available, no such name (RFC 1035, 4.1.1)."""
_LONGEST_QUERY = 4096


def listen() -> socket.socket:
    """The socket on which resolvers ask; needs the right to bind port 53.

    Raises:
        OSError: the port cannot be bound.
    """
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    return server


def answer(server: socket.socket) -> None:
    """Answer one query that has arrived."""
    query, client = server.recvfrom(_LONGEST_QUERY)
    response = no_such_name(query)
    if response:
        server.sendto(response, client)


def no_such_name(query: bytes) -> bytes:
    """The answer to a query; empty if it is none."""
    end = _HEADER
    while end < len(query) and query[end]:
        end += query[end] + 1
    # The root label, type and class follow the name.
    end += 5
    if end > len(query):
        return b""
    one_question = b"\x00\x01" + bytes(6)
    return query[:2] + _NAME_ERROR + one_question + query[_HEADER:end]
