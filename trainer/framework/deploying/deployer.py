"""ComponentDeployer (KEP-2170): brings components to the cluster by server-side apply, sending only what differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from trainer.framework.deploying.child import (
    APPLIED_HASH,
    FIXED_HASH,
    SPEC_HASH,
    ForeignObjectError,
    hash_of,
    is_deleted_when_finished,
    owned,
    spec_hash_of,
    stored,
)
from trainer.framework.deploying.comparison import differences
from trainer.framework.deploying.generated import GeneratedObjects
from trainer.framework.plugin_api.component import Component, Replacement, Revision, runs_pods
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.plugin_context import Reader
from trainer.framework.plugin_calls import PluginSeries
from trainer.framework.runtimes.runtimes import RUNTIME_DIGEST
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.client import Client, DeleteOptions, Propagation
from trainer.kube.clock import Clock
from trainer.kube.errors import ForbiddenError, InvalidError, NotFoundError
from trainer.kube.field_errors import FieldError, forbidden
from trainer.kube.logger import get_logger
from trainer.kube.metrics import Metrics
from trainer.kube.objects import (
    Object,
    ObjectKey,
    annotations_of,
    is_being_deleted,
    is_controlled_by,
    key_of,
    metadata_of,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from trainer.kube.resource import Resource

ObjectId: TypeAlias = "tuple[Resource, ObjectKey]"

FIELD_MANAGER = "trainer"
"""Owner of all fields that we set, except the progress of the training (`trainer-progress`)."""

RETRY_AFTER = 300.0
"""Seconds after which a rejected change is tried again, since the administrator of the cluster may have acted."""

MADE_ANEW_ONCE = "is made anew once"
"""What the condition Created says of an object that is replaced, before what is awaited."""

_POD_GROUP = "PodGroup"
"""The kind of gangs, which has this name in the API of each gang scheduler."""

_REMEMBERED = 1024
"""Limit of the rejected changes that are remembered."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What the cluster has not accepted of a TrainJob although all its objects exist."""

    immutable_fields: tuple[str, ...] = ()
    """Fields that can no longer change, as `<kind> <field path>`."""
    rejected: tuple[str, ...] = ()
    """The cluster's answers to changes that it rejects and other clusters accept, each with the remedy."""
    is_resumed: bool = False
    """Whether pods run although the TrainJob is suspended, see `Revision.is_resumed`."""
    replaced: tuple[str, ...] = ()
    """What is deleted to be created again, or will be, in sentences."""
    is_held: bool = False
    """Whether no pods start before what is deleted exists again."""

    def __or__(self, other: ApplyResult) -> ApplyResult:
        """The results of two objects together."""
        return ApplyResult(
            self.immutable_fields + other.immutable_fields,
            self.rejected + other.rejected,
            self.is_resumed or other.is_resumed,
            self.replaced + other.replaced,
            self.is_held or other.is_held,
        )


_DONE = ApplyResult()


class _Missing(NamedTuple):
    """The cache does not show it: it is created, or gets the labels by which the watch of its kind selects it."""


class _Foreign(NamedTuple):
    """It belongs to somebody else: it is refused."""

    existing: Object


class _LeftAlone(NamedTuple):
    """It is being deleted, and is created again when it is gone, or its plugin would change nothing."""

    existing: Object


class _Outdated(NamedTuple):
    """It cannot change as the TrainJob does: it is deleted, and created again, once nothing of it runs."""

    existing: Object
    replacement: Replacement


class _Present(NamedTuple):
    """It may change: what differs is applied, and what is generated is created first where pods are about to start."""

    existing: Object
    revision: Revision


_Case: TypeAlias = _Missing | _Foreign | _LeftAlone | _Outdated | _Present
"""What the cache shows of an object that the TrainJob asks for, and what follows from it; the first that fits."""


