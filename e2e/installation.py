"""The manager as config/ installs it, but on this machine: its roles, its webhooks, and the file that it reads."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from e2e.identity import NAMESPACE
from e2e.kubectl import Kubectl
from e2e.waiting import until

CONFIG = Path(__file__).parents[1] / "config"
HOST = "127.0.0.1"
WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
PORTS = range(20_000, 30_000)
"""Less than the numbers that kernels choose from (32768 and more, by default), and no node ports (30000 and more)."""

_ACCESS = {"Namespace", "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "Secret"}

_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on, each given once.

    Managers listen on theirs again after a restart: the kernel must not give them to anybody meanwhile.
    """
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        if len(found) == count:
            break
        if port not in _given and _is_free(port):
            _given.add(port)
            found.append(port)
    assert len(found) == count, "nearly all ports are taken"
    return found


def _is_free(port: int) -> bool:
    with suppress(OSError), socket.create_server((HOST, port)):
        return True
    return False


def merged(configuration: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A configuration with some fields of its sections changed."""
    return configuration | {
        name: {**(configuration.get(name) or {}), **value} if isinstance(value, dict) else value
        for name, value in changes.items()
    }


def shipped_configuration(
    ports: tuple[int, int, int], webhook_host: str = HOST, directory: str = "manager"
) -> dict[str, Any]:
    """What the Deployment mounts, with addresses of this machine.

    Args:
        ports: of webhooks, metrics and health.
        webhook_host: by which the API server reaches this machine; "": it does not, and there are no webhooks.
        directory: of the Deployment, below config.
    """
    shipped: dict[str, Any] = yaml.load((CONFIG / directory / "configuration.yaml").read_text(), yaml.CSafeLoader)
    webhook, metrics, health = ports
    changes: dict[str, Any] = {
        "webhook": {
            "host": HOST if webhook_host == HOST else "",
            "port": webhook,
            "hosts": sorted({webhook_host, HOST}),
        },
        "metrics": {"bindAddress": f"{HOST}:{metrics}"},
        "health": {"healthProbeBindAddress": f"{HOST}:{health}"},
    }
    if not webhook_host:
        changes["webhook"] = {"enabled": False}
    return merged(shipped, changes)


def roles(kubectl: Kubectl) -> list[dict[str, Any]]:
    """The namespace of the manager, its account, and all that it may do."""
    namespace = yaml.load((CONFIG / "manager/namespace.yaml").read_text(), yaml.CSafeLoader)
    return [
        namespace,
        *_rendered(kubectl, "rbac"),
        *(obj for obj in _rendered(kubectl, "webhook") if not _is_hook(obj)),
    ]


def v1_roles(kubectl: Kubectl, directory: str = "v1") -> list[dict[str, Any]]:
    """What the manager may do besides where it serves jobs of kubeflow.org/v1; `directory` is below config."""
    return [obj for obj in _rendered(kubectl, directory) if obj["kind"].startswith("ClusterRole")]


def released_roles(kubectl: Kubectl) -> list[dict[str, Any]]:
    """The same of config/v1alpha1."""
    return [obj for obj in _rendered(kubectl, "v1alpha1/manager") if obj["kind"] in _ACCESS]


def webhooks(kubectl: Kubectl, url: str, directory: str = "webhook") -> Iterator[dict[str, Any]]:
    """The webhook configurations, with URLs in place of the Service.

    Args:
        kubectl: renders them.
        url: of the manager, or of what stands before several.
        directory: below config.
    """
    for obj in filter(_is_hook, _rendered(kubectl, directory)):
        for webhook in obj["webhooks"]:
            webhook["clientConfig"] = {"url": f"{url}{webhook['clientConfig']['service']['path']}"}
        yield obj


def wait_for_trust(kubectl: Kubectl) -> None:
    """Wait until the API server can verify the certificate of the webhooks."""
    until(lambda: all(_is_trusted(kubectl, kind) for kind in WEBHOOKS), "the API server trusts the webhooks")


def _is_trusted(kubectl: Kubectl, kind: str) -> bool:
    ours = [obj for obj in kubectl.list(kind) if obj["metadata"]["name"].endswith(".trainer.kubeflow.org")]
    return bool(ours) and all(webhook["clientConfig"].get("caBundle") for obj in ours for webhook in obj["webhooks"])


def _rendered(kubectl: Kubectl, directory: str) -> list[dict[str, Any]]:
    text = kubectl.kubectl("kustomize", str(CONFIG / directory)).stdout
    return [_in_namespace(obj) for obj in yaml.load_all(text, yaml.CSafeLoader)]


def _in_namespace(obj: dict[str, Any]) -> dict[str, Any]:
    if obj["kind"].startswith(("Cluster", "Namespace")) or _is_hook(obj):
        return obj
    return obj | {"metadata": {"namespace": NAMESPACE} | obj["metadata"]}


def _is_hook(obj: dict[str, Any]) -> bool:
    return str(obj["kind"]).endswith("WebhookConfiguration")
