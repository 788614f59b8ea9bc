"""The write pipeline: from an accepted object to a stored one.

Default, isolate the endpoint's fields, keep field managers, prepare, validate, store. Nothing here awaits, so what was
read is still current when it is written and a patch needs no retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.devcluster.apiserver import fieldmanager, metadata, namespaces, status
from trainer.devcluster.apiserver.deletion import is_finished
from trainer.devcluster.apiserver.names import generate_name
from trainer.devcluster.apiserver.params import WriteParameters
from trainer.devcluster.apiserver.routing import Target
from trainer.devcluster.apiserver.service_ips import free_service_ip
from trainer.devcluster.apiserver.storage import KeyExistsError, Partition, writable_copy
from trainer.devcluster.apiserver.strategy import WriteContext
from trainer.devcluster.apiserver.write import Write
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import ObjectKey, is_being_deleted, name_of, resource_version_of, uid_of
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.devcluster.apiserver.backend import Backend
    from trainer.devcluster.apiserver.definitions import ResourceDefinition
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

_GENERATE_NAME_ATTEMPTS = 8
_SYSTEM_MANAGER = "kube-controller-manager"
_DEFINITIONS = Partition.of(CUSTOM_RESOURCE_DEFINITIONS)
_ENVELOPE = frozenset({"apiVersion", "kind", "metadata"})
_WHOLE_OBJECT = frozenset({"binding"})
"""Subresources whose handlers change specification and status together."""
_STATUS_MAY_CHANGE = ("labels", "annotations", "finalizers")


class Pipeline:
    """Creates and changes objects; deletion has its own module."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def create(self, write: Write, obj: Object) -> Object:
        """Store a new object that `Write.accept` has let through; returns it as stored.

        Raises:
            StatusError: 403 and 404 for the namespace, 409 for a taken name, 422 for wrong fields.
        """
        definition, context = write.target.definition, self._context(write)
        if resource_version_of(obj):
            raise status.bad_request("resourceVersion should not be set on objects to be created")
        obj = self._initialized(write, obj)
        if definition.status_subresource:
            obj.pop("status", None)
        definition.strategy.default(obj, context)
        obj["metadata"].pop("managedFields", None)
        self._track_managers(write, None, obj, context)
        return self._store_new(write, obj, context)

    def update(self, write: Write, change: Callable[[Object], Object]) -> Object:
        """Change a stored object; returns the result, or the object as it was when nothing is different.

        Args:
            write: what is written to; names the object.
            change: makes the new object from a private copy of the stored one.

        Raises:
            StatusError: 404, there is no such object; 409, it is not the one that the caller has seen; 422, wrong
                fields; whatever `change` raises.
        """
        live = self._live(write)
        new = write.accept(change(writable_copy(live)))
        self._check_preconditions(write, new, live)
        return self._replace(write, new, live, applied=False)

    def apply(self, write: Write, applied: Object) -> tuple[Object, bool]:
        """Server-side apply; returns the object and whether it is new.

        Raises:
            StatusError: 409, other managers own some of the fields; otherwise as `create` and `update`.
        """
        live = self._backend.storage.get(Partition.of(write.target.definition.resource), write.target.key)
        expected = resource_version_of(applied)
        if live is not None:
            if expected and expected != resource_version_of(live):
                raise status.conflict(write.target.definition.resource, write.target.name)
            return self._replace(write, self._merged(write, live, applied), live, applied=True), False
        if write.target.subresource:
            raise status.not_found(write.target.definition.resource, write.target.name)
        context = self._context(write)
        obj = self._initialized(write, self._merged(write, None, applied))
        write.target.definition.strategy.default(obj, context)
        return self._store_new(write, obj, context), True

    def create_internal(self, resource: Resource, obj: Object, manager: str = _SYSTEM_MANAGER) -> Object | None:
        """Store an object on the server's own account; None when it exists already."""
        definition = self._backend.registry.find(resource.group, resource.version, resource.plural)
        if definition is None:
            return None
        namespace = obj["metadata"].get("namespace")
        target = Target(definition, "create", namespace)
        key = ObjectKey(namespace or "", name_of(obj))
        if self._backend.storage.get(Partition.of(resource), key) is not None:
            return None
        write = Write(target, WriteParameters(manager))
        write.accept(obj)
        return self.create(write, obj)

    def _live(self, write: Write) -> Object:
        resource = write.target.definition.resource
        live = self._backend.storage.get(Partition.of(resource), write.target.key)
        if live is None:
            raise status.not_found(resource, write.target.name)
        return live

    def _context(self, write: Write) -> WriteContext:
        return WriteContext(
            subresource=write.target.subresource or None,
            dry_run=write.parameters.dry_run,
            now=self._backend.now(),
            service_ip=lambda: free_service_ip(self._backend.storage),
        )

    def _initialized(self, write: Write, obj: Object) -> Object:
        definition, namespace = write.target.definition, write.target.namespace
        if definition.is_custom:
            self._require_lasting(definition.resource)
        if namespace is not None:
            namespaces.require_active(self._backend.storage, definition.resource, name_of(obj), namespace)
        kept = metadata.initialize(
            obj["metadata"], namespace=namespace, now=self._backend.now(), generation=definition.generation
        )
        return {**obj, "metadata": kept}

    def _require_lasting(self, resource: Resource) -> None:
        """Refuse new objects of a definition that is going, or its clean-up would never come to an end."""
        key = ObjectKey("", f"{resource.plural}.{resource.group}")
        crd = self._backend.storage.get(_DEFINITIONS, key)
        if crd is not None and is_being_deleted(crd):
            raise status.method_not_allowed("create not allowed while custom resource definition is terminating")

    def _store_new(self, write: Write, obj: Object, context: WriteContext) -> Object:
        definition = write.target.definition
        prefix = "" if name_of(obj) else obj["metadata"].get("generateName", "")
        for attempt in range(1, _GENERATE_NAME_ATTEMPTS + 1):
            if prefix:
                obj["metadata"]["name"] = generate_name(prefix)
            definition.strategy.prepare_for_create(obj, context)
            causes = metadata.validate(obj["metadata"], definition) or definition.strategy.validate(obj, context)
            if causes:
                raise status.invalid(definition.resource.kind, definition.resource.group, name_of(obj), causes)
            try:
                return self._stored(write, obj)
            except KeyExistsError as error:
                if not prefix or attempt == _GENERATE_NAME_ATTEMPTS:
                    raise status.already_exists(definition.resource, name_of(obj)) from error
        raise AssertionError("the loop above returns or raises")

    def _stored(self, write: Write, obj: Object) -> Object:
        storage, partition = self._backend.storage, Partition.of(write.target.definition.resource)
        key = ObjectKey(write.target.namespace or "", name_of(obj))
        if write.parameters.dry_run:
            if storage.get(partition, key) is not None:
                raise KeyExistsError(key)
            return obj
        stored = storage.create(partition, key, obj)
        if partition == namespaces.PARTITION:
            for resource, first in namespaces.first_objects(stored, self._backend.ca_pem):
                self.create_internal(resource, first)
        return stored

    def _check_preconditions(self, write: Write, new: Object, live: Object) -> None:
        definition = write.target.definition
        uid, version = uid_of(new), resource_version_of(new)
        if uid and uid != uid_of(live):
            message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {uid_of(live)}"
            raise status.conflict(definition.resource, write.target.name, message)
        if version in {"", "0"}:
            if definition.is_custom:
                cause = FieldError("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")
                raise status.invalid(definition.resource.plural, definition.resource.group, write.target.name, [cause])
        elif version != resource_version_of(live):
            raise status.conflict(definition.resource, write.target.name)

    def _replace(self, write: Write, new: Object, live: Object, *, applied: bool) -> Object:
        definition, context = write.target.definition, self._context(write)
        definition.strategy.default(new, context)
        given = new["metadata"].get("managedFields")
        new = _isolated(definition, new, live, write.target.subresource)
        new["metadata"] = metadata.carry_over(new["metadata"], live["metadata"])
        if given is not None:
            new["metadata"]["managedFields"] = given
        if not applied:
            self._track_managers(write, live, new, context)
        new["metadata"]["resourceVersion"] = resource_version_of(live)
        definition.strategy.prepare_for_update(new, live, context)
        if definition.generation and _differs_in_intent(definition, new, live):
            new["metadata"]["generation"] = (live["metadata"].get("generation") or 0) + 1
        causes = metadata.validate_update(new["metadata"], live["metadata"])
        causes = causes or definition.strategy.validate_update(new, live, context)
        if causes:
            raise status.invalid(definition.resource.kind, definition.resource.group, write.target.name, causes)
        return self._store_changed(write, new, live)

    def _track_managers(self, write: Write, live: Object | None, new: Object, context: WriteContext) -> None:
        """Note in the new object, in place, that the request's field manager owns what is different."""
        entries = fieldmanager.update(
            live,
            new,
            manager=write.parameters.field_manager,
            schema=write.target.definition.typing,
            subresource=context.subresource,
            now=None if context.subresource == "scale" else context.now,
        )
        new["metadata"].pop("managedFields", None)
        if entries:
            new["metadata"]["managedFields"] = entries

    def _merged(self, write: Write, live: Object | None, applied: Object) -> Object:
        definition, subresource = write.target.definition, write.target.subresource or None
        keeps_status = definition.status_subresource and subresource is None
        try:
            merged = fieldmanager.apply(
                live,
                applied,
                manager=write.parameters.field_manager,
                force=bool(write.parameters.force),
                schema=definition.typing,
                subresource=subresource,
                now=self._backend.now(),
                reset_fields=("status",) if keeps_status else None,
            )
        except fieldmanager.ApplyConflict as error:
            raise status.apply_conflict(error.causes, error.message) from error
        except fieldmanager.ApplyTypeError as error:
            raise status.StatusError(500, "", str(error)) from error
        return write.accept(writable_copy(merged))

    def _store_changed(self, write: Write, new: Object, live: Object) -> Object:
        storage, partition = self._backend.storage, Partition.of(write.target.definition.resource)
        if _same(new, live):
            return live
        if write.parameters.dry_run:
            return new
        if is_finished(write.target.definition, new):
            storage.delete(partition, write.target.key, expected=resource_version_of(live))
            return new
        return storage.update(partition, write.target.key, new, expected=resource_version_of(live))


