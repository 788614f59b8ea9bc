"""The mutating webhook of Kueue, in one namespace: what it changes of jobs and of JobSets that are created."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Final

from e2e.kubectl import Kubectl
from e2e.mutating_webhook import mutating_webhook

Object = dict[str, Any]

MANAGER = "kueue.x-k8s.io/manager"
QUEUE = "kueue.x-k8s.io/queue-name"
FLEET = "fleet"
"""The queue whose jobs MultiKueue sends to other clusters."""
DEFAULT_MANAGER = "trainer.kubeflow.org/trainjob-controller"
TRAINING_OPERATOR = "kubeflow.org/training-operator"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
PARENT = ("trainer.kubeflow.org/v1alpha1", "TrainJob")
"""Owners whose JobSets are none of its business, where it manages TrainJobs."""
_RULES: Final = [("trainer.kubeflow.org", "v1alpha1", "trainjobs"), ("jobset.x-k8s.io", "v1alpha2", "jobsets")]
_V1_RULES: Final = [("kubeflow.org", "v1", resource) for resource in ("pytorchjobs", "jaxjobs")]


def webhooks(kubectl: Kubectl, directory: Path, *, manages_train_jobs: bool) -> AbstractContextManager[None]:
    """Have the API server call it for TrainJobs of v1alpha1 and JobSets that are created in the namespace.

    Args:
        kubectl: of an administrator.
        directory: where its key goes.
        manages_train_jobs: whether its integration of TrainJobs is on; that of JobSets is, without a queue as well.
    """
    changes = partial(_changes, manages_train_jobs=manages_train_jobs)
    return mutating_webhook(kubectl, directory, "kueue", _RULES, changes)


def v1_webhooks(kubectl: Kubectl, directory: Path) -> AbstractContextManager[None]:
    """The same for PyTorchJobs and JAXJobs of v1."""
    return mutating_webhook(kubectl, directory, "kueue-v1", _V1_RULES, _v1_changes)


def _changes(obj: Object, *, manages_train_jobs: bool) -> Iterator[tuple[str, Any]]:
    if obj["kind"] == "JobSet":
        owners = {(each["apiVersion"], each["kind"]) for each in obj["metadata"].get("ownerReferences") or []}
        if not (manages_train_jobs and PARENT in owners):
            yield "/spec/suspend", True
        return
    queue = _queue(obj)
    if queue is None or not manages_train_jobs:
        return
    yield "/spec/suspend", True
    entry = {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {}}}}
    yield "/spec/runtimePatches", [*(obj["spec"].get("runtimePatches") or []), entry]
    if queue == FLEET and obj["spec"].get("managedBy") in (None, DEFAULT_MANAGER):
        yield "/spec/managedBy", MULTIKUEUE


def _v1_changes(obj: Object) -> Iterator[tuple[str, Any]]:
    queue = _queue(obj)
    if queue is None:
        return
    policy = obj["spec"].get("runPolicy") or {}
    is_fleet = queue == FLEET and policy.get("managedBy") in (None, TRAINING_OPERATOR)
    yield "/spec/runPolicy", policy | {"suspend": True} | ({"managedBy": MULTIKUEUE} if is_fleet else {})


def _queue(obj: Object) -> str | None:
    found: str | None = (obj["metadata"].get("labels") or {}).get(QUEUE)
    return found
