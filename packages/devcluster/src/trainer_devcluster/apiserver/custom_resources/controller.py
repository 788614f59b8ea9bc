"""Custom resource definitions: from the object that a user applies to resources that the server serves.

A definition gets the names that it asks for, whether or not another has them.
Rules, reasons and texts: Kubernetes documentation, "CustomResourceDefinition", and the apiextensions controllers for
names, establishing and finalizing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio
import structlog

from trainer.kube.client import Propagation
from trainer.kube.clock import move_on_after
from trainer.kube.errors import ApiError
from trainer.kube.merge_patch import writable_copy
from trainer.kube.objects import Object, find_condition, is_being_deleted, key_of, metadata_of, name_of, uid_of
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS
from trainer_devcluster.apiserver.authentication.user import SERVER
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.custom_resources.versions import definitions_of
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.definitions.strategy import Strategy
from trainer_devcluster.apiserver.storage.storage import Partition
from trainer_devcluster.apiserver.wire.params import DeleteParameters, WriteParameters
from trainer_devcluster.apiserver.writes.deletion import Deleter
from trainer_devcluster.apiserver.writes.object_writer import ObjectWriter
from trainer_devcluster.apiserver.writes.write import Write

_NAMES = ("plural", "singular", "shortNames", "kind", "listKind", "categories")


def status_of(crd: Object, now: str) -> Object:
    """The status of a definition, which gets the names that it asks for; `now` is for conditions that change."""
    names = {field: value for field in _NAMES if (value := crd["spec"]["names"].get(field))}
    accepted, established = (
        _condition(crd, "NamesAccepted", ("NoConflicts", "no conflicts found"), now),
        _condition(crd, "Established", ("InitialNamesAccepted", "the initial names have been accepted"), now),
    )
    return {**(crd.get("status") or {}), "conditions": [accepted, established], "acceptedNames": names}


def is_established(crd: Object) -> bool:
    """Whether a definition has ever been served."""
    condition = find_condition(crd, "Established")
    return condition is not None and condition.get("status") == "True"


def terminating(crd: Object, now: str) -> Object:
    """The condition of a definition whose objects are being deleted."""
    because = ("InstanceDeletionInProgress", "CustomResource deletion is in progress")
    return _condition(crd, "Terminating", because, now)


def _condition(crd: Object, kind: str, because: tuple[str, str], now: str) -> Object:
    old = find_condition(crd, kind)
    since = old["lastTransitionTime"] if old is not None and old.get("status") == "True" else now
    return {"type": kind, "status": "True", "lastTransitionTime": since, "reason": because[0], "message": because[1]}


log = structlog.get_logger(__name__)

PARTITION = Partition.of(CUSTOM_RESOURCE_DEFINITIONS)
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
POLL = 0.2
"""Seconds between two looks at what cannot be done yet: custom resources that have to go before their definition, and
statuses that a webhook keeps from being written."""
_MANAGER = "kube-apiserver"


class CustomResources:
    """Keeps the registry in step with the stored definitions."""

    def __init__(
        self,
        backend: Backend,
        writer: ObjectWriter,
        deleter: Deleter,
        webhooks: Mapping[tuple[str, str], Strategy],
    ) -> None:
        self._backend = backend
        self._writer = writer
        self._deleter = deleter
        self._webhooks = webhooks
        self._known: dict[str, tuple[tuple[str, int], list[ResourceDefinition]]] = {}
        """By name of the definition: its uid and generation, and all its versions; those served are in the registry."""
        self._announced: dict[str, tuple[str, int]] = {}
        """By name of the definition: uid and generation for which its status says that it is served."""

    async def restore(self) -> None:
        """Serve again what the server before this one has served from the same storage; nothing is answered before."""
        for crd in self._backend.storage.snapshot(PARTITION):
            if is_established(crd):
                await self._serve(crd, (uid_of(crd), metadata_of(crd).get("generation", 0)))

    async def run(self) -> None:
        """Register, establish and clean up until cancelled."""
        storage = self._backend.storage
        while True:
            changed = storage.changed(PARTITION)
            stored = storage.snapshot(PARTITION)
            for name in self._known.keys() - {name_of(crd) for crd in stored}:
                self._unregister(name)
            unfinished = False
            for crd in stored:
                if is_being_deleted(crd):
                    unfinished |= not await self._announce_end(crd)
                    unfinished |= not await self._clean_up(crd)
                else:
                    unfinished |= not await self._establish(crd)
            async with move_on_after(self._backend.clock, POLL if unfinished else None):
                await changed.wait()

    async def _establish(self, crd: Object) -> bool:
        """Serve a definition and say so; whether that is done."""
        name = name_of(crd)
        version = (uid_of(crd), metadata_of(crd).get("generation", 0))
        if self._announced.get(name) == version:
            return True
        status = status_of(crd, self._backend.now())
        if self._known.get(name, (None, []))[0] != version:
            await self._serve({**crd, "status": status}, version)
        done = await self._write_status(crd, status)
        if done:
            self._announced[name] = version
        return done

    async def _serve(self, crd: Object, version: tuple[str, int]) -> None:
        since = self._backend.storage.revision
        definitions = await anyio.to_thread.run_sync(definitions_of, crd, self._webhooks, since)
        served = {entry["name"] for entry in crd["spec"]["versions"] if entry.get("served")}
        self._unregister(name_of(crd))
        for definition in definitions:
            if definition.resource.version in served:
                self._backend.registry.add(definition)
        self._known[name_of(crd)] = version, definitions
        log.info("serving custom resource", name=name_of(crd), versions=sorted(served))

    def _unregister(self, name: str) -> None:
        self._announced.pop(name, None)
        _, definitions = self._known.pop(name, (None, []))
        for definition in definitions:
            self._backend.registry.remove(definition)

    async def _write_status(self, crd: Object, status: Object) -> bool:
        def change(live: Object) -> Object:
            obj: Object = writable_copy(live)
            stored = (obj.get("status") or {}).get("storedVersions")
            obj["status"] = {**writable_copy(status), "storedVersions": stored or status.get("storedVersions") or []}
            if is_established(obj):
                finalizers = obj["metadata"].setdefault("finalizers", [])
                if CLEANUP_FINALIZER not in finalizers:
                    finalizers.append(CLEANUP_FINALIZER)
            return obj

        return await self._update(crd, "status", change)

    async def _announce_end(self, crd: Object) -> bool:
        if find_condition(crd, "Terminating") is not None:
            return True
        condition = terminating(crd, self._backend.now())

        def change(live: Object) -> Object:
            obj: Object = writable_copy(live)
            obj.setdefault("status", {}).setdefault("conditions", []).append(condition)
            return obj

        return await self._update(crd, "status", change)

    async def _clean_up(self, crd: Object) -> bool:
        """Delete what is left of the custom resources; whether all of them are gone."""
        if CLEANUP_FINALIZER not in (metadata_of(crd).get("finalizers") or []):
            return True
        if name_of(crd) not in self._known:
            # It was on its way out already when the server started.
            await self._serve(crd, (uid_of(crd), metadata_of(crd).get("generation", 0)))
        _, definitions = self._known[name_of(crd)]
        remaining = False
        for definition in definitions[:1]:
            for obj in self._backend.storage.snapshot(Partition.of(definition.resource)):
                remaining |= not self._remove(definition, obj)
        if remaining:
            return False
        self._unregister(name_of(crd))

        def change(live: Object) -> Object:
            obj: Object = writable_copy(live)
            obj["metadata"]["finalizers"].remove(CLEANUP_FINALIZER)
            return obj

        return await self._update(crd, "", change)

    def _remove(self, definition: ResourceDefinition, obj: Object) -> bool:
        key = key_of(obj)
        if not is_being_deleted(obj):
            namespace = key.namespace if definition.resource.namespaced else None
            target = Target(definition, "delete", namespace, key.name)
            self._deleter.delete(target, DeleteParameters(propagation=Propagation.BACKGROUND))
        return self._backend.storage.get(Partition.of(definition.resource), key) is None

    async def _update(self, crd: Object, subresource: str, change: Callable[[Object], Object]) -> bool:
        """Write a definition; whether that has worked."""
        resource = CUSTOM_RESOURCE_DEFINITIONS
        definition = self._backend.registry.find(resource.group, resource.version, resource.plural)
        if definition is None:
            return True
        target = Target(definition, "update", None, name_of(crd), subresource)
        try:
            await self._writer.update(Write(target, WriteParameters(_MANAGER), SERVER), change)
        except ApiError as error:
            log.warning("cannot update custom resource definition", name=name_of(crd), error=error.message)
            return error.code == 404
        return True
