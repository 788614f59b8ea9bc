"""Reads what an explanation is made of, with the rights of the user and few requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread

from trainer.api.kueue import QUEUE_LABEL
from trainer.controllers.failure_log import FailureLog
from trainer.explain.cause import Unread
from trainer.explain.gang import Membership
from trainer.explain.needs import Needs, has_children, needs_of
from trainer.explain.snapshot import QueuePosition, Snapshot
from trainer.explain.suspension import LOCAL_QUEUES, WORKLOADS, jobset_selector, workload_selector
from trainer.framework import FailedContainer
from trainer.kube.barrier import Barrier
from trainer.kube.client import Client, ListOptions
from trainer.kube.clock import Clock
from trainer.kube.errors import ApiError, KubeError, NotFoundError, UnauthorizedError
from trainer.kube.events.compact import compact_event
from trainer.kube.objects import Object, labels_of, mapping_at, name_of, namespace_of, objects_in, uid_of
from trainer.kube.resource import EVENTS, JOBS, NODES, PERSISTENT_VOLUME_CLAIMS, PODS, Resource
from trainer.kube.selection import Selection
from trainer.workloads import JOBSETS

_T = TypeVar("_T")

_NEEDS = Barrier("could not tell what to read")
_EVENTS = 500
"""Events in a page."""
_EVENT_PAGES = 4
"""Most pages of events; a namespace may have a hundred thousand."""


class Compute(Protocol):
    """Calls a function without blocking the event loop."""

    async def __call__(self, function: Callable[..., _T], *arguments: object) -> _T:
        """Its result."""


async def in_thread(function: Callable[..., _T], *arguments: object) -> _T:
    """See `Compute`."""
    return await anyio.to_thread.run_sync(partial(function, *arguments))


@dataclass
class SnapshotReader:
    """Reads the objects of one answer: two requests for JobSet and pods, and those of `Needs`."""

    client: Client
    train_job: Object
    """Converted to v2alpha1, with managedFields."""
    clock: Clock
    compute: Compute = in_thread
    """Calls what takes a processor for a while. Default: in any thread."""
    _objects: list[Object] = field(default_factory=list, init=False)
    _unread: list[Unread] = field(default_factory=list, init=False)
    _logs: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict, init=False)
    _position: QueuePosition | None = field(default=None, init=False)

    async def snapshot(self) -> Snapshot:
        """Everything about the TrainJob.

        Raises:
            KubeError: the API server knows its user no longer, or does not answer.
        """
        if has_children(self.train_job):
            name = name_of(self.train_job)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._get, JOBSETS, name)
                tasks.start_soon(self._list, PODS, Selection(self._namespace, jobset_selector(name)))
        seen = self._seen()
        await self._read(await self.compute(self._needs, seen), seen)
        return self._seen()

    def _needs(self, seen: Snapshot) -> Needs:
        needs = Needs()
        with _NEEDS.around(seen.subject) as attempt:
            needs = needs_of(seen)
        if attempt.error is not None:
            why = "the objects that were read could not be understood, which is a defect of trainer"
            self._add(Unread("further objects", why))
        return needs

    @property
    def _namespace(self) -> str:
        return namespace_of(self.train_job)

    def _seen(self) -> Snapshot:
        found = tuple(self._objects), dict(self._logs), self._position, tuple(self._unread)
        return Snapshot(self.train_job, self.clock.now(), *found)

    async def _read(self, needs: Needs, snapshot: Snapshot) -> None:
        async with anyio.create_task_group() as tasks:
            if needs.workload:
                tasks.start_soon(self._read_workload, snapshot)
            if needs.events:
                tasks.start_soon(self._list, JOBS, Selection(self._namespace, jobset_selector(snapshot.name)))
                tasks.start_soon(self._read_events, "type=Warning")
            if needs.claims:
                tasks.start_soon(self._read_events, f"involvedObject.kind={PERSISTENT_VOLUME_CLAIMS.kind},type=Normal")
            if needs.nodes:
                tasks.start_soon(self._list, NODES, Selection())
            for name in needs.lost_nodes:
                tasks.start_soon(self._get, NODES, name)
            if needs.pod_group is not None:
                tasks.start_soon(self._read_pod_group, needs.pod_group)
            if needs.log is not None:
                tasks.start_soon(self._read_log, needs.log, needs.previous_log)

    async def _get(self, resource: Resource, name: str) -> None:
        found = await self._attempt(resource, lambda: self.client.get(resource, name, self._namespace))
        if found is not None:
            self._objects.append(found)

    async def _read_pod_group(self, membership: Membership) -> None:
        name, is_served = membership.name, False

        async def read(kind: Resource) -> Object:
            nonlocal is_served
            try:
                return await self.client.get(kind, name, self._namespace)
            except NotFoundError as error:
                is_served = is_served or name in str(error)  # else the kind is what does not exist
                raise
            except ApiError:
                is_served = True
                raise

        found = await self._first(membership.kinds, read)
        if found is not None:
            self._objects.append(found)
        elif membership.is_of_kubernetes and not is_served:
            kind = membership.kinds[0]
            why = f"the cluster does not serve {kind.qualified_name}, since its feature gate GenericWorkload is off"
            self._add(Unread(kind.plural, why))

    async def _list(self, resource: Resource, selection: Selection) -> None:
        found = await self._attempt(resource, lambda: self.client.list(resource, selection))
        if found is not None:
            # Thousands of pods take seconds, for which an event loop with other users must not wait.
            self._objects += await self.compute(attrgetter("items"), found)

    async def _read_events(self, field_selector: str) -> None:
        selection, options = Selection(self._namespace, field_selector=field_selector), ListOptions(limit=_EVENTS)
        for _ in range(_EVENT_PAGES):
            page = await self._attempt(EVENTS, lambda: self.client.list_page(EVENTS, selection, options))  # noqa: B023
            if page is None:
                return
            self._objects += map(compact_event, page.items)
            if not page.continue_token:
                return
            options = replace(options, continue_token=page.continue_token)
        self._add(Unread(EVENTS.plural, f"there are more than {_EVENTS * _EVENT_PAGES} in the namespace"))

    async def _read_workload(self, snapshot: Snapshot) -> None:
        uids = [uid_of(each) for each in (snapshot.train_job, snapshot.jobset) if each is not None]
        selection = Selection(self._namespace, workload_selector(uids))
        found = await self._first(WORKLOADS, lambda kind: self.client.list(kind, selection))
        if found is not None and found.items:
            self._objects += found.items
            await self._read_position(found.items[0])

    async def _read_position(self, workload: Object) -> None:
        queue = (workload.get("spec") or {}).get("queueName") or labels_of(workload).get(QUEUE_LABEL)
        if not queue:
            return
        try:
            answer = await self.client.get(LOCAL_QUEUES, queue, self._namespace, subresource="pendingworkloads")
        except (KubeError, NotImplementedError):
            return  # the visibility API is optional, and seldom granted
        for item in objects_in(answer.get("items")):
            if mapping_at(item, "metadata").get("name") == name_of(workload):
                local, cluster = item.get("positionInLocalQueue"), item.get("positionInClusterQueue")
                if isinstance(local, int) and isinstance(cluster, int):
                    self._position = QueuePosition(local, cluster)

    async def _read_log(self, container: FailedContainer, previous: bool) -> None:
        log = FailureLog(self.client, self.clock)
        self._logs[container.pod, container.container] = await log.tail(container, self._namespace, previous=previous)

    async def _attempt(self, resource: Resource, read: Callable[[], Awaitable[_T]]) -> _T | None:
        """The object of a read; None if it does not exist, or cannot be read, which is noted."""
        return await self._first((resource,), lambda _: read())

    async def _first(self, kinds: Sequence[Resource], read: Callable[[Resource], Awaitable[_T]]) -> _T | None:
        """The object of a read in the first version that the cluster serves; see `_attempt`."""
        for kind in kinds:
            try:
                return await read(kind)
            except NotFoundError:
                continue
            except UnauthorizedError:
                raise
            except ApiError as error:
                self._note(kind, error)
                return None
        return None

    def _note(self, resource: Resource, error: ApiError) -> None:
        self._add(Unread(resource.plural, str(error)))

    def _add(self, unread: Unread) -> None:
        """Keep it; several reads of one kind mostly fail alike."""
        if unread not in self._unread:
            self._unread.append(unread)
