"""The process that holds the namespaces which the containers of a pod share, or the network that all pods share.

In the network of a pod it is also a name server that knows no name: pods find each other by their hosts files, any
other name does not exist in a network without a way out, and without an answer programs would try again and again.
"""

from __future__ import annotations

import os
import selectors
import socket
import subprocess

from . import linux, reports
from .spec import IpBatch, SandboxSpec


def run(spec: SandboxSpec, control: int, answers: int) -> None:
    """Make the namespaces and keep them until `control` closes."""
    linux.set_process_name("pod-sandbox")
    try:
        _prepare(spec)
        server = _listen() if spec.serve_names else None
    except OSError as error:
        reports.send(answers, reports.StartFailed.because_of("sandbox", error))
        return
    except subprocess.CalledProcessError as error:
        reports.send(answers, reports.StartFailed("sandbox", f"ip: {error.stderr.strip()}"))
        return
    reports.send(answers, reports.SandboxReady())
    _hold(control, server)


def _hold(control: int, server: socket.socket | None) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        if server is not None:
            selector.register(server, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if server is not None and key.fileobj is server:
                    _answer(server)
                elif not os.read(control, 1024):
                    return


def _prepare(spec: SandboxSpec) -> None:
    linux.join(spec.join)
    joined = _open_network()
    linux.make(spec.unshare)
    if spec.hostname:
        socket.sethostname(spec.hostname)
    new = _open_network()
    for batch in spec.batches:
        linux.setns(f"/proc/self/fd/{new if batch.namespace == 'new' else joined}")
        _run_ip(spec.ip, batch)
    if spec.batches:
        linux.setns(f"/proc/self/fd/{new}")
    os.close(joined)
    os.close(new)
    if spec.listen is not None:
        _hand_over_listener(spec.listen, spec.hand_over)


def _hand_over_listener(address: tuple[str, int], channel: int) -> None:
    """A socket stays in the network in which it was made, whoever has it (network_namespaces(7))."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener, socket.socket(fileno=channel) as peer:
        listener.bind(tuple(address))
        listener.listen()
        socket.send_fds(peer, [b"\n"], [listener.fileno()])


def _open_network() -> int:
    return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _run_ip(ip: str, batch: IpBatch) -> None:
    commands = "".join(f"{command}\n" for command in batch.commands)
    subprocess.run([ip, "-batch", "-"], input=commands, text=True, capture_output=True, check=True)


_HEADER = 12
_NAME_ERROR = b"\x81\x83"
"""Flags: response, recursion desired and available, no such name (RFC 1035, 4.1.1)."""
_LONGEST_QUERY = 4096


def _listen() -> socket.socket:
    """The socket on which resolvers ask; needs the right to bind port 53.

    Raises:
        OSError: the port cannot be bound.
    """
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    return server


def _answer(server: socket.socket) -> None:
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
