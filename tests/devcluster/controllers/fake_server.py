"""An API server in memory whose watch events arrive only when a test lets them."""

from __future__ import annotations

import itertools
from collections import deque
from copy import deepcopy
from typing import TYPE_CHECKING, cast

from trainer.kube.client import (
    DEFAULT_DELETE,
    EVERYTHING,
    DeleteOptions,
    ObjectList,
    PatchType,
    Propagation,
    Selection,
)
from trainer.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    TransportError,
)
from trainer.kube.informer import Informer
from trainer.kube.objects import ObjectKey, key_of, uid_of
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, JOBS, JOBSETS, PODS, SERVICES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainer.kube.client import Client
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

TERMINATING = ForbiddenError(
    403,
    "unable to create new content in namespace n because it is being terminated",
    status={"details": {"causes": [{"reason": "NamespaceTerminating"}]}},
)
"""What a namespace that is being deleted answers to creations."""
CREATED = "2026-11-21T11:00:00Z"
DELETED = "2026-11-21T12:00:00Z"
KNOWN = (PODS, JOBS, JOBSETS, SERVICES, EVENTS, CUSTOM_RESOURCE_DEFINITIONS)


class FakeServer:
    """Implements what controllers ask of a `Client`; a deletion without finalizers is immediate."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, ObjectKey], Object] = {}
        self._revision = itertools.count(1)
        self._names = itertools.count(1)
        self._informers: dict[str, Informer] = {}
        self._pending: deque[Callable[[], None]] = deque()
        self.requests: list[tuple[str, str, str]] = []
        """Verb, resource and name of every write, in order."""
        self.ended_badly = 0
        """For tests that count failures: how many they have caused."""
        self._answers_left: int | None = None
        self._refusals: dict[str, ApiError] = {}

    @property
    def client(self) -> Client:
        """The server as its users see it; watches and logs, which the controllers leave to informers, are missing."""
        return cast("Client", self)

    def informer(self, resource: Resource) -> Informer:
        """An informer that shows changes when they are delivered."""
        informer = self._informers.get(resource.plural)
        if informer is None:
            informer = self._informers[resource.plural] = Informer(self.client, resource)
            informer.replace([deepcopy(obj) for obj in self.all(resource)])
        return informer

    def restart_informers(self) -> None:
        """Forget all informers and what has not been delivered; new ones start from the present state."""
        self._informers.clear()
        self._pending.clear()

    def fail_after(self, writes: int | None) -> None:
        """Carry out the next writes, and lose the answer of the one after them; None answers all again."""
        self._answers_left = writes

    def refuse(self, resource: Resource, error: ApiError) -> None:
        """Answer creations of a resource with an error."""
        self._refusals[resource.plural] = error

    def deliver(self, count: int | None = None) -> int:
        """Let the next events (default: all) reach the informers; returns how many are left."""
        for _ in range(len(self._pending) if count is None else min(count, len(self._pending))):
            self._pending.popleft()()
        return len(self._pending)

    def all(self, resource: Resource) -> list[Object]:
        """All objects of a resource."""
        return [obj for (plural, _), obj in self._objects.items() if plural == resource.plural]

    def find(self, resource: Resource, name: str, namespace: str = "n") -> Object | None:
        """An object by name."""
        return self._objects.get((resource.plural, ObjectKey(namespace if resource.namespaced else "", name)))

    def put(self, resource: Resource, obj: Object) -> Object:
        """Store an object as it is, a new or a changed one."""
        key = (resource.plural, key_of(obj))
        obj = deepcopy(obj)
        obj["metadata"]["resourceVersion"] = str(next(self._revision))
        self._objects[key] = obj
        self._publish(resource, lambda informer: informer.put(deepcopy(obj)))
        return deepcopy(obj)

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, subresource: str | None = None
    ) -> Object:
        return deepcopy(self._require(resource, name, namespace))

    async def list(self, resource: Resource, selection: Selection = EVERYTHING) -> ObjectList:
        items = [obj for obj in self.all(resource) if selection.namespace in (None, key_of(obj).namespace)]
        return ObjectList(deepcopy(items), "0")

    async def create(self, resource: Resource, obj: Object, *, field_manager: str | None = None) -> Object:
        obj = deepcopy(obj)
        metadata = obj["metadata"]
        if not metadata.get("name"):
            metadata["name"] = f"{metadata['generateName']}{next(self._names):05}"
        self._note("create", resource, metadata["name"])
        if resource.plural in self._refusals:
            raise self._refusals[resource.plural]
        if (resource.plural, key_of(obj)) in self._objects:
            raise AlreadyExistsError(409, f"{metadata['name']} already exists")
        metadata |= {"uid": f"uid-{next(self._names)}", "creationTimestamp": CREATED}
        return self._answer(self.put(resource, obj))

    async def update(self, resource: Resource, obj: Object, *, subresource: str | None = None) -> Object:
        self._note("update", resource, obj["metadata"]["name"])
        live = self._require(resource, obj["metadata"]["name"], obj["metadata"].get("namespace"))
        if obj["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]:
            raise ConflictError(409, "stale")
        if subresource == "status":
            return self._answer(self.put(resource, {**live, "status": obj["status"]}))
        return self._answer(self.put(resource, {**obj, **({"status": live["status"]} if "status" in live else {})}))

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Object | Sequence[Object],
        namespace: str | None = None,
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> Object:
        self._note("patch", resource, name)
        live = deepcopy(self._require(resource, name, namespace))
        assert isinstance(body, dict)
        change = deepcopy(body.get("metadata") or {})
        if change.get("resourceVersion") not in (None, live["metadata"]["resourceVersion"]):
            raise ConflictError(409, "stale")
        removed = change.pop("$deleteFromPrimitiveList/finalizers", [])
        live["metadata"] |= {field: value for field, value in change.items() if value is not None}
        for field in [field for field, value in change.items() if value is None]:
            live["metadata"].pop(field, None)
        kept = [entry for entry in live["metadata"].get("finalizers") or [] if entry not in removed]
        live["metadata"].pop("finalizers", None)
        if kept:
            live["metadata"]["finalizers"] = kept
        return self._answer(self._settle(resource, live))

    async def delete(
        self, resource: Resource, name: str, namespace: str | None = None, options: DeleteOptions = DEFAULT_DELETE
    ) -> None:
        self._note("delete", resource, name)
        live = deepcopy(self._require(resource, name, namespace))
        if options.uid not in (None, uid_of(live)):
            raise ConflictError(409, "another uid")
        metadata = live["metadata"]
        finalizer = {Propagation.FOREGROUND: "foregroundDeletion", Propagation.ORPHAN: "orphan"}
        if options.propagation in finalizer:
            metadata.setdefault("finalizers", []).append(finalizer[options.propagation])
        metadata |= {"deletionTimestamp": DELETED, "deletionGracePeriodSeconds": 0}
        self._answer(self._settle(resource, live))

    async def delete_collection(
        self, resource: Resource, selection: Selection = EVERYTHING, options: DeleteOptions = DEFAULT_DELETE
    ) -> None:
        for obj in (await self.list(resource, selection)).items:
            await self.delete(resource, obj["metadata"]["name"], selection.namespace, options)

    def _note(self, verb: str, resource: Resource, name: str) -> None:
        if resource != EVENTS:
            self.requests.append((verb, resource.plural, name))

    def _answer(self, obj: Object) -> Object:
        if self._answers_left is not None:
            self._answers_left -= 1
            if self._answers_left < 0:
                raise TransportError("connection lost")
        return obj

    def _settle(self, resource: Resource, obj: Object) -> Object:
        """Store the object, or remove it when its deletion has nothing left to wait for."""
        if obj["metadata"].get("deletionTimestamp") and not obj["metadata"].get("finalizers"):
            del self._objects[resource.plural, key_of(obj)]
            self._publish(resource, lambda informer: informer.remove(obj))
            return obj
        return self.put(resource, obj)

    def _publish(self, resource: Resource, change: Callable[[Informer], None]) -> None:
        informer = self._informers.get(resource.plural)
        if informer is not None:
            self._pending.append(lambda: change(informer))

    def _require(self, resource: Resource, name: str, namespace: str | None) -> Object:
        found = self._objects.get((resource.plural, ObjectKey(namespace or "", name)))
        if found is None:
            raise NotFoundError(404, f'{resource.qualified_name} "{name}" not found')
        return found
