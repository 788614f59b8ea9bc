"""An API server in memory behind the client protocol.

It keeps what reconcilers rely on: resource versions and conflicts, generations, the status subresource, finalizers,
apply with field ownership per manager, selectors, watches with history. It validates nothing, has no defaults and runs
no controllers, so nothing is garbage-collected. JSON and strategic merge patches are refused.
"""

from __future__ import annotations

import copy
import itertools
import uuid
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio.lowlevel

from trainer.kube import resource as builtin
from trainer.kube.client import (
    DEFAULT_DELETE,
    DEFAULT_LOG,
    EVERYTHING,
    DeleteOptions,
    ListOptions,
    LogOptions,
    ObjectList,
    PatchType,
    Selection,
    WatchEvent,
    WatchOptions,
)
from trainer.kube.clock import Clock, SystemClock, timestamp
from trainer.kube.objects import Object, ObjectKey, key_of, metadata_of, name_of, uid_of
from trainer.kube.pager import list_all
from trainer.kube.resource import Resource
from trainer.kube.testing.apply import Ownership, apply_fields
from trainer.kube.testing.storage import Storage, failure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence

DEFAULT_LIST = ListOptions()
DEFAULT_WATCH = WatchOptions()

_BUILT_IN = tuple(value for value in vars(builtin).values() if isinstance(value, Resource))
_SERVER_SET = ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp")
"""Metadata that updates cannot change."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request that a fake client has received."""

    verb: str
    """get, list, watch, create, update, patch, apply, delete, deletecollection or log."""
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    body: Any = None
    """Object or patch as it was sent; for deletions the `DeleteOptions`, for logs the `LogOptions`."""
    field_manager: str = ""


