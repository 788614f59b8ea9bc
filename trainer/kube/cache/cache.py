"""Cache: all informers of one process, each resource and selection once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress

import anyio
from anyio.abc import TaskGroup

from trainer.kube.cache.informer import Informer, InformerRemovedError
from trainer.kube.cache.transform import Transform
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import TransportError, UnauthorizedError
from trainer.kube.logger import get_logger
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.caches import CacheSeries
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import Resource
from trainer.kube.selection import EVERYTHING, Selection

log = get_logger(__name__)


class Cache:
    """Starts informers, waits for them, and shows them what this process writes itself.

    Selections make a cache small, predicates of controllers do not. The metadata of a resource alone (see
    `Selection.metadata_only`) is a cache of its own beside that of whole objects, and so is each of several namespaces.

    Other than in controller-runtime, no read starts an informer or waits for one: who reads has asked for it before,
    and the manager starts no controller until all have synced. Lists have neither limit nor continue token, which would
    save nothing; what is read is decoded for the reader, so that there is nothing shared to copy or to guard.

    Args:
        client: reads from the API server.
        clock: for pauses and ages; default: that of the machine.
        metrics: default: none that anybody sees.
        transforms: changes to the objects of a resource before they are stored, to drop what nobody reads.
        namespace_limits: how many objects of one namespace are kept, see `Informer`; default: all.
    """

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        transforms: Mapping[Resource, Transform] | None = None,
        namespace_limits: Mapping[Resource, int] | None = None,
    ) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._metrics = metrics or Metrics()
        self._transforms = dict(transforms or {})
        self._namespace_limits = dict(namespace_limits or {})
        self._informers: dict[tuple[Resource, Selection], Informer] = {}
        self._by_resource: defaultdict[Resource, list[Informer]] = defaultdict(list)
        self._scopes: dict[Informer, anyio.CancelScope] = {}
        self._tasks: TaskGroup | None = None

    @property
    def informers(self) -> Sequence[Informer]:
        """All informers, in the order in which they were asked for."""
        return tuple(self._informers.values())

    def informer(self, resource: Resource, selection: Selection = EVERYTHING, *, optional: bool = False) -> Informer:
        """The informer of this selection: same arguments, same informer; starts at once when the cache runs.

        With `optional` it makes do without the kind until the API server serves it (see `Informer`), unless somebody
        asks for the same without.

        Raises:
            ValueError: a selector is malformed.
        """
        informer = self._informers.get((resource, selection))
        if informer is None:
            informer = self._informers[resource, selection] = Informer(
                self._client,
                resource,
                selection,
                clock=self._clock,
                transform=self._transforms.get(resource),
                metrics=self._metrics,
                optional=optional,
                namespace_limit=self._namespace_limits.get(resource),
            )
            self._by_resource[resource].append(informer)
            self._start(informer)
        elif not optional:
            informer.require()
        return informer

    def remove(self, resource: Resource, selection: Selection = EVERYTHING) -> None:
        """Stop the informer of this selection and forget its objects; nothing happens when there is none.

        Its handlers get nothing more, not even the deletion of the objects. Asking for it again makes a new one.
        """
        informer = self._informers.pop((resource, selection), None)
        if informer is None:
            return
        self._by_resource[resource].remove(informer)
        self._metrics.series(CacheSeries).remove(resource.qualified_name, str(selection))
        informer.removed()
        scope = self._scopes.pop(informer, None)
        if scope is not None:
            scope.cancel()

    async def run(self) -> None:
        """Run all informers until cancelled; call it once.

        Raises:
            RuntimeError: it has been called before.
        """
        if self._tasks is not None:
            raise RuntimeError("the cache has been started before")
        async with anyio.create_task_group() as self._tasks:
            self._start_all()
            await anyio.sleep_forever()

    async def wait_for_sync(self) -> None:
        """Wait until every informer that is not removed has its first list and its handlers know it."""
        for informer in self.informers:
            with suppress(InformerRemovedError):
                await informer.wait_for_sync()

    @property
    def problem(self) -> str | None:
        """Why some of the copies cannot be relied on; None while all can. What concerns several is said once."""
        failing: dict[str, list[str]] = {}
        others: list[str] = []
        for informer in self.informers:
            problem, error = informer.problem, informer.last_error
            if problem is not None and isinstance(error, TransportError | UnauthorizedError):
                failing.setdefault(str(error), []).append(informer.resource.qualified_name)
            elif problem is not None:
                others.append(problem)
        shared = [f"{', '.join(names)} could not be listed or watched: {error}" for error, names in failing.items()]
        return "; ".join(shared + others) or None

    def wrote(self, resource: Resource, obj: Object) -> None:
        """Let readers see the server's answer to a write of this process (see `own_writes`)."""
        if obj.get("kind") != resource.kind:
            return
        for informer in self._by_resource[resource]:
            informer.wrote(obj)

    def known_uid(self, resource: Resource, key: ObjectKey) -> str:
        """Uid of the object that readers see under the key; "" when they see none."""
        for informer in self._by_resource[resource]:
            obj = informer.lister.peek(key)
            if obj is not None:
                return obj.uid
        return ""

    def deleted(self, resource: Resource, key: ObjectKey, uid: str, answer: Object | None) -> None:
        """Let readers see that an object was deleted; the server's answer is what remains of it."""
        for informer in self._by_resource[resource]:
            informer.deleted(key, uid, answer)

    def _start_all(self) -> None:
        # Not within `run`, whose frame would keep the last informer after its removal.
        for informer in self.informers:
            self._start(informer)

    def _start(self, informer: Informer) -> None:
        if self._tasks is not None:
            scope = self._scopes[informer] = anyio.CancelScope()
            self._tasks.start_soon(_run_within, scope, informer, name=f"informer {informer.resource.qualified_name}")


async def _run_within(scope: anyio.CancelScope, informer: Informer) -> None:
    with scope:
        await informer.run()
