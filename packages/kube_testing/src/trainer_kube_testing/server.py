"""The server behind `FakeClient`: what requests do to the objects in its storage.

Built: optimistic locking, generateName, generations, the status, binding and token subresources, finalizers and the
policies of deletion, field managers, all patch types, streaming lists, fields behind gates. Left out, since it belongs
to single kinds or to controllers: validation against schemas, defaults, admission, scales, garbage collection, the
deletion of namespaces, and that pods stay until a kubelet has ended them.

Field managers and strategic merge patches see every object as `_ANY_KIND`.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Final

from trainer.kube.client import DeleteOptions, EventType, PatchType, Propagation, WatchEvent, WatchOptions
from trainer.kube.clock import Clock, timestamp
from trainer.kube.errors import ApiError
from trainer.kube.field_errors import FieldError, forbidden, invalid, required
from trainer.kube.objects import Object, ObjectKey, key_of, metadata_of, resource_version_of, uid_of
from trainer.kube.resource import Resource
from trainer.kube.rest.http import APPLY_CONTENT_TYPE
from trainer.kube.selection import Selection
from trainer_kube_testing.api_semantics import field_managers, statuses
from trainer_kube_testing.api_semantics.json_patch import json_patch
from trainer_kube_testing.api_semantics.patches import PatchError, merge_patch, strategic_merge_patch
from trainer_kube_testing.api_semantics.value_types import Typing
from trainer_kube_testing.container_logs import FakeLog
from trainer_kube_testing.field_gates import FieldGates
from trainer_kube_testing.storage import FakeStorage, Stored, parse_version
from trainer_kube_testing.watches import StreamingLists, WatchStart, bookmark

UNKNOWN = "unknown"
"""The field manager of requests that name none."""

LISTS: Final = {
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "finalizers": "",
    "initContainers": "name",
    "ownerReferences": "uid",
    "replicatedJobs": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Lists that merge item by item: the key of the items by the name of the list; "" for sets."""


class _AnyKind(Typing):
    """The type of every object of a fake, which knows no schemas: any fields, and the lists of `LISTS`."""

    def declares(self, name: str) -> bool:  # noqa: ARG002
        """All fields count as named ones."""
        return True

    def field(self, name: str) -> Typing:
        """A known list, or anything."""
        return _KnownList(LISTS[name]) if name in LISTS else _ANY_KIND

    @property
    def item(self) -> Typing:
        """Anything."""
        return _ANY_KIND


class _KnownList(_AnyKind):
    """A list that merges item by item; a set without a key."""

    def __init__(self, key: str) -> None:
        self._key = key

    @property
    def merge_key(self) -> str | None:
        """The key."""
        return self._key or None

    @property
    def patch_strategies(self) -> frozenset[str]:
        """Merge."""
        return frozenset({"merge"})


_ANY_KIND: Final = _AnyKind()

_SERVER_SET = ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp")
"""Metadata that a client cannot choose."""

_COLLECTOR_FINALIZERS = {Propagation.FOREGROUND: "foregroundDeletion", Propagation.ORPHAN: "orphan"}


