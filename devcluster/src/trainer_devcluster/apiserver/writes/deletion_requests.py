"""Deletion requests: what clients want to delete, once webhooks have agreed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.kube.objects import name_of
from trainer_devcluster.apiserver.admission.attributes import Attributes, Endpoint, Operation
from trainer_devcluster.apiserver.admission.namespaces import PARTITION as NAMESPACE_PARTITION
from trainer_devcluster.apiserver.definitions.resource_definition import as_requested
from trainer_devcluster.apiserver.storage.storage import Partition
from trainer_devcluster.apiserver.wire.params import META_GROUP

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.admission.admission import Admission
    from trainer_devcluster.apiserver.authentication.user import User
    from trainer_devcluster.apiserver.definitions.routing import Target
    from trainer_devcluster.apiserver.wire.headers import Warnings
    from trainer_devcluster.apiserver.wire.params import DeleteParameters
    from trainer_devcluster.apiserver.writes.deletion import Deleter, Deletion


@dataclass(frozen=True, slots=True)
class DeletionRequest:
    """A client's wish to delete objects."""

    parameters: DeleteParameters
    user: User
    warnings: Warnings
    """Takes in what webhooks warn of."""
    name: str = ""
    """The object that the request names; "" when it is about a collection."""

    def attributes(self, target: Target, live: Object) -> Attributes:
        """What webhooks get about the deletion of one object."""
        resource = target.definition.resource
        is_namespace = Partition.of(resource) == NAMESPACE_PARTITION
        return Attributes(
            endpoint=Endpoint(Operation.DELETE, resource),
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
        self._deleter = deleter
        self._admission = admission

    async def delete(self, target: Target, request: DeletionRequest) -> Deletion:
        """Delete an object, or mark it; webhooks are asked again when it changes while they look at it.

        Raises:
            ApiError: as `Deleter.delete`; what webhooks say.
        """
        endpoint = Endpoint(Operation.DELETE, target.definition.resource)
        while self._admission.concerns(endpoint):
            live = self._deleter.current(target, request.parameters)
            attributes = request.attributes(target, as_requested(target.definition, live))
            await self._admission.mutate(attributes, request.warnings, _as_it_is)
            await self._admission.validate(attributes, request.warnings)
            if self._deleter.current(target, request.parameters) is live:
                break
        return self._deleter.delete(target, request.parameters)


def _as_it_is(obj: Object) -> Object:
    return obj


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
