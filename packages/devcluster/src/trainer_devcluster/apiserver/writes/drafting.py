"""Drafting: what a write would store, before webhooks and validation have had their say."""

from __future__ import annotations

import ipaddress

from trainer.kube.merge_patch import writable_copy
from trainer.kube.objects import Object, ObjectKey, is_being_deleted, name_of, resource_version_of
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SERVICES, Resource
from trainer_devcluster.apiserver.admission import namespaces
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import WriteContext
from trainer_devcluster.apiserver.objects import metadata
from trainer_devcluster.apiserver.objects.built_in_types import empty_object
from trainer_devcluster.apiserver.storage.storage import Partition, Storage
from trainer_devcluster.apiserver.wire import answers
from trainer_devcluster.apiserver.writes.scale import scaled
from trainer_devcluster.apiserver.writes.write import Write
from trainer_kube_testing.api_semantics import field_managers, statuses
from trainer_kube_testing.api_semantics.json_values import same

NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
_RESERVED = 10
"""Addresses at the start of the network that are kept for the cluster itself."""
_COUNT = NETWORK.num_addresses - 1 - _RESERVED


class ServiceAddresses:
    """Finds addresses that no Service has.

    Each search begins after the last address that was found: a Service may have to pass webhooks before it is stored.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._next = 0

    def find(self) -> str:
        """A free address.

        Raises:
            ApiError: 500, all are taken.
        """
        services = self._storage.snapshot(Partition.of(SERVICES))
        taken = {(service.get("spec") or {}).get("clusterIP") for service in services}
        for _ in range(_COUNT):
            address = str(NETWORK[_RESERVED + self._next])
            self._next = (self._next + 1) % _COUNT
            if address not in taken:
                return address
        raise statuses.internal_error(f"failed to allocate an IP address: all of {NETWORK} are taken")


_DEFINITIONS = Partition.of(CUSTOM_RESOURCE_DEFINITIONS)
_ENVELOPE = frozenset({"apiVersion", "kind", "metadata"})
_WHOLE_OBJECT = frozenset({"binding"})
"""Subresources whose handlers change specification and status together."""
_STATUS_MAY_CHANGE = ("labels", "annotations", "finalizers")


class Drafting:
    """Makes drafts; changes nothing that is stored, so that it can be done beside the event loop."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._addresses = ServiceAddresses(backend.storage)

    def context(self, write: Write) -> WriteContext:
        """The context of a write for strategies."""
        return WriteContext(
            subresource=write.target.subresource or None,
            dry_run=write.parameters.dry_run,
            now=self._backend.now(),
            service_ip=self._addresses.find,
            stored=lambda resource, key: self._backend.storage.get(Partition.of(resource), key),
            listed=lambda resource: self._backend.storage.snapshot(Partition.of(resource)),
            warn=write.warnings.add,
            gates=self._backend.feature_gates,
        )

    def new(self, write: Write, obj: Object, context: WriteContext) -> Object:
        """A new object with its defaults, what the server adds, and its managers.

        Raises:
            ApiError: as `require_home`.
        """
        obj = self._initialized(write, obj, context)
        obj["metadata"].pop("managedFields", None)
        self._track_managers(write, None, obj, context)
        return obj

    def applied(self, write: Write, applied: Object, context: WriteContext) -> Object:
        """A new object from an applied configuration.

        Raises:
            ApiError: as `merged` and `require_home`.
        """
        return self._initialized(write, self.merged(write, None, applied), context, keep_status=True)

    def mutated_new(self, write: Write, obj: Object, mutated: Object, context: WriteContext) -> Object:
        """A new object as webhooks have left it; its managers stay those of the draft.

        Raises:
            ApiError: as `require_home`.
        """
        return _with_managers(self._initialized(write, mutated, context), obj)

    def _initialized(self, write: Write, obj: Object, context: WriteContext, *, keep_status: bool = False) -> Object:
        """A new object with its server-owned metadata and its defaults."""
        definition, namespace = write.target.definition, write.target.namespace
        self.require_home(write, obj)
        kept = metadata.initialize(
            obj["metadata"], namespace=namespace, now=context.now, generation=definition.generation
        )
        obj = {**obj, "metadata": kept}
        if definition.status_subresource and not keep_status:
            obj.pop("status", None)
        definition.strategy.default(obj, context)
        return obj

    def require_home(self, write: Write, obj: Object) -> None:
        """Refuse new objects in namespaces and of definitions that are going or gone.

        Raises:
            ApiError: 403, 404 or 405, there is no place for the object.
        """
        definition, namespace = write.target.definition, write.target.namespace
        if definition.is_custom:
            self._require_lasting(definition.resource)
        if namespace is not None:
            namespaces.require_active(self._backend.storage, definition.resource, name_of(obj), namespace)

    def _require_lasting(self, resource: Resource) -> None:
        """Refuse new objects of a definition that is going, or its clean-up would never come to an end."""
        crd = self._backend.storage.get(_DEFINITIONS, ObjectKey("", f"{resource.plural}.{resource.group}"))
        if crd is not None and is_being_deleted(crd):
            raise answers.method_not_allowed("create not allowed while custom resource definition is terminating")
        if crd is None and self._backend.registry.find(resource.group, resource.version, resource.plural) is None:
            raise statuses.no_such_resource()

    def changed(self, write: Write, new: Object, live: Object, context: WriteContext, *, applied: bool) -> Object:
        """A changed object with its defaults, the fields that the endpoint does not change, and its managers."""
        definition = write.target.definition
        definition.strategy.default(new, context)
        given = new["metadata"].get("managedFields")
        new = _limited(write, new, live)
        if given is not None:
            new["metadata"]["managedFields"] = given
        if not applied:
            self._track_managers(write, live, new, context)
        new["metadata"]["resourceVersion"] = resource_version_of(live)
        return new

    def mutated_change(self, write: Write, new: Object, mutated: Object, live: Object) -> Object:
        """A changed object as webhooks have left it; its managers stay those of the draft."""
        if write.target.subresource == "scale":
            paths = write.target.definition.scale
            return scaled(writable_copy(new), mutated, paths) if paths is not None else new
        mutated = _with_managers(_limited(write, mutated, live), new)
        mutated["metadata"]["resourceVersion"] = resource_version_of(live)
        return mutated

    def _track_managers(self, write: Write, live: Object | None, new: Object, context: WriteContext) -> None:
        """Note in the new object, in place, that the request's field manager owns what is different."""
        entries = field_managers.update(
            live,
            new,
            manager=write.parameters.field_manager,
            schema=write.target.definition.typing,
            subresource=context.subresource,
            now=None if context.subresource == "scale" else context.now,
            empty=empty_object(new),
        )
        new["metadata"].pop("managedFields", None)
        if entries:
            new["metadata"]["managedFields"] = entries

    def merged(self, write: Write, live: Object | None, applied: Object) -> Object:
        """The stored object, if there is one, with an applied configuration in it, and its managers.

        Raises:
            ApiError: 409, other managers own some of the fields; 400 or 500, the configuration is malformed.
        """
        definition, subresource = write.target.definition, write.target.subresource or None
        keeps_status = definition.status_subresource and subresource is None
        merged = field_managers.apply(
            live,
            applied,
            manager=write.parameters.field_manager,
            force=bool(write.parameters.force),
            schema=definition.typing,
            subresource=subresource,
            now=self._backend.now(),
            empty=empty_object(applied),
            reset_fields=("status",) if keeps_status else None,
        )
        return write.accept(writable_copy(merged))


