"""What the endpoints of an API server do to the objects in its storage.

Built: optimistic locking, generateName, generations, the status, scale and binding subresources, finalizers and the
policies of deletion, apply with field ownership per manager, all patch types, streaming lists. Left out, since it
belongs to single kinds or to controllers: validation against schemas, defaults, admission, garbage collection, the
deletion of namespaces, and that pods stay until a kubelet has ended them.
"""

from __future__ import annotations

import itertools
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from trainer.kube.client import DeleteOptions, EventType, PatchType, Propagation, WatchEvent, WatchOptions
from trainer.kube.clock import Clock, timestamp
from trainer.kube.objects import Object, ObjectKey, key_of, metadata_of, uid_of
from trainer.kube.testing import statuses
from trainer.kube.testing.apply import Ownership, apply_fields
from trainer.kube.testing.paging import Pages, parse_version
from trainer.kube.testing.patches import json_patch, merge, strategic_merge
from trainer.kube.testing.scale import scale_of, scaled
from trainer.kube.testing.storage import Storage, Stored
from trainer.kube.testing.watches import StreamingLists, WatchStart, bookmark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trainer.kube.resource import Resource
    from trainer.kube.selection import Selection
    from trainer.kube.testing.container_logs import FakeLog

_SERVER_SET = ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp")
"""Metadata that a client cannot choose."""

_COLLECTOR_FINALIZERS = {Propagation.FOREGROUND: "foregroundDeletion", Propagation.ORPHAN: "orphan"}