class Deployer:
    """Applies components as children of their TrainJob; what plugins raise is counted in `metrics`."""

    def __init__(self, client: Client, reader: Reader, clock: Clock, *, metrics: Metrics | None = None) -> None:
        self._client = client
        self._reader = reader
        self._clock = clock
        self._rejected: BoundedDict[tuple[str, str], tuple[str, float]] = BoundedDict(_REMEMBERED)
        self._series = (metrics or Metrics()).series(PluginSeries)
        self._generated = GeneratedObjects(client, self._series)

    def missing(self, components: Iterable[Component]) -> list[Component]:
        """The components whose objects are not in the cache: never created, deleted, or too new."""
        missing: list[Component] = []
        for component in components:
            if component.generated is not None:
                continue
            resource, obj = component.resource, component.object
            with self._series.call(component.plugin, "build"):
                existing = self._existing(component)  # raises if the kind is not watched
                if not self._reader.serves(resource):
                    raise BuildError(_unserved(resource))
                if existing is None and not (self._reader.holds_all(resource) or self._reader.selects(resource, obj)):
                    # Each reconcile would create it again, and none would delete it.
                    what = f"{resource.kind} {component.key}"
                    raise LookupError(f"{what} lacks the labels or fields that the watches of its kind select")
            if existing is None:
                missing.append(component)
        return missing

    def built_on(self, owner: Object, workload: Iterable[Component]) -> str | None:
        """The digest of the runtime that existing objects were built on, empty if it is not recorded; None without any.

        Args:
            owner: the TrainJob.
            workload: what runs its pods. Nothing else proves that something was built: who may not run pods may write
                PodGroups, autoscalers, Services and the like with any annotation.
        """
        for component in workload:
            existing = self._existing(component)
            if existing is not None and is_controlled_by(existing, owner):
                return annotations_of(existing).get(RUNTIME_DIGEST, "")
        return None

    def versions(self, objects: Iterable[ObjectId]) -> dict[ObjectId, str | None]:
        """The resource version of each object in the cache; None where it has none."""
        found = {each: self._reader.get(*each) for each in objects}
        return {each: None if obj is None else resource_version_of(obj) for each, obj in found.items()}

    def _deployed(self, owner: Object) -> Iterator[tuple[Resource, Object]]:
        """Children in its namespace only: people may name an owner of another one."""
        for resource, child in self._reader.children(uid_of(owner)):
            if APPLIED_HASH in annotations_of(child) and namespace_of(child) == namespace_of(owner):
                yield resource, child

    async def deploy(self, owner: Object, components: Iterable[Component]) -> ApplyResult:
        """Create what is missing and change what differs.

        Raises:
            ForeignObjectError: an object of that name belongs to somebody else.
            InternalError: a plugin cannot generate or revise what it has built.
            KubeError: the API server did not accept an object; those before it are in place.
        """
        components = list(components)
        generated = [component for component in components if component.generated is not None]
        applied = [component for component in components if component.generated is None]
        # What is generated comes first, so that what runs pods proves that it has been made.
        is_new = bool(generated) and self.built_on(owner, workload_of(applied)) is None
        for component in generated:
            if is_new:
                await self._generated.create(owner, component)
            else:
                await self._generated.create_if_lost(owner, component)
        result = _DONE
        for component in sorted(applied, key=lambda each: each.runs_pods):
            with self._series.call(component.plugin, "build"):
                if not (component.runs_pods and result.is_held and self._starts_pods(owner, component)):
                    result |= await self._deploy(owner, component, generated)
        return result

    async def prune(self, owner: Object, components: Iterable[Component], *, is_new: bool) -> None:
        """Delete what an earlier build has deployed and this one no longer contains, in any version of its kind.

        Unless what runs the pods is new, those that run may name a PodGroup of the earlier build: it stays.
        """
        kept = {(component.resource.qualified_name, component.key) for component in components}
        still_run = not (is_new or owner["spec"].get("suspend")) and runs_pods(self._reader, key_of(owner))
        for resource, child in self._deployed(owner):
            is_needed = still_run and resource.kind == _POD_GROUP
            if (resource.qualified_name, key_of(child)) not in kept and not is_needed:
                await self._delete(resource, child)

    async def delete(self, owner: Object, components: Iterable[Component]) -> None:
        """Delete those of these objects that exist."""
        for component in components:
            existing = self._existing(component)
            if existing is not None and is_controlled_by(existing, owner):
                await self._delete(component.resource, existing)

    async def _delete(self, resource: Resource, obj: Object) -> None:
        if is_being_deleted(obj):
            return
        try:
            await self._client.delete(resource, name_of(obj), namespace_of(obj), DeleteOptions(uid=uid_of(obj)))
        except NotFoundError:
            return
        log.info("deleted object", kind=resource.kind, object=str(key_of(obj)))

    async def _replace(
        self, owner: Object, component: Component, existing: Object, replacement: Replacement
    ) -> ApplyResult:
        result, kind = _DONE, component.resource.kind
        if not replacement.awaits:
            what = f"{kind} is made anew"
            await self._recreate(component, existing)
        else:
            what = f"{kind} {MADE_ANEW_ONCE} {replacement.awaits}"
            if replacement.meanwhile is not None:
                result = await self._revise(owner, component, existing, replacement.meanwhile, keeps_fixed=True)
        consequence = f": {replacement.consequence}" if replacement.consequence else ""
        return result | ApplyResult(replaced=(f"{what}{consequence}",), is_held=bool(component.awaits))

    async def _recreate(self, component: Component, obj: Object) -> None:
        """Delete an object of which nothing runs; its deletion triggers the reconcile that creates it again.

        Where it runs pods, what it owns goes first, because controllers find the children of an object by its name. One
        that has changed since the cache has shown it may have begun to run, and stays.
        """
        resource, version = component.resource, obj["metadata"].get("resourceVersion")
        propagation = Propagation.FOREGROUND if component.runs_pods else None
        options = DeleteOptions(propagation=propagation, uid=uid_of(obj), resource_version=version)
        with suppress(NotFoundError):
            await self._client.delete(resource, name_of(obj), namespace_of(obj), options)
            log.info("deleted object to create it again", kind=resource.kind, object=str(key_of(obj)))

    async def end(self, owner: Object) -> None:
        """Delete the objects that are of no use once the TrainJob has ended."""
        for resource, child in self._deployed(owner):
            if is_deleted_when_finished(child):
                await self._delete(resource, child)

    async def _create(self, owner: Object, component: Component) -> None:
        """Apply an object that the cache does not show, since it does not exist or lacks the labels of the watch."""
        wanted = component.object
        hidden = None if self._reader.holds_all(component.resource) else await stored(self._client, owner, component)
        if hidden is not None and component.revise is not None and component.revise(hidden) is None:
            # What depends on it as it is needs no more than the labels.
            wanted = hidden | {"metadata": metadata_of(wanted)}
        # Without force: an object that the cache does not show yet may belong to somebody else.
        await self._apply(component, owned(wanted, component, owner), force=False)

    async def _deploy(self, owner: Object, component: Component, generated: Sequence[Component]) -> ApplyResult:
        match self._case_of(owner, component):
            case _Missing():
                await self._create(owner, component)
            case _Foreign(existing):
                raise ForeignObjectError(component.resource, existing)
            case _LeftAlone(existing) if component.awaits and is_being_deleted(existing):
                what = f"{component.resource.kind} {MADE_ANEW_ONCE} {component.awaits}"
                return ApplyResult(replaced=(what,), is_held=True)
            case _LeftAlone():
                pass
            case _Outdated(existing, replacement):
                return await self._replace(owner, component, existing, replacement)
            case _Present(existing, revision):
                for each in generated if revision.starts_pods else ():
                    await self._generated.create(owner, each)
                return await self._revise(owner, component, existing, revision)
        return _DONE

    def _starts_pods(self, owner: Object, component: Component) -> bool:
        match self._case_of(owner, component):
            case _Missing():
                return True
            case _Present(_, revision):
                return revision.starts_pods
        return False

    def _case_of(self, owner: Object, component: Component) -> _Case:
        wanted, existing = component.object, self._existing(component)
        if existing is None:
            return _Missing()
        if not is_controlled_by(existing, owner):
            return _Foreign(existing)
        revision = None
        if not is_being_deleted(existing):
            revision = Revision(wanted) if component.revise is None else component.revise(existing)
        if revision is None:
            return _LeftAlone(existing)
        created_with = annotations_of(existing).get(FIXED_HASH)
        if revision.replacement is not None and created_with not in {None, hash_of(component.fixed or {})}:
            return _Outdated(existing, revision.replacement)
        return _Present(existing, revision)

    async def _revise(
        self, owner: Object, component: Component, existing: Object, revision: Revision, *, keeps_fixed: bool = False
    ) -> ApplyResult:
        spec_hash = annotations_of(existing).get(SPEC_HASH)
        applied = owned(revision.object, component, owner, keeps_fixed=keeps_fixed, spec_hash=spec_hash)
        kind = component.resource.kind
        seen = {"metadata": applied["metadata"]} if component.metadata_only else applied
        if next(differences(seen, existing), None) is not None:
            answer = await self._try(component, existing, applied, revision)
            if answer is not None and revision.fallback is not None:
                rest = await self._revise(owner, component, existing, revision.fallback)
                rejected = (*rest.rejected, f"{kind}: {answer} ({revision.remedy})")
                return replace(rest, rejected=rejected)
        # Of another version of the manager they are no change, and its own objects without a hash prove none.
        was_changed = not component.runs_pods or spec_hash not in {None, spec_hash_of(owner)}
        refused = tuple(f"{kind} {path}" for path in revision.refused if was_changed)
        return ApplyResult(refused, is_resumed=revision.is_resumed)

    async def _try(self, component: Component, existing: Object, applied: Object, revision: Revision) -> str | None:
        """Apply the change; if there is a fallback, return the answer if it is, or was lately, rejected."""
        change = uid_of(existing), hash_of(applied | {"metadata": _without_version(applied)})
        now = self._clock.monotonic()
        answer, until = self._rejected.get(change) or ("", now)
        if revision.fallback is not None and now < until:
            return answer
        try:
            await self._apply(component, applied, force=True)
        except (InvalidError, ForbiddenError) as error:
            if revision.fallback is None:
                raise
            self._rejected[change] = str(error), now + RETRY_AFTER
            kind, name = component.resource.kind, str(key_of(existing))
            log.info("fell back to a smaller change", kind=kind, object=name, error=str(error))
            return str(error)
        return None

    def _existing(self, component: Component) -> Object | None:
        return self._reader.get(component.resource, component.key)

    async def _apply(self, component: Component, obj: Object, *, force: bool) -> None:
        try:
            await self._client.apply(component.resource, obj, field_manager=FIELD_MANAGER, force=force)
        except NotFoundError as error:
            if error.name:  # of what is missing, such as the namespace
                raise
            # The cache learns that a kind is served no more when its watch ends.
            raise NotFoundError(error.code, str(_unserved(component.resource))) from error
        log.debug("applied object", kind=component.resource.kind, object=str(component.key))


def workload_of(components: Iterable[Component]) -> list[Component]:
    """The components that run pods; all of them where none says so."""
    components = list(components)
    return [component for component in components if component.runs_pods] or components


def _unserved(resource: Resource) -> FieldError:
    kind = resource.qualified_name
    return forbidden(kind, f"the API server does not serve them; install the CRD {kind}")


def _without_version(obj: Object) -> Object:
    return {name: value for name, value in metadata_of(obj).items() if name != "resourceVersion"}
