"""The protocol of a pod network, its addresses, and the way of pods to the API server."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Protocol
from urllib.parse import urlsplit

import anyio
import structlog
from anyio.abc import SocketListener, SocketStream

from trainer_devcluster.kubelet.errors import PodNetworkError
from trainer_devcluster.kubelet.options import PodNetworkMode
from trainer_devcluster.kubelet.shim.spec import SandboxSpec

log = structlog.get_logger(__name__)

_CONNECT_TIMEOUT = 10.0
"""Seconds; the API server is on the same machine, so this is only for one that hangs."""


@dataclass(frozen=True, slots=True)
class ApiAddress:
    """Where an API server listens."""

    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> ApiAddress:
        """The address in a URL such as `https://127.0.0.1:6443`."""
        parts = urlsplit(url)
        return cls(parts.hostname or "", parts.port or 443)


async def serve_pods(listener: socket.socket, server: ApiAddress) -> None:
    """Pass on the bytes of all connections until cancelled; TLS is between pod and API server.

    Args:
        listener: a listening socket in the network of the pods, which is closed at the end.
        server: where the kubelet reaches the API server.
    """

    async def handle(pod: SocketStream) -> None:
        async with pod:
            try:
                with anyio.fail_after(_CONNECT_TIMEOUT):
                    upstream = await anyio.connect_tcp(server.host, server.port)
                async with upstream, anyio.create_task_group() as tasks:
                    tasks.start_soon(_copy, pod, upstream)
                    tasks.start_soon(_copy, upstream, pod)
            except (OSError, anyio.BrokenResourceError) as error:
                log.debug("connection of a pod to the API server failed", error=str(error))

    async with await SocketListener.from_socket(listener) as connections:
        await connections.serve(handle)


async def _copy(source: SocketStream, target: SocketStream) -> None:
    """Pass on what one side says, its end included; the other side may go on."""
    try:
        async for chunk in source:
            await target.send(chunk)
        await target.send_eof()
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        # One side has gone away; so must the other.
        await source.aclose()
        await target.aclose()


HOST_IP = "127.0.0.1"
"""Address of the node."""


class PodAddressing(Protocol):
    """Addresses for pods, and what a sandbox needs to have one."""

    @property
    def mode(self) -> PodNetworkMode:
        """The mode."""

    @property
    def consequence(self) -> str:
        """The consequence of the mode for users, in one clause."""

    @property
    def isolated(self) -> bool:
        """Whether containers have mount and PID namespaces."""

    @property
    def run_as(self) -> tuple[int, int] | None:
        """User and group that containers return to, when the sandbox is in a user namespace."""

    @property
    def resolv_conf(self) -> str | None:
        """Content of /etc/resolv.conf in pods; None leaves that of the machine."""

    @property
    def hosts_preamble(self) -> str:
        """How /etc/hosts begins in pods."""

    @property
    def api_server(self) -> ApiAddress | None:
        """Where pods find the API server; None if it is where the kubelet finds it."""

    @property
    def api_listener(self) -> socket.socket | None:
        """Listens at `api_server`; whoever opens the network passes on what comes in."""

    def allocate(self) -> str:
        """An address that no other pod has.

        Raises:
            PodNetworkError: all are in use.
        """

    def release(self, address: str) -> None:
        """Give an address back."""

    def sandbox(self, hostname: str, address: str) -> SandboxSpec | None:
        """The namespaces of a pod; None if pods have none."""

    def join(self, sandbox_pid: int) -> Sequence[str]:
        """Namespace files that a container of the pod enters."""

    def rewrite(self, value: str, *, namespace: str, subdomain: str) -> str:
        """Replace the names of pods in a value of an environment variable where they cannot be resolved."""


class AddressPool:
    """Addresses of one network in turn, so that a released one is not taken again at once.

    The network, broadcast and first host address are left out.
    """

    def __init__(self, network: IPv4Network) -> None:
        self._first = int(network.network_address) + 2
        self._count = network.num_addresses - 3
        self._next = 0
        self._used: set[int] = set()

    def allocate(self) -> str:
        """The next free address.

        Raises:
            PodNetworkError: there is none.
        """
        for offset in range(self._count):
            number = (self._next + offset) % self._count
            if number not in self._used:
                self._used.add(number)
                self._next = (number + 1) % self._count
                return str(IPv4Address(self._first + number))
        raise PodNetworkError(f"all {self._count} pod addresses are in use: delete some pods")

    def release(self, address: str) -> None:
        """Make an address available again."""
        self._used.discard(int(IPv4Address(address)) - self._first)