def _limited(write: Write, new: Object, live: Object) -> Object:
    """A changed object without changes that the endpoint does not make or that are the server's."""
    new = isolated(write.target.definition, new, live, write.target.subresource)
    return {**new, "metadata": metadata.carry_over(new["metadata"], live["metadata"])}


def _with_managers(obj: Object, source: Object) -> Object:
    """An object, changed in place to have the managers of another."""
    obj["metadata"].pop("managedFields", None)
    managers = source["metadata"].get("managedFields")
    if managers:
        obj["metadata"]["managedFields"] = managers
    return obj


def isolated(definition: ResourceDefinition, new: Object, live: Object, subresource: str) -> Object:
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
        whole = {**live, "metadata": kept}
        whole.pop("status", None)
        return whole | ({"status": new["status"]} if "status" in new else {})
    if definition.status_subresource:
        whole = {name: value for name, value in new.items() if name != "status"}
        return whole | ({"status": live["status"]} if "status" in live else {})
    return new


def differs_in_intent(definition: ResourceDefinition, new: Object, live: Object) -> bool:
    """Whether anything but metadata, and status where that is a matter of its own, is different."""
    ignored = _ENVELOPE | ({"status"} if definition.status_subresource else set())
    names = (new.keys() | live.keys()) - ignored
    return not all(same(new.get(name), live.get(name)) for name in names)


def unchanged(new: Object, live: Object) -> bool:
    """Whether nothing changes but times of field managers."""
    return same(new, live) or same(_without_times(new), _without_times(live))


def _without_times(obj: Object) -> Object:
    managers = [{**entry, "time": ""} for entry in obj["metadata"].get("managedFields") or []]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": managers}}
