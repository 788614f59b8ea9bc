"""Leases (coordination.k8s.io/v1), with which a leader is elected."""

from __future__ import annotations

from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.objects import Object
from trainer.kube.resource import LEASES
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import not_negative, section


class LeaseStrategy(Strategy):
    """coordination.k8s.io/v1 Lease; an empty `holderIdentity` is how a leader releases it."""

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Drop the fields of the feature gate CoordinatedLeaderElection, which is off by default."""
        spec = section(obj, "spec")
        spec.pop("strategy", None)
        spec.pop("preferredHolder", None)

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Drop the same fields."""
        self.prepare_for_create(obj, context)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002 - the protocol's signature
        """Check the numbers; types, and the format of times, are those of the schema."""
        spec = section(obj, "spec")
        duration = spec.get("leaseDurationSeconds")
        problems = []
        if duration is not None and duration <= 0:
            problems.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        return problems + not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


LEASE = ResourceDefinition(LEASES, LeaseStrategy(), singular="lease", generation=False)
