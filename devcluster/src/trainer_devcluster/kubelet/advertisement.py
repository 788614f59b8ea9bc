"""Extended resources that somebody advertises on the Node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.controller.controller import Controller
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import NODES

if TYPE_CHECKING:
    from trainer.kube.manager.manager import Manager


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
