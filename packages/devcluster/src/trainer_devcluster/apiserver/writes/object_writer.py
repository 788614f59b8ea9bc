"""Writing objects: from an accepted object to a stored one.

Default, isolate the endpoint's fields, keep field managers, admit, let webhooks change the object, prepare, validate,
let webhooks look at it, store. Where no webhook is concerned and the object is not large nothing awaits, so what was
read is still current when it is written. Otherwise the storage refuses a write that is based on an object of the past,
and the whole change is made once more on the new one: nothing is locked meanwhile and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import anyio

from trainer.kube.clock import move_on_after
from trainer.kube.errors import ApiError
from trainer.kube.field_errors import FieldError
from trainer.kube.merge_patch import writable_copy
from trainer.kube.objects import Object, ObjectKey, name_of, resource_version_of, uid_of
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from trainer_devcluster.apiserver.admission import namespaces
from trainer_devcluster.apiserver.admission.admission import Admission
from trainer_devcluster.apiserver.admission.attributes import Operation, RuleTarget
from trainer_devcluster.apiserver.authentication.user import SERVER
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.resource_definition import as_requested, as_stored
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.definitions.strategy import WriteContext
from trainer_devcluster.apiserver.objects import metadata
from trainer_devcluster.apiserver.objects.names import generate_name
from trainer_devcluster.apiserver.storage.storage import KeyExistsError, Partition, StaleWriteError
from trainer_devcluster.apiserver.wire import answers
from trainer_devcluster.apiserver.wire.params import WriteParameters
from trainer_devcluster.apiserver.writes.deletion import is_finished
from trainer_devcluster.apiserver.writes.drafting import Drafting, differs_in_intent, unchanged
from trainer_devcluster.apiserver.writes.scale import scale_of
from trainer_devcluster.apiserver.writes.write import Write
from trainer_kube_testing.api_semantics import statuses

T = TypeVar("T")

RETRY_SECONDS = 34.0
"""For how long a change is made again while others keep changing the object; the real server's limit for a request."""
_GENERATE_NAME_ATTEMPTS = 8
_SYSTEM_MANAGER = "kube-controller-manager"


