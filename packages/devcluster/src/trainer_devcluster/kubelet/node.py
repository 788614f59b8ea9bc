"""The Node object that stands for this machine."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from trainer.kube.client import Client
from trainer.kube.clock import timestamp
from trainer.kube.controller.controller import Controller
from trainer.kube.errors import AlreadyExistsError
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import NODES
from trainer_devcluster import __version__
from trainer_devcluster.kubelet.network.pod_network import HOST_IP

POD_NETWORK_ANNOTATION = "devcluster.trainer/pod-network"
"""Tells users how pods get their network: the mode, a colon, what it means, and why no better one works."""

PYTHON_ANNOTATION = "devcluster.trainer/python"
"""The interpreter that pods run, whose packages they have."""
_MAX_PODS = "110"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine as the Node describes it."""

    name: str
    capacity: dict[str, str]
    labels: dict[str, str]
    info: dict[str, str]
    """`status.nodeInfo`."""


def describe_machine(node_name: str, data_dir: Path, resources: Mapping[str, str] = MappingProxyType({})) -> Machine:
    """Look at this machine; reads a few small files, so it may block.

    Args:
        node_name: of the Node.
        data_dir: where pods keep their files; the size of its disk is the capacity for them.
        resources: amounts in place of what the machine has. Default: none.
    """
    capacity = {
        "cpu": str(len(os.sched_getaffinity(0))),
        "ephemeral-storage": f"{shutil.disk_usage(data_dir).total // 1024}Ki",
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') // 1024}Ki",
        "pods": _MAX_PODS,
    }
    gpus = len([path for path in Path("/dev").glob("nvidia[0-9]*") if path.name.removeprefix("nvidia").isdigit()])
    if gpus:
        capacity["nvidia.com/gpu"] = str(gpus)
    capacity |= resources
    labels = {
        "kubernetes.io/hostname": node_name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": _architecture(),
    }
    return Machine(node_name, capacity, labels, _node_info())


async def register_node(client: Client, machine: Machine, pod_network: str, now: datetime) -> None:
    """Create the Node, or bring the one of a former process up to date. Raises `KubeError`."""
    metadata = {
        "name": machine.name,
        "labels": machine.labels,
        "annotations": {POD_NETWORK_ANNOTATION: pod_network, PYTHON_ANNOTATION: sys.executable},
    }
    try:
        await client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    except AlreadyExistsError:
        changes = {name: metadata[name] for name in ("labels", "annotations")}
        await client.patch(NODES, machine.name, {"metadata": changes})
    await client.patch(NODES, machine.name, {"status": _status(machine, timestamp(now))}, subresource="status")


def _status(machine: Machine, now: str) -> Object:
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "the dev cluster runs pods as processes of this machine",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return {
        "capacity": machine.capacity,
        "allocatable": machine.capacity,
        "conditions": [condition],
        "addresses": [
            {"type": "InternalIP", "address": HOST_IP},
            {"type": "Hostname", "address": machine.name},
        ],
        "nodeInfo": machine.info,
    }


def _node_info() -> dict[str, str]:
    return {
        "architecture": _architecture(),
        "bootID": _read("/proc/sys/kernel/random/boot_id"),
        "containerRuntimeVersion": f"process://{__version__}",
        "kernelVersion": platform.release(),
        "kubeProxyVersion": "",
        "kubeletVersion": f"v{__version__}",
        "machineID": _read("/etc/machine-id"),
        "operatingSystem": "linux",
        "osImage": _os_image(),
        "systemUUID": "",
    }


def _architecture() -> str:
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def _os_image() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""


class Advertisement:
    """Makes what is advertised available to pods (Kubernetes documentation, "Advertise Extended Resources for a Node").

    A patch adds a name and an amount to `status.capacity`; like any kubelet, this one copies it to
    `status.allocatable`, by which schedulers go. Constructing it registers it with the manager.
    """

    def __init__(self, manager: Manager, node_name: str) -> None:
        self._client = manager.client
        self._node = ObjectKey("", node_name)
        self._nodes = manager.informer(NODES).lister
        Controller("extended-resources", manager, self.reconcile).reconciles(NODES)

    async def reconcile(self, key: ObjectKey) -> None:
        """Copy what has changed. Raises `KubeError` for another try."""
        node = self._nodes.get(key) if key == self._node else None
        status = (node or {}).get("status") or {}
        allocatable = status.get("allocatable") or {}
        # Only extended resources have a domain in their name.
        extended = {name: amount for name, amount in (status.get("capacity") or {}).items() if "/" in name}
        changed = {name: amount for name, amount in extended.items() if allocatable.get(name) != amount}
        withdrawn = dict.fromkeys(name for name in allocatable if "/" in name and name not in extended)
        if node is None or not (changed or withdrawn):
            return
        patch = {"status": {"allocatable": changed | withdrawn}}
        await self._client.patch(NODES, key.name, patch, subresource="status")
