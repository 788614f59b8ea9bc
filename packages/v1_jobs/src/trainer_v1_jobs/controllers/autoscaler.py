"""The HorizontalPodAutoscaler of an elastic PyTorchJob that has metrics; it scales the PyTorchJob."""

from __future__ import annotations

from typing import Final

from trainer.kube.objects import Object, controller_reference, name_of, namespace_of
from trainer.kube.resource import HORIZONTAL_POD_AUTOSCALERS
from trainer_v1_jobs.api.kinds import Job, JobKind, PyTorchJob
from trainer_v1_jobs.controllers.labels import OPERATOR_NAME, labels_of_job

SELECTOR: Final = OPERATOR_NAME
"""Selects the autoscalers that are made here."""


def autoscaler_of(obj: Object, job: Job, kind: JobKind) -> Object | None:
    """The autoscaler of a job; None if it has no metrics. A missing bound is the other, or the number of workers."""
    policy = job.spec.elastic_policy if isinstance(job, PyTorchJob) else None
    if policy is None or not policy.metrics:
        return None
    worker = kind.replica_specs(job).get("Worker")
    workers = (worker.replicas if worker is not None else None) or 1
    least = policy.min_replicas or policy.max_replicas or workers
    return {
        "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version,
        "kind": HORIZONTAL_POD_AUTOSCALERS.kind,
        "metadata": {
            "name": name_of(obj),
            "namespace": namespace_of(obj),
            "labels": labels_of_job(kind, name_of(obj)),
            "ownerReferences": [controller_reference(obj)],
        },
        "spec": {
            "scaleTargetRef": {
                "apiVersion": kind.resource.api_version,
                "kind": kind.resource.kind,
                "name": name_of(obj),
            },
            "minReplicas": least,
            "maxReplicas": policy.max_replicas or policy.min_replicas or workers,
            "metrics": policy.metrics,
        },
    }