class ObjectWriter:
    """Creates and changes objects; deletion has its own module."""

    def __init__(self, backend: Backend, admission: Admission) -> None:
        self._backend = backend
        self._admission = admission
        self._drafting = Drafting(backend)

    async def create(self, write: Write, obj: Object) -> Object:
        """Store a new object that `Write.accept` has let through; returns it as stored.

        Raises:
            ApiError: 403 and 404 for the namespace, 409 for a taken name, 422 for wrong fields; what webhooks say.
        """
        if resource_version_of(obj):
            raise _set_on_create()
        context = self._drafting.context(write)
        obj = await self._beside_loop(write, partial(self._drafting.new, write, obj, context))
        given_name = name_of(obj)
        try:
            return await self._store_new(write, obj, context)
        except KeyExistsError as error:
            resource, name = write.target.definition.resource, error.args[0].name
            if not given_name:
                raise answers.generate_name_conflict(resource, name) from error
            raise statuses.already_exists(resource, name) from error

    async def update(
        self, write: Write, change: Callable[[Object], Object], *, operation: Operation | None = Operation.UPDATE
    ) -> Object:
        """Change a stored object; returns the result, or the object as it was when nothing is different.

        Args:
            write: what is written to; names the object.
            change: makes the new object, which may be changed further, from the stored one, which may not; called
                again when the object changes while webhooks look at it.
            operation: what webhooks get; None when they were called already.

        Raises:
            ApiError: 404, there is no such object; 409, it is not the one that the caller has seen; 422, wrong
                fields; 504, others change it all the time; what webhooks say; whatever `change` raises.
        """

        async def attempt() -> Object:
            stored = self._stored_object(write)
            live = as_requested(write.target.definition, stored)
            new = await self._beside_loop(write, lambda: write.accept(change(live)))
            self._check_preconditions(write, new, live)
            return await self._replace(write, new, live, stored, operation)

        return await self._repeated(attempt)

    async def apply(self, write: Write, applied: Object) -> tuple[Object, bool]:
        """Server-side apply; returns the object and whether it is new.

        Raises:
            ApiError: 409, other managers own some of the fields; otherwise as `create` and `update`.
        """
        definition = write.target.definition
        expected = resource_version_of(applied)

        async def attempt() -> tuple[Object, bool]:
            stored = self._backend.storage.get(Partition.of(definition.resource), write.target.key)
            live = None if stored is None else as_requested(definition, stored)
            if live is None and write.target.subresource:
                raise statuses.not_found(definition.resource, write.target.name)
            if live is None and expected:
                raise _set_on_create()
            if stored is not None and live is not None:
                if expected and expected != resource_version_of(live):
                    raise statuses.conflict(definition.resource, write.target.name)
                merged = await self._beside_loop(write, partial(self._drafting.merged, write, live, applied))
                return await self._replace(write, merged, live, stored, Operation.UPDATE, applied=True), False
            context = self._drafting.context(write)
            obj = await self._beside_loop(write, partial(self._drafting.applied, write, applied, context))
            try:
                return await self._store_new(write, obj, context), True
            except KeyExistsError as error:
                raise StaleWriteError(write.target.key) from error

        return await self._repeated(attempt)

    async def create_internal(self, resource: Resource, obj: Object, manager: str = _SYSTEM_MANAGER) -> Object | None:
        """Store an object on the server's own account; None when it exists already."""
        definition = self._backend.registry.find(resource.group, resource.version, resource.plural)
        if definition is None:
            return None
        namespace = obj["metadata"].get("namespace")
        target = Target(definition, "create", namespace)
        key = ObjectKey(namespace or "", name_of(obj))
        if self._backend.storage.get(Partition.of(resource), key) is not None:
            return None
        write = Write(target, WriteParameters(manager), SERVER)
        write.accept(obj)
        return await self.create(write, obj)

    async def review(self, write: Write, operation: Operation, obj: Object) -> Object:
        """Run admission for an object that is not stored, such as a Binding.

        Raises:
            ApiError: what webhooks say.
        """
        endpoint = write.endpoint(operation)
        if self._admission.mutates(endpoint):
            mutated = await self._admission.mutate(write.attributes(operation, obj, None), write.warnings)
            obj = mutated or obj
        if self._admission.validates(endpoint):
            await self._admission.validate(write.attributes(operation, obj, None), write.warnings)
        return obj

    async def _repeated(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Run an attempt, again as long as the object that it has read is outdated when it stores."""
        try:
            return await attempt()
        except StaleWriteError:
            pass
        async with move_on_after(self._backend.clock, RETRY_SECONDS):
            while True:
                try:
                    return await attempt()
                except StaleWriteError:
                    continue
        raise statuses.timeout("request did not complete within requested timeout - context deadline exceeded")

    async def _beside_loop(self, write: Write, function: Callable[[], T]) -> T:
        """What a function returns; in a thread when the object is large, so that other requests go on."""
        return await anyio.to_thread.run_sync(function) if write.is_large else function()

    def _stored_object(self, write: Write) -> Object:
        resource = write.target.definition.resource
        stored = self._backend.storage.get(Partition.of(resource), write.target.key)
        if stored is None:
            raise statuses.not_found(resource, write.target.name)
        return stored

    async def _store_new(self, write: Write, obj: Object, context: WriteContext) -> Object:
        """Store a drafted object.

        Raises:
            KeyExistsError: its name, which is not for the server to make up, is taken.
        """
        await self._beside_loop(write, partial(write.target.definition.strategy.admit, obj, context))
        if self._admission.mutates(write.endpoint(Operation.CREATE)):
            obj = await self._mutated_new(write, obj, context)
        prefix = "" if name_of(obj) else obj["metadata"].get("generateName", "")
        write.authorize(obj, None)
        validated = self._admission.validates(write.endpoint(Operation.CREATE))
        for attempt in range(1, _GENERATE_NAME_ATTEMPTS + 1):
            if prefix:
                obj["metadata"]["name"] = generate_name(prefix)
            await self._beside_loop(write, partial(_check_new, write, obj, context))
            if validated:
                attributes = write.attributes(Operation.CREATE, obj, None)
                await self._admission.validate(attributes, write.warnings)
            self._drafting.require_home(write, obj)
            try:
                return await self._stored(write, obj)
            except KeyExistsError:
                if not prefix or attempt == _GENERATE_NAME_ATTEMPTS:
                    raise
        raise AssertionError("the loop above returns or raises")

    async def _mutated_new(self, write: Write, obj: Object, context: WriteContext) -> Object:
        """A new object as mutating webhooks leave it; they do not get to see what the server adds later."""

        def accept(mutated: Object) -> Object:
            write.accept_mutated(mutated)
            write.target.definition.strategy.default(mutated, context)
            return mutated

        def readmit(mutated: Object) -> Object:
            admitted: Object = writable_copy(mutated)
            write.target.definition.strategy.admit(admitted, context)
            return admitted

        seen = {**obj, "metadata": metadata.without_server_owned(obj["metadata"])}
        attributes = write.attributes(Operation.CREATE, seen, None)
        mutated = await self._admission.mutate(attributes, write.warnings, accept, readmit)
        if mutated is None or mutated is seen:
            return obj
        return self._drafting.mutated_new(write, obj, mutated, context)

    async def _stored(self, write: Write, obj: Object) -> Object:
        storage, partition = self._backend.storage, Partition.of(write.target.definition.resource)
        key = ObjectKey(write.target.namespace or "", name_of(obj))
        if write.parameters.dry_run:
            if storage.get(partition, key) is not None:
                raise KeyExistsError(key)
            return obj
        stored = storage.create(partition, key, as_stored(write.target.definition, obj))
        if partition == namespaces.PARTITION:
            await self._fill_namespace(stored)
        return as_requested(write.target.definition, stored)

    async def _fill_namespace(self, namespace: Object) -> None:
        for resource, first in namespaces.first_objects(namespace, self._backend.ca_pem):
            # What webhooks want to see is left to the controller, which can try more than once.
            if not self._admission.concerns(RuleTarget(Operation.CREATE, resource)):
                await self.create_internal(resource, first)

    def _check_preconditions(self, write: Write, new: Object, live: Object) -> None:
        definition = write.target.definition
        uid, version = uid_of(new), resource_version_of(new)
        if uid and uid != uid_of(live) and write.target.verb == "update":
            message = (
                f"StorageError: invalid object, Code: 4, Key: {_storage_key(write.target)}, "
                f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in "
                f"object meta: {uid_of(live)}"
            )
            raise statuses.conflict(definition.resource, write.target.name, message)
        if version in {"", "0"}:
            if definition.is_custom:
                cause = FieldError("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")
                raise statuses.invalid(
                    definition.resource.plural, definition.resource.group, write.target.name, [cause]
                )
        elif version != resource_version_of(live):
            raise statuses.conflict(definition.resource, write.target.name)

    async def _replace(
        self,
        write: Write,
        new: Object,
        live: Object,
        stored: Object,
        operation: Operation | None,
        *,
        applied: bool = False,
    ) -> Object:
        """Store a changed object in place of the one that it was made from.

        Args:
            write: what is written to.
            new: the changed object.
            live: the one that it was made from, in the version of the request.
            stored: the same as it is stored.
            operation: what webhooks get; None when they were called already.
            applied: whether server-side apply has seen to the field managers.

        Raises:
            StaleWriteError: that one is no longer the stored one.
        """
        context = self._drafting.context(write)
        given = {} if write.target.subresource else new["metadata"]
        new = await self._beside_loop(
            write, partial(self._drafting.changed, write, new, live, context, applied=applied)
        )
        if operation is not None and self._admission.mutates(write.endpoint(operation)):
            new = await self._mutated(write, new, live, context, operation)
        write.authorize(new, live)
        await self._beside_loop(write, partial(_check_changed, write, new, live, given, context))
        if operation is not None and self._admission.validates(write.endpoint(operation)):
            old = _shown(write, live)
            attributes = write.attributes(operation, _shown(write, new), old)
            await self._admission.validate(attributes, write.warnings)
        return await self._store_changed(write, new, live, stored)

    async def _mutated(
        self, write: Write, new: Object, live: Object, context: WriteContext, operation: Operation
    ) -> Object:
        """A changed object as mutating webhooks leave it."""
        strategy, is_scale = write.target.definition.strategy, write.target.subresource == "scale"

        def accept(mutated: Object) -> Object:
            if not is_scale:
                write.accept_mutated(mutated)
                strategy.default(mutated, context)
            return mutated

        seen = _shown(write, new)
        attributes = write.attributes(operation, seen, _shown(write, live))
        mutated = await self._admission.mutate(attributes, write.warnings, accept)
        if mutated is None or mutated is seen:
            return new
        return self._drafting.mutated_change(write, new, mutated, live)

    async def _store_changed(self, write: Write, new: Object, live: Object, stored: Object) -> Object:
        definition, key = write.target.definition, write.target.key
        storage, partition = self._backend.storage, Partition.of(definition.resource)
        to_store = as_stored(definition, new)
        if storage.get(partition, key) is not stored:
            raise StaleWriteError(key)
        if unchanged(to_store, stored):
            return live
        if write.parameters.dry_run:
            return new
        if is_finished(definition, new):
            storage.delete(partition, key, expected=resource_version_of(stored))
            return new
        updated = storage.update(partition, key, to_store, expected=resource_version_of(stored))
        return as_requested(definition, updated)


def _set_on_create() -> ApiError:
    # An error of the storage that the real server gives no reason.
    return statuses.failure(500, "", "resourceVersion should not be set on objects to be created")


def _check_new(write: Write, obj: Object, context: WriteContext) -> None:
    """Prepare and validate a new object."""
    strategy = write.target.definition.strategy
    strategy.prepare_for_create(obj, context)
    causes = metadata.validate(obj["metadata"], write.target.definition.name_rule)
    _raise_causes(write, obj, None, causes, lambda: strategy.validate(obj, context))


def _check_changed(write: Write, new: Object, live: Object, given: Object, context: WriteContext) -> None:
    """Prepare and validate a changed object; `given` is the metadata that the client has sent."""
    definition = write.target.definition
    definition.strategy.prepare_for_update(new, live, context)
    if definition.generation and differs_in_intent(definition, new, live):
        new["metadata"]["generation"] = (live["metadata"].get("generation") or 0) + 1
    causes = metadata.validate_update(new["metadata"], live["metadata"], given)
    _raise_causes(write, new, live, causes, lambda: definition.strategy.validate_update(new, live, context))


def _raise_causes(
    write: Write, obj: Object, live: Object | None, causes: list[FieldError], validate: Callable[[], list[FieldError]]
) -> None:
    """Refuse an object in which something is wrong: in its metadata, or by its kind."""
    definition = write.target.definition
    if definition.is_custom:
        write.warnings.add(*metadata.finalizer_warnings(obj["metadata"], live and live["metadata"]))
        causes = causes or validate()
    else:
        if definition.resource != CUSTOM_RESOURCE_DEFINITIONS:
            causes += metadata.validate_standard_finalizers(obj["metadata"])
        causes += validate()
    if causes:
        raise statuses.invalid(definition.resource.kind, definition.resource.group, name_of(obj), causes)


def _shown(write: Write, obj: Object) -> Object:
    """The object as the endpoint's clients and webhooks see it."""
    paths = write.target.definition.scale
    return scale_of(obj, paths) if write.target.subresource == "scale" and paths is not None else obj


def _storage_key(target: Target) -> str:
    """Where the real server keeps an object in etcd, such as `/registry/configmaps/default/settings`."""
    resource = target.definition.resource
    kind = f"{resource.group}/{resource.plural}" if target.definition.is_custom else resource.plural
    return "/".join(filter(None, ("/registry", kind, target.key.namespace, target.key.name)))
