"""coordination.k8s.io/v1 Leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.field_errors import invalid
from trainer.kube.resource import LEASES
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.kinds.causes import not_negative

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext


class LeaseStrategy(StoreOnlyStrategy):
    """Checks the numbers of a Lease; `holderIdentity` may be empty, which is how a leader releases it."""

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002 - the protocol's signature
        """Check duration and transitions (`ValidateLeaseSpec`)."""
        spec = obj.get("spec") or {}
        duration = spec.get("leaseDurationSeconds")
        causes = []
        if duration is not None and duration <= 0:
            causes.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        return causes + not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


LEASE = ResourceDefinition(LEASES, LeaseStrategy(), singular="lease", generation=False)
