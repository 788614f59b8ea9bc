"""Whether the Training Operator is on the cluster, so that never two controllers work on one job.

| what shows it | it is there |
|---|---|
| its ValidatingWebhookConfiguration | until that is deleted: without the operator the API server refuses all its jobs |
| its Lease (`--leader-elect`) | while somebody renews it; the clock of another machine is not asked |
| pods whose controller is the job itself | for this job alone: here a pod belongs to a Job of a JobSet |
"""

from __future__ import annotations

from typing import Final

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.kube.cache.store import CONTROLLER_UID
from trainer.kube.clock import Clock
from trainer.kube.election.lease import LeaseRecord
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey, key_of, uid_of
from trainer.kube.resource import LEASES, PODS, VALIDATING_WEBHOOK_CONFIGURATIONS
from trainer.kube.selection import Selection
from trainer_v1_jobs.controllers.labels import JOB_NAME

LEASE: Final = "1ca428e5.training-operator.kubeflow.org"
"""Name of the operator's Lease, in whichever namespace it runs."""
WEBHOOK_CONFIGURATIONS: Final = (
    "validator.training-operator.kubeflow.org",
    "kubeflow-validator.training-operator.kubeflow.org",
)
"""Names of its webhook configuration, the latter of Open Data Hub."""
_PODS_OF_OPERATOR: Final = f"{JOB_NAME},!{JOBSET_NAME}"
"""Selects the pods that the operator has made."""

_SHORTEST: Final = 60.0
"""Seconds without a renewal after which its Lease counts for nothing, or as long as the Lease says if that is longer.
Several times what the operator writes, since it may be busy."""

log = get_logger(__name__)


class TrainingOperator:
    """Looks for the Training Operator in the caches of the manager."""

    def __init__(self, manager: Manager, namespace: str | None) -> None:
        self._clock: Clock = manager.clock
        self._leases = manager.informer(LEASES, _named(LEASE)).lister
        self._webhooks = {
            name: manager.informer(VALIDATING_WEBHOOK_CONFIGURATIONS, _named(name)).lister
            for name in WEBHOOK_CONFIGURATIONS
        }
        self.pods = Selection(namespace, _PODS_OF_OPERATOR, metadata_only=True)
        self._pods = manager.informer(PODS, self.pods).lister
        self._renewals: dict[ObjectKey, tuple[str, float]] = {}
        self._said: str | None = None

    def evidence(self) -> str:
        """What shows that the operator is there, with its name; "" if it is not. A change is logged."""
        found = self._evidence()
        if found != self._said:
            self._said = found
            if found:
                log.warning(
                    "leaves PyTorchJobs and JAXJobs to the Training Operator",
                    evidence=found,
                    remedy="remove the Training Operator; its jobs that have not begun are taken up then",
                )
            else:
                log.info("serves PyTorchJobs and JAXJobs", api_version="kubeflow.org/v1")
        return found

    def has_pods_of(self, job: Object) -> bool:
        """Whether the operator has made pods for this job that are still there."""
        return bool(self._pods.keys_by_index(CONTROLLER_UID, uid_of(job)))

    def _evidence(self) -> str:
        for name, lister in self._webhooks.items():
            if lister.peek(ObjectKey("", name)) is not None:
                return f"ValidatingWebhookConfiguration {name}"
        return next((f"Lease {key_of(lease)}" for lease in self._leases.list() if self._is_held(lease)), "")

    def _is_held(self, lease: Object) -> bool:
        record, key, now = LeaseRecord.of(lease), key_of(lease), self._clock.monotonic()
        if not record.holder:
            return False
        renewed, since = self._renewals.get(key, ("", now))
        if renewed != record.renewed:
            self._renewals[key] = record.renewed, now
            return True
        return now - since < max(_SHORTEST, float(record.duration_seconds))


def _named(name: str) -> Selection:
    return Selection(field_selector=f"metadata.name={name}")