class FakeServer:
    """One server: its storage, and what requests do to it.

    Objects that come in are kept, so callers hand over copies; objects that go out are copies.
    """

    def __init__(self, resources: Iterable[Resource], clock: Clock) -> None:
        self.resources: dict[tuple[str, str], Resource] = {}
        """What it serves, by apiVersion and kind."""
        self.clock = clock
        self.storage = FakeStorage()
        self.logs: dict[tuple[str, str, str | None], FakeLog] = {}
        """By namespace, pod and container; None stands for all other containers."""
        self.gates = FieldGates()
        self._numbers = itertools.count(1)
        for resource in resources:
            self.serve(resource)

    def serve(self, resource: Resource) -> None:
        """Serve one more resource."""
        self.resources[resource.api_version, resource.kind] = resource
        self.storage.serve(resource)

    def withdraw(self, resource: Resource) -> None:
        """Serve the resource no more, in any version."""
        name = (resource.group, resource.plural)
        self.resources = {key: each for key, each in self.resources.items() if (each.group, each.plural) != name}
        self.storage.withdraw(resource)

    def add(self, obj: Object) -> Object:
        """Store or replace an object as it is."""
        api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
        resource = self.resources.get((api_version, kind))
        if resource is None:
            raise ValueError(f"no resource for {api_version} {kind}: pass it in `resources`")
        return self.storage.put(resource, self._prepared(obj, resource)).copy()

    def get(self, resource: Resource, key: ObjectKey, subresource: str | None) -> Object:
        """Read an object, or its status, which shows all of it."""
        _check_subresource(subresource)
        return self.storage.get(resource, key).copy()

    def start_watch(
        self, resource: Resource, selection: Selection, options: WatchOptions, streaming: StreamingLists
    ) -> WatchStart:
        """Decide what a watch sends first.

        Raises:
            InvalidError: it asks for initial events, which the server refuses.
            ServerTimeoutError: it asks for those of a version that is yet to come.
        """
        version, present = parse_version(options.resource_version), self.storage.version
        streams = options.send_initial_events and streaming is not StreamingLists.IGNORED
        if streams and streaming is StreamingLists.REFUSED:
            message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            raise statuses.invalid("ListOptions", "meta.k8s.io", "", [forbidden("sendInitialEvents", message)])
        if streams and version > present:
            raise statuses.resource_version_too_large(version, present)
        if streams or not version:
            stored = self.storage.select(resource, selection)
            initial = [
                WatchEvent(EventType.ADDED, obj.encoded(metadata_only=selection.metadata_only)) for obj in stored
            ]
            if streams:
                initial.append(bookmark(resource, present, ends_initial_events=True))
            return WatchStart(len(self.storage.collection(resource).history), initial)
        if version < self.storage.oldest:
            error = statuses.expired(f"too old resource version: {version} ({self.storage.oldest})")
            return WatchStart(error=error)
        return WatchStart(self.storage.collection(resource).position(version))

    def create(
        self, resource: Resource, key: ObjectKey, obj: Object, subresource: str | None, manager: str, *, dry_run: bool
    ) -> Object:
        """Store a new object without a status, unless it is a dry run; bind a pod, or answer a TokenRequest."""
        if subresource == "binding":
            stored = self.storage.get(resource, key)
            spec = (stored.obj.get("spec") or {}) | {"nodeName": obj["target"]["name"]}
            return self._write(resource, stored, stored.obj | {"spec": spec}, None, manager)
        if subresource == "token":
            self.storage.get(resource, key)
            expiry = self.clock.now() + timedelta(seconds=(obj.get("spec") or {}).get("expirationSeconds", 3600))
            issued = {"token": f"token-of-{key.namespace}-{key.name}", "expirationTimestamp": timestamp(expiry)}
            return obj | {"status": issued}
        if subresource:
            raise NotImplementedError(f"the fake API server does not create the subresource {subresource!r}")
        metadata = metadata_of(obj)
        if metadata.get("resourceVersion"):
            raise statuses.bad_request("resourceVersion should not be set on objects to be created")
        if not metadata.get("name") and not metadata.get("generateName"):
            raise _invalid(resource, "", required("metadata.name", "name or generateName is required"))
        _check_types(resource, obj)
        if self.storage.find(resource, key) is not None:
            raise statuses.already_exists(resource, key.name)
        self.gates.admit(resource, key.name, obj)
        kept = {name: value for name, value in metadata.items() if name not in _SERVER_SET}
        new = self._prepared(_without_status(obj) | {"metadata": kept}, resource)
        if dry_run:
            return new
        return self.storage.put(resource, self._managed(None, new, manager, None)).copy()

    def update(self, resource: Resource, key: ObjectKey, obj: Object, subresource: str | None, manager: str) -> Object:
        """Replace an object or its status."""
        _check_subresource(subresource)
        stored = self.storage.get(resource, key)
        if not metadata_of(obj).get("resourceVersion") and _needs_version(resource):
            problem = invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise _invalid(resource, key.name, problem)
        _check_types(resource, obj)
        return self._write(resource, stored, obj, subresource, manager)

    def patch(
        self,
        resource: Resource,
        key: ObjectKey,
        body: Object | Sequence[Object],
        patch_type: PatchType,
        subresource: str | None,
        *,
        manager: str,
    ) -> Object:
        """Change parts of an object or its status."""
        _check_subresource(subresource)
        stored = self.storage.get(resource, key)
        try:
            patched = _patched(resource, stored.obj, body, patch_type)
        except PatchError as error:
            raise error.answer from error
        version = metadata_of(stored.obj)["resourceVersion"]
        patched["metadata"] = {"resourceVersion": version} | metadata_of(patched)
        return self.update(resource, key, patched, subresource, manager)

    def apply(
        self, resource: Resource, key: ObjectKey, obj: Object, manager: str, subresource: str | None, *, force: bool
    ) -> Object:
        """Make the fields of `obj` those of the manager."""
        _check_subresource(subresource)
        if not obj.get("apiVersion") or not obj.get("kind"):
            raise statuses.bad_request("an applied object must have apiVersion and kind")
        _check_types(resource, obj)
        stored = self.storage.get(resource, key) if subresource else self.storage.find(resource, key)
        if stored is None and uid_of(obj):
            raise statuses.conflict(resource, key.name, f"no object with the uid {uid_of(obj)} exists")
        if stored is not None and resource_version_of(obj) not in {"", resource_version_of(stored.obj)}:
            raise statuses.conflict(resource, key.name)
        merged = field_managers.apply(
            None if stored is None else stored.obj,
            obj,
            manager=manager,
            force=force,
            schema=_ANY_KIND,
            subresource=subresource,
            now=self._now(),
            reset_fields=None if subresource else ("status",),
        )
        if stored is None:
            self.gates.admit(resource, key.name, merged)
            return self.storage.put(resource, self._prepared(merged, resource)).copy()
        return self._write(resource, stored, merged, subresource)

    def delete(self, resource: Resource, key: ObjectKey, options: DeleteOptions) -> Object | None:
        """Delete an object, or mark it as being deleted while it has finalizers; then the answer shows it."""
        stored = self.storage.get(resource, key)
        metadata = metadata_of(stored.obj)
        _require(resource, key.name, "UID", options.uid, metadata["uid"])
        _require(resource, key.name, "ResourceVersion", options.resource_version, metadata["resourceVersion"])
        finalizers = list(metadata.get("finalizers") or [])
        if options.propagation is not None:
            finalizers = [name for name in finalizers if name not in _COLLECTOR_FINALIZERS.values()]
            if options.propagation in _COLLECTOR_FINALIZERS:
                finalizers.append(_COLLECTOR_FINALIZERS[options.propagation])
        if not finalizers:
            self.storage.remove(resource, stored.obj)
            return None
        changed = metadata | {"finalizers": finalizers}
        if "deletionTimestamp" not in metadata:
            changed |= self._deletion(resource, stored.obj, options)
            changed["generation"] = metadata["generation"] + 1
        if changed == metadata:
            return stored.copy()
        return self.storage.put(resource, stored.obj | {"metadata": changed}).copy()

    def delete_collection(self, resource: Resource, selection: Selection, options: DeleteOptions) -> None:
        """Delete all selected objects."""
        for stored in self.storage.select(resource, selection):
            self.delete(resource, key_of(stored.obj), options)

    def _deletion(self, resource: Resource, obj: Object, options: DeleteOptions) -> dict[str, Any]:
        """The metadata that marks an object as being deleted; only pods are given time to end."""
        seconds = 0
        if (resource.group, resource.plural) == ("", "pods"):
            own = (obj.get("spec") or {}).get("terminationGracePeriodSeconds", 30)
            seconds = own if options.grace_period_seconds is None else options.grace_period_seconds
        moment = timestamp(self.clock.now() + timedelta(seconds=seconds))
        return {"deletionTimestamp": moment, "deletionGracePeriodSeconds": seconds}

    def _prepared(self, obj: Object, resource: Resource) -> Object:
        """The object with what the server adds at creation where it is missing."""
        number = next(self._numbers)
        metadata: dict[str, Any] = dict(metadata_of(obj))
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{number:05}"
        metadata.setdefault("uid", str(uuid.UUID(int=number)))
        metadata.setdefault("creationTimestamp", timestamp(self.clock.now()))
        metadata.setdefault("generation", 1)
        return {"apiVersion": resource.api_version, "kind": resource.kind} | obj | {"metadata": metadata}

    def _write(
        self, resource: Resource, stored: Stored, new: Object, subresource: str | None, manager: str = ""
    ) -> Object:
        """Replace the part of an object that the endpoint changes, if it differs; applies have set the managers."""
        old = stored.obj
        before = metadata_of(old)
        _check_preconditions(resource, before, metadata_of(new))
        self.gates.admit(resource, str(before["name"]), new, old)
        if subresource == "status":
            managers = {name: value for name, value in metadata_of(new).items() if name == "managedFields"}
            written = _without_status(old) | {"metadata": before | managers} | _status(new)
        else:
            kept = {name: before[name] for name in _SERVER_SET if name in before}
            written = _without_status(new) | {"metadata": metadata_of(new) | kept} | _status(old)
        if manager:
            written = self._managed(old, written, manager, subresource)
        if written == old:
            return stored.copy()
        after = dict(metadata_of(written))
        if written.get("spec") != old.get("spec"):
            after["generation"] = before["generation"] + 1
        written = written | {"metadata": after}
        if before.get("deletionTimestamp") and not after.get("finalizers"):
            return self.storage.remove(resource, written).copy()
        return self.storage.put(resource, written).copy()

    def _managed(self, old: Object | None, new: Object, manager: str, subresource: str | None) -> Object:
        """The new object with the manager as the owner of what is different in it."""
        entries = field_managers.update(
            old, new, manager=manager, schema=_ANY_KIND, subresource=subresource, now=self._now()
        )
        metadata = {name: value for name, value in metadata_of(new).items() if name != "managedFields"}
        return new | {"metadata": metadata | ({"managedFields": entries} if entries else {})}

    def _now(self) -> str:
        return timestamp(self.clock.now())


