"""Deletion: at once, after a grace period, or when the last finalizer is gone, once webhooks have agreed.

Rules: Kubernetes documentation, "Finalizers", "Garbage Collection" and "Pod Lifecycle".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from trainer.kube.client import Propagation
from trainer.kube.clock import parse_timestamp, timestamp
from trainer.kube.objects import Object, is_being_deleted, metadata_of, name_of, resource_version_of, uid_of
from trainer.kube.resource import JOBS, NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICE_ACCOUNTS, SERVICES
from trainer_devcluster.apiserver.admission import namespaces
from trainer_devcluster.apiserver.admission.admission import Admission
from trainer_devcluster.apiserver.admission.attributes import Attributes, Operation, RuleTarget
from trainer_devcluster.apiserver.admission.namespaces import PARTITION as NAMESPACE_PARTITION
from trainer_devcluster.apiserver.authentication.user import User
from trainer_devcluster.apiserver.backend import Backend
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition, as_requested
from trainer_devcluster.apiserver.definitions.routing import Target
from trainer_devcluster.apiserver.objects.metadata import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from trainer_devcluster.apiserver.storage.storage import Partition
from trainer_devcluster.apiserver.wire import answers
from trainer_devcluster.apiserver.wire.headers import Warnings
from trainer_devcluster.apiserver.wire.params import META_GROUP, DeleteParameters
from trainer_kube_testing.api_semantics import statuses

DEFAULT_POD_GRACE_SECONDS = 30
_JOB_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_POD_PARTITION = Partition.of(PODS)
_JOB_PARTITION = Partition.of(JOBS)
_RETURN_DELETED = frozenset(
    Partition.of(resource) for resource in (PODS, SERVICES, SERVICE_ACCOUNTS, PERSISTENT_VOLUME_CLAIMS)
)


@dataclass(frozen=True, slots=True)
class Deletion:
    """The outcome of a deletion."""

    answer: Object
    """The object when it is only marked, a Status of success when it is gone."""
    warnings: tuple[str, ...] = ()


def is_finished(definition: ResourceDefinition, obj: Object) -> bool:
    """Whether an object whose deletion was accepted has nothing left to wait for."""
    metadata = metadata_of(obj)
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if Partition.of(definition.resource) == namespaces.PARTITION:
        return not (obj.get("spec") or {}).get("finalizers")
    return metadata.get("deletionGracePeriodSeconds") == 0


class Deleter:
    """Deletes single objects."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def delete(self, target: Target, parameters: DeleteParameters) -> Deletion:
        """Delete an object, or mark it when something has to happen first; no webhook is asked.

        Raises:
            ApiError: 404, there is none; 409, a precondition does not hold; 403, it is protected.
        """
        definition, partition = target.definition, Partition.of(target.definition.resource)
        live = self.current(target, parameters)
        if partition == namespaces.PARTITION:
            marked = self._marked_namespace(live)
        else:
            marked = self._marked(definition, live, parameters)
        warnings = (_JOB_WARNING,) if partition == _JOB_PARTITION and parameters.propagation is None else ()
        return Deletion(self._carry_out(target, live, marked, dry_run=parameters.dry_run), warnings)

    def current(self, target: Target, parameters: DeleteParameters) -> Object:
        """The object that is to be deleted.

        Raises:
            ApiError: 404, there is none; 409, a precondition does not hold.
        """
        live = self._backend.storage.get(Partition.of(target.definition.resource), target.key)
        if live is None:
            raise statuses.not_found(target.definition.resource, target.name)
        _check_preconditions(target, live, parameters)
        return live

    def _carry_out(self, target: Target, live: Object, marked: Object, *, dry_run: bool) -> Object:
        storage, partition = self._backend.storage, Partition.of(target.definition.resource)
        version = resource_version_of(live)
        if is_finished(target.definition, marked):
            gone = live if dry_run else storage.delete(partition, target.key, expected=version)
            if partition in _RETURN_DELETED:
                return gone
            return answers.success(target.definition.resource, name_of(live), uid_of(live))
        if dry_run or marked == live:
            return marked
        return storage.update(partition, target.key, marked, expected=version)

    def _marked(self, definition: ResourceDefinition, live: Object, parameters: DeleteParameters) -> Object:
        metadata = dict(metadata_of(live))
        finalizers = _finalizers(definition, metadata, parameters.propagation)
        metadata.pop("finalizers", None)
        if finalizers:
            metadata["finalizers"] = finalizers
        grace = _grace_seconds(definition, live, parameters)
        now = self._backend.clock.now()
        if not is_being_deleted(live):
            metadata["deletionTimestamp"] = timestamp(now + timedelta(seconds=grace))
            metadata["deletionGracePeriodSeconds"] = grace
            if metadata.get("generation"):
                metadata["generation"] += 1
        elif grace < (metadata.get("deletionGracePeriodSeconds") or 0):
            deadline = now + timedelta(seconds=grace)
            metadata["deletionTimestamp"] = timestamp(min(deadline, parse_timestamp(metadata["deletionTimestamp"])))
            metadata["deletionGracePeriodSeconds"] = grace
        return {**live, "metadata": metadata}

    def _marked_namespace(self, live: Object) -> Object:
        if name_of(live) in namespaces.PROTECTED:
            raise answers.forbidden(NAMESPACES, name_of(live), "this namespace may not be deleted")
        if is_being_deleted(live):
            return live
        metadata = {**metadata_of(live), "deletionTimestamp": self._backend.now()}
        return {**live, "metadata": metadata, "status": {**(live.get("status") or {}), "phase": "Terminating"}}