class FakeClient:
    """Implements `Client` on objects in memory and records every request.

    Args:
        objects: what exists at the start, status included; apiVersion and kind must belong to a known resource.
        resources: served besides those of `trainer.kube.resource`; requests for others get `NotFoundError`.
        clock: for timestamps in metadata; default: that of the machine.
    """

    def __init__(self, *objects: Object, resources: Iterable[Resource] = (), clock: Clock | None = None) -> None:
        self.requests: list[RecordedRequest] = []
        self._resources = {(known.api_version, known.kind): known for known in (*_BUILT_IN, *resources)}
        self._clock = clock or SystemClock()
        self._storage = Storage(self._resources.values())
        self._ownership: dict[str, Ownership] = {}
        self._logs: dict[tuple[str, str, str | None], bytes] = {}
        self._failures: list[tuple[Exception, str | None, Resource | None]] = []
        self._numbers = itertools.count(1)
        for obj in objects:
            self.add(obj)

    def add(self, obj: Object) -> Object:
        """Store or replace an object as somebody else would, status included, without recording a request.

        Raises:
            ValueError: no known resource has this apiVersion and kind.
        """
        resource = self._resources.get((obj.get("apiVersion", ""), obj.get("kind", "")))
        if resource is None:
            raise ValueError(f"no resource for {obj.get('apiVersion')} {obj.get('kind')}: pass it in `resources`")
        return copy.deepcopy(self._storage.put(resource, self._prepare(copy.deepcopy(obj), resource)))

    def set_log(self, pod: str, namespace: str, text: bytes, container: str | None = None) -> None:
        """What `logs` answers; requests for a container without a log of its own get that of None."""
        self._logs[namespace, pod, container] = text

    def fail_next(self, error: Exception, *, verb: str | None = None, resource: Resource | None = None) -> None:
        """Answer the next request (of this verb, for this resource) with an error instead of carrying it out."""
        self._failures.append((error, verb, resource))

    def compact(self) -> None:
        """Forget the history: watches from an earlier resource version get `GoneError`."""
        self._storage.compact()

    def end_watches(self, error: Exception | None = None) -> None:
        """End all open watches, cleanly or with an error."""
        self._storage.end_watches(error)

    def objects(self, resource: Resource) -> list[Object]:
        """All stored objects of a resource, as copies, without recording a request."""
        return copy.deepcopy(self._storage.select(resource, EVERYTHING))

    def requests_of(self, *verbs: str) -> list[RecordedRequest]:
        """The recorded requests with one of these verbs."""
        return [request for request in self.requests if request.verb in verbs]

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, subresource: str | None = None
    ) -> Object:
        """See `Client.get`."""
        key = ObjectKey(namespace or "", name)
        await self._record(RecordedRequest("get", resource, *key, subresource or ""))
        return copy.deepcopy(self._storage.get(resource, key))

    async def list_page(
        self, resource: Resource, selection: Selection = EVERYTHING, options: ListOptions = DEFAULT_LIST
    ) -> ObjectList:
        """See `Client.list_page`."""
        await self._record(RecordedRequest("list", resource, selection.namespace or "", body=options))
        objects = self._storage.select(resource, selection)
        offset = int(options.continue_token or 0)
        end = offset + options.limit if options.limit else len(objects)
        token = str(end) if end < len(objects) else ""
        return ObjectList(copy.deepcopy(objects[offset:end]), str(self._storage.version), token)

    async def list(self, resource: Resource, selection: Selection = EVERYTHING) -> ObjectList:
        """See `Client.list`."""
        return await list_all(self, resource, selection)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, selection: Selection = EVERYTHING, options: WatchOptions = DEFAULT_WATCH
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """See `Client.watch`; it lasts until `end_watches`."""
        await self._record(RecordedRequest("watch", resource, selection.namespace or "", body=options))
        async with aclosing(self._storage.events(resource, selection, options.resource_version)) as events:
            yield events

    async def create(
        self, resource: Resource, obj: Object, *, subresource: str | None = None, field_manager: str | None = None
    ) -> Object:
        """See `Client.create`; as for most kinds, a status in `obj` is dropped. The only subresource is `binding`."""
        key, sent = key_of(obj), copy.deepcopy(obj)
        await self._record(RecordedRequest("create", resource, *key, subresource or "", sent, field_manager or ""))
        if subresource == "binding":
            pod = self._storage.get(resource, key)
            bound = pod | {"spec": pod.get("spec", {}) | {"nodeName": obj["target"]["name"]}}
            return self._write(resource, pod, bound, None)
        if subresource:
            raise NotImplementedError(f"FakeClient does not create the subresource {subresource!r}")
        stored = self._prepare(copy.deepcopy(obj), resource)
        stored.pop("status", None)
        if self._storage.find(resource, key_of(stored)) is not None:
            raise failure(409, "AlreadyExists", f'{resource.qualified_name} "{name_of(stored)}" already exists')
        return copy.deepcopy(self._storage.put(resource, stored))

    async def update(self, resource: Resource, obj: Object, *, subresource: str | None = None) -> Object:
        """See `Client.update`."""
        key = key_of(obj)
        await self._record(RecordedRequest("update", resource, *key, subresource or "", copy.deepcopy(obj)))
        return self._write(resource, self._storage.get(resource, key), copy.deepcopy(obj), subresource)

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
        """See `Client.patch`."""
        key = ObjectKey(namespace or "", name)
        sent = copy.deepcopy(body)
        await self._record(RecordedRequest("patch", resource, *key, subresource or "", sent, field_manager or ""))
        if patch_type is not PatchType.MERGE:
            raise NotImplementedError(f"FakeClient does not do {patch_type.value}: use a merge patch or apply")
        present = self._storage.get(resource, key)
        return self._write(resource, present, _merge(copy.deepcopy(present), copy.deepcopy(body)), subresource)

    async def apply(
        self,
        resource: Resource,
        obj: Object,
        *,
        field_manager: str,
        force: bool = False,
        subresource: str | None = None,
    ) -> Object:
        """See `Client.apply`; lists are replaced as a whole, except conditions, which are merged by type."""
        key = key_of(obj)
        sent = copy.deepcopy(obj)
        await self._record(RecordedRequest("apply", resource, *key, subresource or "", sent, field_manager))
        present = self._storage.get(resource, key) if subresource else self._storage.find(resource, key)
        base = self._prepare({}, resource) if present is None else copy.deepcopy(present)
        ownership = self._ownership.setdefault(uid_of(base), {})
        applied = {
            name: copy.deepcopy(value)
            for name, value in obj.items()
            if name in {"apiVersion", "kind", "metadata"} or (name == "status") == (subresource == "status")
        }
        conflicts = apply_fields(base, applied, (field_manager, subresource or ""), ownership, force=force)
        if conflicts:
            fields = ", ".join(conflicts)
            raise failure(409, "Conflict", f"Apply failed with {len(conflicts)} conflict(s): {fields}")
        if present is None:
            return copy.deepcopy(self._storage.put(resource, base))
        return self._write(resource, present, base, subresource)

    async def delete(
        self, resource: Resource, name: str, namespace: str | None = None, options: DeleteOptions = DEFAULT_DELETE
    ) -> None:
        """See `Client.delete`."""
        key = ObjectKey(namespace or "", name)
        await self._record(RecordedRequest("delete", resource, *key, body=options))
        obj = self._storage.get(resource, key)
        if options.uid is not None and options.uid != uid_of(obj):
            raise failure(409, "Conflict", f"the UID in the precondition ({options.uid}) is not that of the object")
        self._delete(resource, obj)

    async def delete_collection(
        self, resource: Resource, selection: Selection = EVERYTHING, options: DeleteOptions = DEFAULT_DELETE
    ) -> None:
        """See `Client.delete_collection`."""
        await self._record(RecordedRequest("deletecollection", resource, selection.namespace or "", body=options))
        for obj in self._storage.select(resource, selection):
            self._delete(resource, obj)

    @asynccontextmanager
    async def logs(
        self, pod: str, namespace: str, options: LogOptions = DEFAULT_LOG
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """See `Client.logs`; answers with one chunk."""
        await self._record(RecordedRequest("log", builtin.PODS, namespace, pod, "log", options))
        self._storage.get(builtin.PODS, ObjectKey(namespace, pod))
        text = self._logs.get((namespace, pod, options.container)) or self._logs.get((namespace, pod, None), b"")
        async with aclosing(_one_chunk(text)) as chunks:
            yield chunks

    async def _record(self, request: RecordedRequest) -> None:
        await anyio.lowlevel.checkpoint()
        self.requests.append(request)
        for index, (error, verb, resource) in enumerate(self._failures):
            if verb in {None, request.verb} and resource in {None, request.resource}:
                del self._failures[index]
                raise error
        if not self._storage.serves(request.resource):
            raise failure(404, "NotFound", "the server could not find the requested resource")

    def _prepare(self, obj: Object, resource: Resource) -> Object:
        """Fill in what the server decides at creation."""
        number = next(self._numbers)
        metadata = obj.setdefault("metadata", {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{number:05}"
        metadata.setdefault("uid", str(uuid.UUID(int=number)))
        metadata.setdefault("creationTimestamp", timestamp(self._clock.now()))
        metadata.setdefault("generation", 1)
        return {"apiVersion": resource.api_version, "kind": resource.kind} | obj

    def _write(self, resource: Resource, old: Object, new: Object, subresource: str | None) -> Object:
        """Replace `old` by `new` as far as the endpoint lets it change; nothing happens if that makes no difference."""
        stored = metadata_of(old)
        version = metadata_of(new).get("resourceVersion")
        if version and version != stored["resourceVersion"]:
            raise failure(409, "Conflict", f'{resource.qualified_name} "{name_of(old)}" has been modified')
        if subresource == "status":
            written = _without_status(old) | {name: new[name] for name in ("status",) if name in new}
        else:
            kept = {name: stored[name] for name in _SERVER_SET if name in stored}
            written = _without_status(new) | {"metadata": metadata_of(new) | kept}
            written |= {name: old[name] for name in ("status",) if name in old}
        if written == old:
            return copy.deepcopy(old)
        written = copy.deepcopy(written)
        if written.get("spec") != old.get("spec"):
            written["metadata"]["generation"] += 1
        if stored.get("deletionTimestamp") and not metadata_of(written).get("finalizers"):
            return self._storage.remove(resource, written)
        return copy.deepcopy(self._storage.put(resource, written))

    def _delete(self, resource: Resource, obj: Object) -> None:
        if not metadata_of(obj).get("finalizers"):
            self._storage.remove(resource, obj)
        elif not metadata_of(obj).get("deletionTimestamp"):
            deleting = copy.deepcopy(obj)
            deleting["metadata"]["deletionTimestamp"] = timestamp(self._clock.now())
            self._storage.put(resource, deleting)


def _without_status(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name != "status"}


def _merge(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value)
    return merged


async def _one_chunk(text: bytes) -> AsyncGenerator[bytes, None]:
    if text:
        yield text
