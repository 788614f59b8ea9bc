"""Custom resource definitions: from the object that a user applies to resources that the server serves.

Rules: Kubernetes documentation, "CustomResourceDefinition", and the apiextensions controllers for names, establishing
and finalizing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import structlog

from trainer.devcluster.apiserver.authentication.user import SERVER
from trainer.devcluster.apiserver.definitions import Column, ResourceDefinition, ScalePaths
from trainer.devcluster.apiserver.params import DeleteParameters, WriteParameters
from trainer.devcluster.apiserver.routing import Target
from trainer.devcluster.apiserver.status import StatusError
from trainer.devcluster.apiserver.storage import Partition, writable_copy
from trainer.devcluster.apiserver.strategy import SchemaStrategy, Strategy, WebhookStrategy
from trainer.devcluster.apiserver.structural import StructuralSchema
from trainer.devcluster.apiserver.write import Write
from trainer.kube.client import Propagation
from trainer.kube.clock import move_on_after
from trainer.kube.objects import find_condition, is_being_deleted, key_of, metadata_of, name_of, uid_of
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer.devcluster.apiserver.backend import Backend
    from trainer.devcluster.apiserver.deletion import Deleter
    from trainer.devcluster.apiserver.pipeline import Pipeline
    from trainer.kube.objects import Object

log = structlog.get_logger(__name__)

PARTITION = Partition.of(CUSTOM_RESOURCE_DEFINITIONS)
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
POLL = 0.2
"""Seconds between two looks at what cannot be done yet: custom resources that have to go before their definition, and
statuses that a webhook keeps from being written."""
_MANAGER = "kube-apiserver"
_AGE = Column("Age", "date", ".metadata.creationTimestamp")


def definitions_of(crd: Object, webhooks: Mapping[tuple[str, str], Strategy]) -> list[ResourceDefinition]:
    """The served versions of a definition.

    Args:
        crd: an apiextensions.k8s.io/v1 CustomResourceDefinition.
        webhooks: strategies, by group and kind, that stand in for admission webhooks.
    """
    spec = crd["spec"]
    return [_definition(spec, version, webhooks) for version in spec["versions"] if version.get("served")]


def _definition(spec: Object, version: Object, webhooks: Mapping[tuple[str, str], Strategy]) -> ResourceDefinition:
    names, group = spec["names"], spec["group"]
    schema = StructuralSchema.from_crd((version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"})
    webhook = webhooks.get((group, names["kind"]))
    strategy = SchemaStrategy(schema) if webhook is None else WebhookStrategy(schema, webhook)
    subresources = version.get("subresources") or {}
    return ResourceDefinition(
        resource=Resource(group, version["name"], names["plural"], names["kind"], spec["scope"] == "Namespaced"),
        strategy=strategy,
        singular=names.get("singular") or names["kind"].lower(),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        status_subresource="status" in subresources,
        scale=_scale(subresources.get("scale")),
        columns=tuple(_column(entry) for entry in version.get("additionalPrinterColumns") or ()) or (_AGE,),
        schema=schema,
        selectable_fields=tuple(entry["jsonPath"].lstrip(".") for entry in version.get("selectableFields") or ()),
        list_kind=names.get("listKind") or "",
    )


def _scale(entry: Object | None) -> ScalePaths | None:
    if entry is None:
        return None
    return ScalePaths(entry["specReplicasPath"], entry["statusReplicasPath"], entry.get("labelSelectorPath") or "")


def _column(entry: Object) -> Column:
    return Column(
        entry["name"],
        entry["type"],
        entry["jsonPath"],
        entry.get("format") or "",
        entry.get("description") or "",
        int(entry.get("priority") or 0),
    )


class CustomResources:
    """Keeps the registry in step with the stored definitions."""

    def __init__(
        self, backend: Backend, pipeline: Pipeline, deleter: Deleter, webhooks: Mapping[tuple[str, str], Strategy]
    ) -> None:
        self._backend = backend
        self._pipeline = pipeline
        self._deleter = deleter
        self._webhooks = webhooks
        self._served: dict[str, tuple[tuple[str, int], list[ResourceDefinition]]] = {}
        """By name of the definition: its uid and generation, and what is in the registry for it."""
        self._announced: dict[str, tuple[str, int]] = {}
        """By name of the definition: uid and generation for which its status says that it is served."""

    async def run(self) -> None:
        """Register, establish and clean up until cancelled."""
        storage = self._backend.storage
        while True:
            changed = storage.changed(PARTITION)
            stored = storage.snapshot(PARTITION)
            for name in self._served.keys() - {name_of(crd) for crd in stored}:
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
        conflict = None
        if self._served.get(name, (None, []))[0] != version:
            conflict = await self._serve(crd, version)
        done = await self._write_status(crd, conflict)
        if done and conflict is None:
            self._announced[name] = version
        return done

    async def _serve(self, crd: Object, version: tuple[str, int]) -> tuple[str, str] | None:
        """Register a definition; or reason and message why that cannot be done."""
        conflict = self._conflict(crd)
        if conflict is not None:
            return conflict
        try:
            definitions = await anyio.to_thread.run_sync(definitions_of, crd, self._webhooks)
        except ValueError as error:
            return "SchemaViolation", f"the schema cannot be served: {error}"
        self._register(name_of(crd), version, definitions)
        return None

    def _register(self, name: str, version: tuple[str, int], definitions: list[ResourceDefinition]) -> None:
        self._unregister(name)
        for definition in definitions:
            self._backend.registry.add(definition)
        self._served[name] = version, definitions
        log.info("serving custom resource", name=name, versions=[entry.resource.version for entry in definitions])

    def _unregister(self, name: str) -> None:
        self._announced.pop(name, None)
        _, definitions = self._served.pop(name, (None, []))
        for definition in definitions:
            self._backend.registry.remove(definition)

    def _conflict(self, crd: Object) -> tuple[str, str] | None:
        """Reason and message when another resource of the group has one of the names."""
        names, group = crd["spec"]["names"], crd["spec"]["group"]
        wanted = {names["plural"], names.get("singular") or names["kind"].lower(), *(names.get("shortNames") or ())}
        own = {id(definition) for definition in self._served.get(name_of(crd), (None, []))[1]}
        for definition in self._backend.registry.definitions:
            resource = definition.resource
            if resource.group != group or id(definition) in own:
                continue
            taken = wanted & {resource.plural, definition.singular, *definition.short_names}
            if taken:
                return "NamesConflict", f"{', '.join(sorted(taken))} is already in use"
            if resource.kind == names["kind"]:
                return "KindConflict", f"{resource.kind!r} is already in use"
        return None

    async def _write_status(self, crd: Object, conflict: tuple[str, str] | None) -> bool:
        now = self._backend.now()

        def change(live: Object) -> Object:
            obj: Object = writable_copy(live)
            obj["status"] = _status(obj, conflict, now)
            if conflict is None:
                finalizers = obj["metadata"].setdefault("finalizers", [])
                if CLEANUP_FINALIZER not in finalizers:
                    finalizers.append(CLEANUP_FINALIZER)
            return obj

        return await self._update(crd, "status", change)

    async def _announce_end(self, crd: Object) -> bool:
        if find_condition(crd, "Terminating") is not None:
            return True
        because = ("InstanceDeletionInProgress", "CustomResource deletion is in progress")
        condition = _condition(crd, "Terminating", "True", because, self._backend.now())

        def change(live: Object) -> Object:
            obj: Object = writable_copy(live)
            obj.setdefault("status", {}).setdefault("conditions", []).append(condition)
            return obj

        return await self._update(crd, "status", change)

    async def _clean_up(self, crd: Object) -> bool:
        """Delete what is left of the custom resources; whether all of them are gone."""
        if CLEANUP_FINALIZER not in (metadata_of(crd).get("finalizers") or []):
            return True
        _, definitions = self._served.get(name_of(crd), (None, []))
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
            await self._pipeline.update(Write(target, WriteParameters(_MANAGER), SERVER), change)
        except StatusError as error:
            log.warning("cannot update custom resource definition", name=name_of(crd), error=error.message)
            return error.code == 404
        return True


def _status(crd: Object, conflict: tuple[str, str] | None, now: str) -> Object:
    spec, old = crd["spec"], crd.get("status") or {}
    stored = list(old.get("storedVersions") or [])
    stored += [v["name"] for v in spec["versions"] if v.get("storage") and v["name"] not in stored]
    accepted = conflict is None
    value = "True" if accepted else "False"
    names_accepted = conflict or ("NoConflicts", "no conflicts found")
    established = ("InitialNamesAccepted", "the initial names have been accepted")
    if conflict is not None:
        established = ("NotAccepted", conflict[1])
    conditions = [
        _condition(crd, "NamesAccepted", value, names_accepted, now),
        _condition(crd, "Established", value, established, now),
    ]
    names = spec["names"] if accepted else old.get("acceptedNames") or {"plural": "", "kind": ""}
    return {**old, "conditions": conditions, "acceptedNames": names, "storedVersions": stored}


def _condition(crd: Object, kind: str, value: str, because: tuple[str, str], now: str) -> Object:
    old = find_condition(crd, kind)
    since = old["lastTransitionTime"] if old is not None and old.get("status") == value else now
    return {"type": kind, "status": value, "lastTransitionTime": since, "reason": because[0], "message": because[1]}