def _check_preconditions(target: Target, live: Object, parameters: DeleteParameters) -> None:
    resource = target.definition.resource
    for name, wanted, found in (
        ("UID", parameters.uid, uid_of(live)),
        ("ResourceVersion", parameters.resource_version, resource_version_of(live)),
    ):
        if wanted is not None and wanted != found:
            message = (
                f'Operation cannot be fulfilled on {resource.kind} "{target.name}": the {name} in the precondition '
                f"({wanted}) does not match the {name} in record ({found}). The object might have been deleted and "
                "then recreated"
            )
            details = {"name": target.name, "kind": resource.kind}
            if resource.group:
                details["group"] = resource.group
            raise statuses.failure(409, "Conflict", message, details)


def _finalizers(definition: ResourceDefinition, metadata: Object, propagation: Propagation | None) -> list[str]:
    finalizers = list(metadata.get("finalizers") or [])
    if propagation is None:
        orphans = Partition.of(definition.resource) == _JOB_PARTITION and not metadata.get("deletionTimestamp")
        if not orphans or FOREGROUND_FINALIZER in finalizers or ORPHAN_FINALIZER in finalizers:
            return finalizers
        propagation = Propagation.ORPHAN
    finalizers = [name for name in finalizers if name not in {FOREGROUND_FINALIZER, ORPHAN_FINALIZER}]
    if propagation is Propagation.ORPHAN:
        finalizers.append(ORPHAN_FINALIZER)
    elif propagation is Propagation.FOREGROUND:
        finalizers.append(FOREGROUND_FINALIZER)
    return finalizers


def _grace_seconds(definition: ResourceDefinition, live: Object, parameters: DeleteParameters) -> int:
    if Partition.of(definition.resource) != _POD_PARTITION:
        return 0
    spec, phase = live.get("spec") or {}, (live.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in {"Succeeded", "Failed"}:
        return 0
    if parameters.grace_period_seconds is not None:
        return parameters.grace_period_seconds
    if is_being_deleted(live):
        return int(metadata_of(live).get("deletionGracePeriodSeconds") or 0)
    own = spec.get("terminationGracePeriodSeconds")
    return int(own) if own is not None else DEFAULT_POD_GRACE_SECONDS


@dataclass(frozen=True, slots=True)
class DeletionRequest:
    """A client's request to delete objects."""

    parameters: DeleteParameters
    user: User
    warnings: Warnings
    """Takes in what webhooks warn of."""
    name: str = ""
    """The object that the request names; "" when it is about a collection."""

    def attributes(self, target: Target, live: Object) -> Attributes:
        """The admission attributes of the deletion of one object."""
        resource = target.definition.resource
        is_namespace = Partition.of(resource) == NAMESPACE_PARTITION
        return Attributes(
            endpoint=RuleTarget(Operation.DELETE, resource),
            namespace=name_of(live) if is_namespace else target.namespace or "",
            name=self.name,
            object=None,
            old=live,
            user=self.user,
            options=_options(self.parameters),
            dry_run=self.parameters.dry_run,
        )


class AdmittedDeleter:
    """Deletes objects that webhooks allow to be deleted."""

    def __init__(self, deleter: Deleter, admission: Admission) -> None:
        self.unreviewed = deleter
        """Deletes without asking webhooks: an eviction has been reviewed as what it is."""
        self._admission = admission

    async def delete(self, target: Target, request: DeletionRequest) -> Deletion:
        """Delete an object, or mark it; webhooks are asked again when it changes while they look at it.

        Raises:
            ApiError: as `Deleter.delete`; what webhooks say.
        """
        endpoint = RuleTarget(Operation.DELETE, target.definition.resource)
        while self._admission.concerns(endpoint):
            live = self.unreviewed.current(target, request.parameters)
            attributes = request.attributes(target, as_requested(target.definition, live))
            await self._admission.mutate(attributes, request.warnings)
            await self._admission.validate(attributes, request.warnings)
            if self.unreviewed.current(target, request.parameters) is live:
                break
        return self.unreviewed.delete(target, request.parameters)


def _options(parameters: DeleteParameters) -> Object:
    options: Object = {"kind": "DeleteOptions", "apiVersion": f"{META_GROUP}/v1"}
    if parameters.grace_period_seconds is not None:
        options["gracePeriodSeconds"] = parameters.grace_period_seconds
    preconditions = {"uid": parameters.uid, "resourceVersion": parameters.resource_version}
    kept = {name: value for name, value in preconditions.items() if value is not None}
    if kept:
        options["preconditions"] = kept
    if parameters.propagation is not None:
        options["propagationPolicy"] = parameters.propagation
    if parameters.dry_run:
        options["dryRun"] = ["All"]
    return options
