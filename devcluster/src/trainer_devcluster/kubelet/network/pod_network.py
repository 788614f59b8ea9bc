"""The protocol of a pod network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from trainer_devcluster.kubelet.network.api_gateway import ApiAddress
    from trainer_devcluster.kubelet.options import PodNetworkMode
    from trainer_devcluster.kubelet.shim.spec import SandboxSpec

HOST_IP = "127.0.0.1"
"""Address of the node."""


class PodNetwork(Protocol):
    """Addresses for pods, and what a sandbox needs to have one."""

    @property
    def mode(self) -> PodNetworkMode:
        """Which way this is."""

    @property
    def consequence(self) -> str:
        """What this way means for the user, in one clause."""

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
