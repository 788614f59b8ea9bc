"""What no informer has: who has made a TrainJob, and what is rendered for it beside its JobSet."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import anyio

from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.barrier import Barrier
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.client import Client
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import mapping_at, uid_of
from trainer.view.row import ENDS
from trainer_dashboard.history.entry import Entry
from trainer_dashboard.history.related_objects import RelatedObjects
from trainer_dashboard.history.training import creator_of

_AT_ONCE = 10
"""Requests at once."""


class Inquiries:
    """Asks the API server; what one TrainJob makes it answer keeps no other one waiting for more than its requests."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._related = RelatedObjects(client)
        self._turns = anyio.Semaphore(_AT_ONCE)
        self._of_creators = Barrier("could not ask who has made TrainJob")
        self._of_related = Barrier("could not ask what is rendered")

    async def make(self, entries: Iterable[Entry]) -> None:
        """Ask about each TrainJob what it has to be asked for, and put the answers into its entry."""
        async with anyio.create_task_group() as tasks:
            for entry in entries:
                if entry.creator is None:
                    tasks.start_soon(self._find_creator, entry)
                if entry.jobset is not None:
                    tasks.start_soon(self._find_related, entry, entry.jobset)

    async def _find_creator(self, entry: Entry) -> None:
        """Informers drop managedFields, so this is asked for once."""
        key, creator = entry.job.key, ""
        async with self._turns:
            with self._of_creators.around(key), suppress(NotFoundError):  # deleted meanwhile
                job = await self._client.get(TRAIN_JOBS, key.name, key.namespace)
                creator = creator_of(job) if uid_of(job) == entry.job.uid else ""
        entry.creator = creator

    async def _find_related(self, entry: Entry, jobset: CachedObject) -> None:
        """Ask again where the JobSet has changed; of what had ended before, the database has them."""
        with self._of_related.around(entry.job.key):
            rendered = f"{jobset.uid} {mapping_at(jobset.get('metadata')).get('generation')}"
            if entry.rendered == rendered or entry.deleted is not None:
                return
            is_known = entry.is_recorded and not entry.rendered and entry.state in ENDS
            if not is_known:
                async with self._turns:
                    entry.related = await self._related.of(entry.job, jobset.decode())
            entry.rendered = rendered
