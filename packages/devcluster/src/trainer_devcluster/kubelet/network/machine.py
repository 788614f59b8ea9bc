"""Pods on the machine's own network: with names and loopback addresses of their own, or with nothing of their own."""

from __future__ import annotations

import os
import re
from ipaddress import IPv4Network
from pathlib import Path

from trainer_devcluster.kubelet.network.pod_network import AddressPool
from trainer_devcluster.kubelet.options import PodNetworkMode
from trainer_devcluster.kubelet.shim.spec import SandboxSpec

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"


def user_namespace_identity() -> tuple[int, int] | None:
    """User and group to return to inside the user namespace that everyone but root needs; None for root."""
    return (os.geteuid(), os.getegid()) if os.geteuid() != 0 else None


class HostsNetwork(AddressPool):
    """Each pod has an address in 127.0.0.0/8, which Linux answers on without set-up.

    The second number of the address comes from the process ID, so that two clusters rarely share addresses.
    """

    mode = PodNetworkMode.HOSTS
    consequence = "pods share the network of this machine: two programs that listen on the same port cannot run at once"
    isolated = True
    resolv_conf = None
    api_server = None
    api_listener = None

    def __init__(self) -> None:
        self.run_as = user_namespace_identity()
        super().__init__(IPv4Network(f"127.{16 + os.getpid() % 224}.0.0/16"))
        self.hosts_preamble = Path("/etc/hosts").read_text(encoding="utf-8", errors="replace")

    def sandbox(self, hostname: str, address: str) -> SandboxSpec:  # noqa: ARG002 - protocol
        """A host name of its own, in a user namespace unless we are root."""
        kinds = ("uts", "ipc") if self.run_as is None else ("user", "uts", "ipc")
        return SandboxSpec(unshare=kinds, hostname=hostname)

    def join(self, sandbox_pid: int) -> tuple[str, ...]:
        """The sandbox's namespaces."""
        kinds = ("uts", "ipc") if self.run_as is None else ("user", "uts", "ipc")
        return tuple(f"/proc/{sandbox_pid}/ns/{kind}" for kind in kinds)

    def rewrite(self, value: str, *, namespace: str, subdomain: str) -> str:  # noqa: ARG002 - protocol
        """Names resolve, so nothing is replaced."""
        return value


class PlainNetwork:
    """Every pod is 127.0.0.1, and its environment says so instead of naming other pods."""

    mode = PodNetworkMode.PLAIN
    consequence = (
        "all pods are 127.0.0.1: one job at a time on a port, volumes only at a container's workingDir or below it, "
        "pod names are replaced in environment variables only, no service account tokens in pods"
    )
    isolated = False
    run_as = None
    resolv_conf = None
    api_server = None
    api_listener = None
    hosts_preamble = ""

    def allocate(self) -> str:
        """The one address."""
        return "127.0.0.1"

    def release(self, address: str) -> None:
        """Nothing to give back."""

    def sandbox(self, hostname: str, address: str) -> None:  # noqa: ARG002 - protocol
        """Pods have no namespaces."""
        return

    def join(self, sandbox_pid: int) -> tuple[str, ...]:  # noqa: ARG002 - protocol
        """Nothing to enter."""
        return ()

    def rewrite(self, value: str, *, namespace: str, subdomain: str) -> str:
        """Replace names of pods in the same subdomain, and the subdomain's qualified name, by 127.0.0.1.

        Pods are recognised by the form of their names, because those that are named first may not exist yet.
        """
        if not subdomain:
            return value
        service, space = re.escape(subdomain), re.escape(namespace)
        qualified = rf"(?:\.{space}(?:\.svc(?:\.cluster\.local)?)?)"
        names = rf"(?<![-.\w])(?:{_LABEL}\.{service}{qualified}?|{service}{qualified})(?![-.]?\w)"
        return re.sub(names, "127.0.0.1", value)