def _isolated(definition: ResourceDefinition, new: Object, live: Object, subresource: str) -> Object:
    """The new object with only those changes that the endpoint may make."""
    if subresource in _WHOLE_OBJECT:
        return new
    if subresource == "status":
        kept = dict(live["metadata"])
        if not definition.is_custom:
            for name in _STATUS_MAY_CHANGE:
                kept.pop(name, None)
                if name in new["metadata"]:
                    kept[name] = new["metadata"][name]
        isolated = {**live, "metadata": kept}
        isolated.pop("status", None)
        return isolated | ({"status": new["status"]} if "status" in new else {})
    if definition.status_subresource:
        isolated = {name: value for name, value in new.items() if name != "status"}
        return isolated | ({"status": live["status"]} if "status" in live else {})
    return new


def _differs_in_intent(definition: ResourceDefinition, new: Object, live: Object) -> bool:
    ignored = _ENVELOPE | ({"status"} if definition.status_subresource else set())
    names = (new.keys() | live.keys()) - ignored
    return any(new.get(name) != live.get(name) for name in names)


def _same(new: Object, live: Object) -> bool:
    """Whether nothing changes but times of field managers."""
    return new == live or _without_times(new) == _without_times(live)


def _without_times(obj: Object) -> Object:
    managers = [{**entry, "time": ""} for entry in obj["metadata"].get("managedFields") or []]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": managers}}
