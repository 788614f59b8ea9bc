"""The labels by which the SDK, Katib and autoscalers find the pods of a v1 job."""

from __future__ import annotations

from typing import Final

from trainer_v1_jobs.api.kinds import JobKind
from trainer_v1_jobs.controllers.roles import ReplicaIndex

OPERATOR_NAME: Final = "training.kubeflow.org/operator-name"
"""On pods of a served v1 job: `pytorchjob-controller` or `jaxjob-controller`."""
JOB_NAME: Final = "training.kubeflow.org/job-name"
"""On the same: name of the v1 job."""
REPLICA_TYPE: Final = "training.kubeflow.org/replica-type"
"""On the same: role in lower case, such as `worker`."""
REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
"""On the same: index among the pods of the role, from 0."""
JOB_ROLE: Final = "training.kubeflow.org/job-role"
"""On the Master of a served v1 job, or on the first worker where there is none: `master`. The SDK reads its log."""

MASTER: Final = "master"
"""The value of `JOB_ROLE`."""


def operator_of(kind: JobKind) -> str:
    """The value of `OPERATOR_NAME` for a kind."""
    return f"{kind.resource.kind.lower()}-controller"


def labels_of_job(kind: JobKind, name: str) -> dict[str, str]:
    """The labels that all pods of a job have, and its autoscaler."""
    return {JOB_NAME: name, OPERATOR_NAME: operator_of(kind)}


def selector_of(kind: JobKind, name: str, role: str) -> dict[str, str]:
    """The labels that all pods of a role have, and no others."""
    return labels_of_job(kind, name) | {REPLICA_TYPE: role.lower()}


def labels_of_replica(kind: JobKind, name: str, replica: ReplicaIndex, *, has_master: bool) -> dict[str, str]:
    """All labels of one pod."""
    leads = replica.role == "Master" or (not has_master and replica.number == 0)
    labels = selector_of(kind, name, replica.role) | {REPLICA_INDEX: str(replica.number)}
    return labels | ({JOB_ROLE: MASTER} if leads else {})