def _patched(resource: Resource, present: Object, body: Object | Sequence[Object], patch_type: PatchType) -> Object:
    if patch_type is PatchType.JSON:
        return json_patch(present, body)
    if patch_type is PatchType.MERGE:
        return merge_patch(present, body)
    if _is_custom(resource):
        raise statuses.unsupported_media_type([PatchType.JSON, PatchType.MERGE, APPLY_CONTENT_TYPE])
    return strategic_merge_patch(present, body, _ANY_KIND)


def _is_custom(resource: Resource) -> bool:
    """Whether a definition makes the resource, by its group: only those of Kubernetes itself end in .k8s.io."""
    return "." in resource.group and (not resource.group.endswith(".k8s.io") or resource.group.endswith(".x-k8s.io"))


def _needs_version(resource: Resource) -> bool:
    """Whether an update must say which version it was made from, as for custom resources and leases."""
    return _is_custom(resource) or (resource.group, resource.plural) == ("coordination.k8s.io", "leases")


def _check_types(resource: Resource, obj: Object) -> None:
    for field, expected in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if obj.get(field, expected) != expected:
            raise statuses.bad_request(f"the object's {field} is {obj[field]}, but the endpoint is for {expected}")


def _check_subresource(subresource: str | None) -> None:
    if subresource not in {None, "", "status"}:
        raise NotImplementedError(f"the fake API server does not have this verb for the subresource {subresource!r}")


def _check_preconditions(resource: Resource, before: Object, after: Object) -> None:
    name = str(before.get("name"))
    if (version := after.get("resourceVersion")) and version != before["resourceVersion"]:
        raise statuses.conflict(resource, name)
    _require(resource, name, "UID", after.get("uid") or None, before["uid"])
    if before.get("deletionTimestamp"):
        added = set(after.get("finalizers") or []) - set(before.get("finalizers") or [])
        if added:
            problem = "no new finalizers can be added if the object is being deleted, found"
            raise _invalid(resource, name, forbidden("metadata.finalizers", f"{problem} {', '.join(sorted(added))}"))


def _require(resource: Resource, name: str, what: str, wanted: str | None, present: str) -> None:
    if wanted is not None and wanted != present:
        why = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {present}"
        raise statuses.conflict(resource, name, why)


def _invalid(resource: Resource, name: str, problem: FieldError) -> ApiError:
    return statuses.invalid(resource.kind, resource.group, name, [problem])


def _without_status(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name != "status"}


def _status(obj: Object) -> Object:
    return {"status": obj["status"]} if "status" in obj else {}
