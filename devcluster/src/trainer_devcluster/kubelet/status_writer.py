"""Brings a pod's status to the API server, whatever the state of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import structlog

from trainer.kube.backoff import Backoff
from trainer.kube.errors import KubeError
from trainer.kube.objects import name_of, namespace_of
from trainer_devcluster.kubelet.errors import PodGoneError

if TYPE_CHECKING:
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object
    from trainer_devcluster.kubelet.pod_api import PodApi

log = structlog.get_logger(__name__)

_RETRY = Backoff(initial=0.2, maximum=10.0)


class StatusWriter:
    """Writes the latest status of one pod; what was overtaken before it could be written is left out."""

    def __init__(self, api: PodApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._wanted: tuple[Object, Object] | None = None
        self._written: Object | None = None
        self._changed = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()

    def publish(self, pod: Object, status: Object) -> None:
        """Write this status soon, instead of any that still waits."""
        if self._wanted is None and status == self._written:
            return
        self._wanted = (pod, status)
        self._changed.set()
        if self._idle.is_set():
            self._idle = anyio.Event()

    async def flush(self) -> None:
        """Wait until the last status is on the server, or cannot get there because the pod is gone."""
        await self._idle.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        failures = 0
        while True:
            await self._changed.wait()
            if self._wanted is None:
                self._changed = anyio.Event()
                self._idle.set()
                continue
            pod, status = self._wanted
            if await self._write(pod, status):
                failures = 0
                if self._wanted is not None and self._wanted[1] is status:
                    self._wanted = None
            else:
                await self._clock.sleep(_RETRY.pause(failures))
                failures += 1

    async def _write(self, pod: Object, status: Object) -> bool:
        try:
            await self._api.write_status(pod, status)
        except PodGoneError:
            log.debug("pod is gone, its status is not written", namespace=namespace_of(pod), pod=name_of(pod))
        except KubeError as error:
            log.warning("could not write pod status, will retry", pod=name_of(pod), error=str(error))
            return False
        self._written = status
        return True
