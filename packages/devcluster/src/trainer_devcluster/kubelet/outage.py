"""What the kubelet does while its node is lost: nothing."""

from __future__ import annotations

import anyio

from trainer.kube.controller.controller import Controller
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import NODES
from trainer_devcluster.node_outage import is_lost


class Outage:
    """Holds up what comes from the API server, and what goes there, until the node is back (`node_outage`).

    Constructing it registers it with the manager.
    """

    def __init__(self, manager: Manager, node_name: str) -> None:
        self._node = ObjectKey("", node_name)
        self._nodes = manager.informer(NODES).lister
        self._changed = anyio.Event()
        Controller("node-outage", manager, self._reconcile).reconciles(NODES)

    async def over(self) -> None:
        """Wait until the node is not lost."""
        while is_lost(self._nodes.get(self._node)):
            await self._changed.wait()

    async def _reconcile(self, _: ObjectKey) -> None:
        self._changed.set()
        self._changed = anyio.Event()