class Endpoints:
    """One server: its storage, and what requests do to it.

    Objects that come in are kept, so callers hand over copies; objects that go out are copies.
    """

    def __init__(self, resources: Iterable[Resource], clock: Clock) -> None:
        self._resources: dict[tuple[str, str], Resource] = {}
        self.clock = clock
        self.storage = Storage()
        self.pages = Pages(self.storage)
        self.logs: dict[tuple[str, str, str | None], FakeLog] = {}
        """By namespace, pod and container; None stands for all other containers."""
        self._ownership: dict[str, Ownership] = {}
        self._numbers = itertools.count(1)
        for resource in resources:
            self.serve(resource)

    def serve(self, resource: Resource) -> None:
        """Serve one more resource."""
        self._resources[resource.api_version, resource.kind] = resource
        self.storage.serve(resource)

    def withdraw(self, resource: Resource) -> None:
        """Serve the resource no more, in any version."""
        name = (resource.group, resource.plural)
        self._resources = {key: each for key, each in self._resources.items() if (each.group, each.plural) != name}
        self.storage.withdraw(resource)

    def resource(self, api_version: str, kind: str) -> Resource:
        """The resource whose objects have these types.

        Raises:
            ValueError: it is not served.
        """
        try:
            return self._resources[api_version, kind]
        except KeyError:
            raise ValueError(f"no resource for {api_version} {kind}: pass it in `resources`") from None

    def resource_at(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource with this place in URLs; None if it is not served."""
        served = self._resources.values()
        return next(
            (known for known in served if (known.group, known.version, known.plural) == (group, version, plural)), None
        )

    def compact(self) -> None:
        """Forget the history and all continue tokens."""
        self.storage.compact()
        self.pages.forget()

    def add(self, obj: Object) -> Object:
        """Store or replace an object as it is."""
        resource = self.resource(obj.get("apiVersion", ""), obj.get("kind", ""))
        return self.storage.put(resource, self._prepared(obj, resource)).copy()

    def get(self, resource: Resource, key: ObjectKey, subresource: str | None) -> Object:
        """Read an object, its status (which shows all of it) or its scale."""
        _check_subresource(subresource)
        stored = self.storage.get(resource, key)
        return scale_of(stored.copy()) if subresource == "scale" else stored.copy()

    def start_watch(
        self, resource: Resource, selection: Selection, options: WatchOptions, streaming: StreamingLists
    ) -> WatchStart:
        """Decide what a watch is told first.

        Raises:
            InvalidError: it asks for initial events, which the server refuses.
            ServerTimeoutError: it asks for those of a version that is yet to come.
        """
        version, present = parse_version(options.resource_version), self.storage.version
        streams = options.send_initial_events and streaming is not StreamingLists.IGNORED
        if streams and streaming is StreamingLists.REFUSED:
            message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            raise statuses.failure(422, "Invalid", f"ListOptions is invalid: sendInitialEvents: Forbidden: {message}")
        if streams and version > present:
            raise statuses.too_large_resource_version(version, present)
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

    def create(self, resource: Resource, key: ObjectKey, obj: Object, subresource: str | None) -> Object:
        """Store a new object without a status, bind a pod, or answer a TokenRequest."""
        if subresource == "binding":
            stored = self.storage.get(resource, key)
            spec = (stored.obj.get("spec") or {}) | {"nodeName": obj["target"]["name"]}
            return self._write(resource, stored, stored.obj | {"spec": spec}, None)
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
            raise statuses.invalid(resource, "", "metadata.name: Required value: name or generateName is required")
        _check_types(resource, obj)
        if self.storage.find(resource, key) is not None:
            raise statuses.already_exists(resource, key.name)
        kept = {name: value for name, value in metadata.items() if name not in _SERVER_SET}
        return self.storage.put(resource, self._prepared(_without_status(obj) | {"metadata": kept}, resource)).copy()

    def update(self, resource: Resource, key: ObjectKey, obj: Object, subresource: str | None) -> Object:
        """Replace an object, its status or its scale."""
        _check_subresource(subresource)
        stored = self.storage.get(resource, key)
        if subresource == "scale":
            return scale_of(self._write(resource, stored, scaled(resource, stored.obj, obj), None))
        if not metadata_of(obj).get("resourceVersion") and _needs_version(resource):
            problem = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
            raise statuses.invalid(resource, key.name, problem)
        _check_types(resource, obj)
        return self._write(resource, stored, obj, subresource)

    def patch(
        self,
        resource: Resource,
        key: ObjectKey,
        body: Object | Sequence[Object],
        patch_type: PatchType,
        subresource: str | None,
    ) -> Object:
        """Change parts of an object, its status or its scale."""
        _check_subresource(subresource)
        stored = self.storage.get(resource, key)
        present = scale_of(stored.obj) if subresource == "scale" else stored.obj
        version = metadata_of(stored.obj)["resourceVersion"]
        patched = _patched(resource, present, body, patch_type)
        if "resourceVersion" not in metadata_of(patched):
            patched = patched | {"metadata": metadata_of(patched) | {"resourceVersion": version}}
        return self.update(resource, key, patched, subresource)

    def apply(
        self,
        resource: Resource,
        key: ObjectKey,
        obj: Object,
        field_manager: str,
        subresource: str | None,
        *,
        force: bool,
    ) -> Object:
        """Make the fields of `obj` those of the manager."""
        _check_subresource(subresource, but_not="scale")
        if not obj.get("apiVersion") or not obj.get("kind"):
            raise statuses.bad_request("an applied object must have apiVersion and kind")
        _check_types(resource, obj)
        stored = self.storage.get(resource, key) if subresource else self.storage.find(resource, key)
        if stored is None and uid_of(obj):
            raise statuses.conflict(resource, key.name, f"no object with the uid {uid_of(obj)} exists")
        base = self._prepared({}, resource) if stored is None else stored.copy()
        owners = {manager: set(fields) for manager, fields in self._ownership.get(uid_of(base), {}).items()}
        applied = {
            name: value
            for name, value in obj.items()
            if name in {"apiVersion", "kind", "metadata"} or (name == "status") == (subresource == "status")
        }
        conflicts = apply_fields(base, applied, (field_manager, subresource or ""), owners, force=force)
        if conflicts:
            message = f"Apply failed with {len(conflicts)} conflict(s): {', '.join(conflicts)}"
            causes = ["FieldManagerConflict"] * len(conflicts)
            raise statuses.failure(409, "Conflict", message, resource=resource, name=key.name, causes=causes)
        if stored is None:
            written = self.storage.put(resource, base).copy()
        else:
            written = self._write(resource, stored, base, subresource)
        self._ownership[uid_of(written)] = owners
        return written

    def delete(self, resource: Resource, key: ObjectKey, options: DeleteOptions) -> Object | None:
        """Delete an object, or mark it as being deleted while it has finalizers; then the answer shows it."""
        stored = self.storage.get(resource, key)
        metadata = metadata_of(stored.obj)
        if options.uid is not None and options.uid != metadata["uid"]:
            why = f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {metadata['uid']}"
            raise statuses.conflict(resource, key.name, why)
        if options.resource_version is not None and options.resource_version != metadata["resourceVersion"]:
            why = (
                f"Precondition failed: ResourceVersion in precondition: {options.resource_version}, "
                f"ResourceVersion in object meta: {metadata['resourceVersion']}"
            )
            raise statuses.conflict(resource, key.name, why)
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
        """The object with what the server decides at creation, as far as it lacks it."""
        number = next(self._numbers)
        metadata: dict[str, Any] = dict(metadata_of(obj))
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{number:05}"
        metadata.setdefault("uid", str(uuid.UUID(int=number)))
        metadata.setdefault("creationTimestamp", timestamp(self.clock.now()))
        metadata.setdefault("generation", 1)
        return {"apiVersion": resource.api_version, "kind": resource.kind} | obj | {"metadata": metadata}

    def _write(self, resource: Resource, stored: Stored, new: Object, subresource: str | None) -> Object:
        """Replace an object as far as the endpoint lets it change; nothing happens if that makes no difference."""
        old = stored.obj
        before = metadata_of(old)
        _check_preconditions(resource, before, metadata_of(new))
        if subresource == "status":
            written = _without_status(old) | _status(new)
        else:
            kept = {name: before[name] for name in _SERVER_SET if name in before}
            written = _without_status(new) | {"metadata": metadata_of(new) | kept} | _status(old)
        if written == old:
            return stored.copy()
        after = dict(metadata_of(written))
        if written.get("spec") != old.get("spec"):
            after["generation"] = before["generation"] + 1
        written = written | {"metadata": after}
        if before.get("deletionTimestamp") and not after.get("finalizers"):
            return self.storage.remove(resource, written).copy()
        return self.storage.put(resource, written).copy()


def _patched(resource: Resource, present: Object, body: Object | Sequence[Object], patch_type: PatchType) -> Object:
    patched: Object
    if patch_type is PatchType.JSON:
        if not isinstance(body, list):
            raise statuses.bad_request("a JSON patch is a list of operations")
        return json_patch(present, body)
    if not isinstance(body, dict):
        raise statuses.bad_request(f"the body of {patch_type.value} is an object")
    if patch_type is PatchType.STRATEGIC:
        if is_custom(resource):
            message = "custom resources have no strategic merge patch: use a merge patch, a JSON patch or apply"
            raise statuses.failure(415, "UnsupportedMediaType", message)
        patched = strategic_merge(present, body)
        return patched
    patched = merge(present, body)
    return patched


def is_custom(resource: Resource) -> bool:
    """Whether a definition makes the resource, by its group: only those of Kubernetes itself end in .k8s.io."""
    return "." in resource.group and (not resource.group.endswith(".k8s.io") or resource.group.endswith(".x-k8s.io"))


def _needs_version(resource: Resource) -> bool:
    """Whether an update must say which version it was made from, as for custom resources and leases."""
    return is_custom(resource) or (resource.group, resource.plural) == ("coordination.k8s.io", "leases")


def _check_types(resource: Resource, obj: Object) -> None:
    for field, expected in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if obj.get(field, expected) != expected:
            raise statuses.bad_request(f"the object's {field} is {obj[field]}, but the endpoint is for {expected}")


def _check_subresource(subresource: str | None, *, but_not: str = "") -> None:
    if subresource not in {None, "", "status", "scale"} or subresource == (but_not or "-"):
        raise NotImplementedError(f"the fake API server does not have this verb for the subresource {subresource!r}")


def _check_preconditions(resource: Resource, before: Object, after: Object) -> None:
    name = str(before.get("name"))
    if (version := after.get("resourceVersion")) and version != before["resourceVersion"]:
        why = "the object has been modified; please apply your changes to the latest version and try again"
        raise statuses.conflict(resource, name, why)
    if (uid := after.get("uid")) and uid != before["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['uid']}"
        raise statuses.conflict(resource, name, why)
    if before.get("deletionTimestamp"):
        added = set(after.get("finalizers") or []) - set(before.get("finalizers") or [])
        if added:
            problem = "no new finalizers can be added if the object is being deleted"
            found = ", ".join(sorted(added))
            raise statuses.invalid(resource, name, f"metadata.finalizers: Forbidden: {problem}, found {found}")


def _without_status(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name != "status"}


def _status(obj: Object) -> Object:
    return {"status": obj["status"]} if "status" in obj else {}
