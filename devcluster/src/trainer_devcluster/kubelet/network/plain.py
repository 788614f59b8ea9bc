"""Pods without namespaces: for machines that allow none."""

from __future__ import annotations

import re

from trainer_devcluster.kubelet.options import PodNetworkMode

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"


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
