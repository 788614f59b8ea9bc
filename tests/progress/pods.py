"""JobSets and pods as the cluster makes them of TrainJobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.api.jobset_labels import COMPLETION_INDEX, JOB_INDEX, JOBSET_NAME, JOBSET_UID, REPLICATED_JOB
from trainer.api.labels import ANCESTOR_LABEL
from trainer.kube.objects import Object


def jobset(*jobs: str, trainer: str = "", annotations: Mapping[str, str] | None = None) -> Object:
    """The JobSet of the TrainJob `digits`, with replicated Jobs of these names, of which one may be labelled."""
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": "digits",
            "namespace": "team-a",
            "uid": "jobset-uid",
            "annotations": dict(annotations or {}),
            "ownerReferences": [
                {
                    "apiVersion": "trainer.kubeflow.org/v2alpha1",
                    "kind": "TrainJob",
                    "name": "digits",
                    "uid": "train-job-uid",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "replicatedJobs": [
                {
                    "name": name,
                    "template": {
                        "metadata": {"labels": {ANCESTOR_LABEL: "trainer"} if name == trainer else {}},
                        "spec": {"template": {"spec": {"containers": [{"name": "trainer"}]}}},
                    },
                }
                for name in jobs or ("node",)
            ]
        },
    }


def pod(name: str = "digits-node-0-0-abcde", job: str = "node", index: int = 0, **more: Any) -> Object:
    """A pod of the JobSet.

    Args:
        name: of the pod.
        job: the replicated Job.
        index: completion index.
        more: `annotations`, `labels`, `containers` (names), `state` of the first container, `phase`, `restart_policy`,
            `created`, `last_state`, `owner` (name of the Job that made it).
    """
    containers = more.get("containers", ["trainer"])
    status: Object = {"phase": more.get("phase", "Running" if more.get("state") else "Pending")}
    if more.get("state") or more.get("last_state"):
        status["containerStatuses"] = [
            {"name": each, "state": more.get("state") or {}, "lastState": more.get("last_state") or {}}
            for each in containers
        ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": f"uid-of-{name}",
            "creationTimestamp": more.get("created", "2026-01-02T10:00:00Z"),
            "labels": {
                JOBSET_NAME: "digits",
                JOBSET_UID: "jobset-uid",
                REPLICATED_JOB: job,
                JOB_INDEX: "0",
                COMPLETION_INDEX: str(index),
            }
            | more.get("labels", {}),
            "annotations": more.get("annotations", {}),
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": more.get("owner", f"digits-{job}-0"),
                    "uid": "job-uid",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "restartPolicy": more.get("restart_policy", "Never"),
            "containers": [{"name": each, "image": "python"} for each in containers],
        },
        "status": status,
    }


def running(since: str = "2026-01-02T10:00:05Z") -> Object:
    """The state of a container that runs."""
    return {"running": {"startedAt": since}}


def terminated(code: int = 0, since: str = "2026-01-02T10:00:05Z") -> Object:
    """The state of a container that has ended."""
    return {"terminated": {"exitCode": code, "startedAt": since, "finishedAt": "2026-01-02T11:00:00Z"}}
