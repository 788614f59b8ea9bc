"""First objects: sees to it that every namespace has what it starts with.

The pipeline makes them together with the namespace unless a webhook wants to see them; then they are made here, and
tried again for as long as the webhook refuses them or cannot be called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from trainer.devcluster.apiserver import namespaces
from trainer.devcluster.apiserver.status import StatusError
from trainer.kube.clock import move_on_after
from trainer.kube.objects import is_being_deleted, name_of, uid_of

if TYPE_CHECKING:
    from trainer.devcluster.apiserver.backend import Backend
    from trainer.devcluster.apiserver.pipeline import Pipeline
    from trainer.kube.objects import Object

log = structlog.get_logger(__name__)

RETRY_SECONDS = 1.0


class FirstObjects:
    """Makes what is missing in new namespaces."""

    def __init__(self, backend: Backend, pipeline: Pipeline) -> None:
        self._backend = backend
        self._pipeline = pipeline
        self._done: set[str] = set()
        """Uids of namespaces that have had all of them."""

    async def run(self) -> None:
        """Follow the namespaces until cancelled."""
        storage = self._backend.storage
        while True:
            changed = storage.changed(namespaces.PARTITION)
            stored = storage.snapshot(namespaces.PARTITION)
            self._done &= set(map(uid_of, stored))
            for namespace in stored:
                if (
                    uid_of(namespace) not in self._done
                    and not is_being_deleted(namespace)
                    and await self._fill(namespace)
                ):
                    self._done.add(uid_of(namespace))
            unfinished = any(uid_of(entry) not in self._done and not is_being_deleted(entry) for entry in stored)
            async with move_on_after(self._backend.clock, RETRY_SECONDS if unfinished else None):
                await changed.wait()

    async def _fill(self, namespace: Object) -> bool:
        """Make what a namespace lacks; whether it has everything now."""
        for resource, first in namespaces.first_objects(namespace, self._backend.ca_pem):
            try:
                await self._pipeline.create_internal(resource, first)
            except StatusError as error:
                log.warning(
                    "cannot create first object", kind=resource.kind, namespace=name_of(namespace), error=error.message
                )
                return False
        return True
