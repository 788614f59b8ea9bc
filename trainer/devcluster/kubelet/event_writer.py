"""Brings a pod's events to the API server without holding up the pod."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from trainer.devcluster.kubelet.pod_api import PodApi
    from trainer.kube.events import EventKind
    from trainer.kube.objects import Object


class EventWriter:
    """Writes the events of one pod one after the other."""

    def __init__(self, api: PodApi) -> None:
        self._api = api
        self._pending: deque[tuple[Object, EventKind, str, str]] = deque()
        self._arrived = anyio.Event()

    def announce(self, pod: Object, kind: EventKind, reason: str, message: str) -> None:
        """Write an event soon."""
        self._pending.append((pod, kind, reason, message))
        self._arrived.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            while self._pending:
                pod, kind, reason, message = self._pending.popleft()
                await self._api.record(pod, kind=kind, reason=reason, message=message)
            self._arrived = anyio.Event()
            await self._arrived.wait()
