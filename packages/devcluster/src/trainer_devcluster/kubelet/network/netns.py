"""Pods with a network of their own.

The bridge that connects them is in a network namespace of its own too, held by a process of the kubelet. So it touches
neither the machine's interfaces nor its routes, any number of clusters run side by side on the same addresses, it works
without root in a user namespace, and the kernel removes all of it when the holding process ends, however it ends.
The price: pods reach each other, but neither the machine nor the Internet. Only the API server is there, at the
address of the Service `kubernetes`: the process that holds the bridge opens a socket in its network and hands it to the
kubelet, which passes the bytes on.
"""

from __future__ import annotations

import itertools
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import IPv4Network

import anyio.to_thread

from trainer_devcluster.kubelet.errors import PodNetworkError
from trainer_devcluster.kubelet.network.machine import user_namespace_identity
from trainer_devcluster.kubelet.network.pod_network import AddressPool, ApiAddress
from trainer_devcluster.kubelet.options import PodNetworkMode
from trainer_devcluster.kubelet.sandbox import run_shim
from trainer_devcluster.kubelet.shim import reports
from trainer_devcluster.kubelet.shim.spec import IpBatch, SandboxSpec

_SUBNET = IPv4Network("10.88.0.0/16")
_GATEWAY = "10.88.0.1"
_BRIDGE = "pods"
API_SERVER = ApiAddress("10.96.0.1", 443)
"""Address of the Service `kubernetes`, in the pods' network."""
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where `ip` may be although it is not on an ordinary user's PATH."""

_HOSTS_PREAMBLE = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
_RESOLV_CONF = """\
# The names of pods are in /etc/hosts; this name server answers that no other exists.
nameserver 127.0.0.1
options attempts:1 timeout:1
"""


class NetnsNetwork(AddressPool):
    """Pods on one bridge; made by `open_netns`."""

    mode = PodNetworkMode.NETNS
    consequence = (
        "each pod has its own network, so that any number of jobs may use the same port; pods do not reach the Internet"
    )
    isolated = True
    resolv_conf = _RESOLV_CONF
    hosts_preamble = _HOSTS_PREAMBLE

    def __init__(self, ip: str, holder: int, run_as: tuple[int, int] | None, listener: socket.socket) -> None:
        super().__init__(_SUBNET)
        self.run_as = run_as
        self.api_server = API_SERVER
        self.api_listener = listener
        self._ip = ip
        self._holder = holder
        self._numbers = itertools.count(1)

    def sandbox(self, hostname: str, address: str) -> SandboxSpec:
        """A network namespace with `lo` and `eth0`, whose other end is on the bridge."""
        port = f"pod{next(self._numbers)}"
        inside = (
            "link set lo up",
            f"link add eth0 type veth peer name {port} netns {self._holder}",
            f"address add {address}/{_SUBNET.prefixlen} broadcast + dev eth0",
            "link set eth0 up",
            f"route add {API_SERVER.host}/32 dev eth0",
        )
        return SandboxSpec(
            join=_paths(self._holder, ("net",) if self.run_as is None else ("user", "net")),
            unshare=("net", "uts", "ipc"),
            hostname=hostname,
            ip=self._ip,
            batches=(IpBatch("new", inside), IpBatch("joined", (f"link set {port} master {_BRIDGE} up",))),
            serve_names=True,
        )

    def join(self, sandbox_pid: int) -> tuple[str, ...]:
        """The sandbox's namespaces."""
        kinds = ("net", "uts", "ipc")
        return _paths(sandbox_pid, kinds if self.run_as is None else ("user", *kinds))

    def rewrite(self, value: str, *, namespace: str, subdomain: str) -> str:  # noqa: ARG002 - protocol
        """Names resolve, so nothing is replaced."""
        return value


@asynccontextmanager
async def open_netns() -> AsyncIterator[NetnsNetwork]:
    """Make the bridge; it exists as long as the context.

    Raises:
        PodNetworkError: `ip` is missing or the kernel refuses.
    """
    ip = await anyio.to_thread.run_sync(_find_ip)
    if ip is None:
        raise PodNetworkError("the program ip is missing (package iproute2)")
    run_as = user_namespace_identity()
    commands = (
        "link set lo up",
        f"link add {_BRIDGE} type bridge",
        f"address add {_GATEWAY}/{_SUBNET.prefixlen} dev {_BRIDGE}",
        f"address add {API_SERVER.host}/32 dev {_BRIDGE}",
        f"link set {_BRIDGE} up",
    )
    ours, theirs = socket.socketpair()
    with ours, theirs:
        spec = SandboxSpec(
            unshare=("net",) if run_as is None else ("user", "net"),
            ip=ip,
            batches=(IpBatch("new", commands),),
            listen=(API_SERVER.host, API_SERVER.port),
            hand_over=theirs.fileno(),
        )
        async with run_shim(spec, keep=[theirs.fileno()]) as holder:
            report = await holder.report()
            if isinstance(report, reports.StartFailed):
                raise PodNetworkError(report.message)
            # It has been sent before the report, so there is nothing to wait for.
            _, (descriptor, *_), _, _ = await anyio.to_thread.run_sync(socket.recv_fds, ours, 1, 1)
            with socket.socket(fileno=descriptor) as listener:
                yield NetnsNetwork(ip, holder.pid, run_as, listener)


def _find_ip() -> str | None:
    return shutil.which("ip") or shutil.which("ip", path=_SBIN)


def _paths(pid: int, kinds: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"/proc/{pid}/ns/{kind}" for kind in kinds)
