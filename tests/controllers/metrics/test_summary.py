from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.framework.samples import train_job_object
from trainer.controllers.metrics.summary import Summary
from trainer.kube.cache.cached_object import CachedObject

if TYPE_CHECKING:
    from trainer.kube.objects import Object

WAITS = {"type": "Pending", "status": "True", "reason": "Unschedulable", "message": "no node takes it"}


@pytest.mark.parametrize(
    ("obj", "runtime", "state"),
    [
        pytest.param(train_job_object(), "blueprint", "Unknown", id="new"),
        pytest.param(train_job_object(status={"state": "Running"}), "blueprint", "Running", id="running"),
        pytest.param(train_job_object(status={}), "blueprint", "Unknown", id="empty-status"),
        pytest.param(
            train_job_object(runtimeRef={"name": "mine", "kind": "TrainingRuntime"}),
            "default/mine",
            "Unknown",
            id="runtime-of-the-namespace",
        ),
        pytest.param(
            train_job_object(runtimeRef={"name": "all", "kind": "ClusterTrainingRuntime"}), "all", "Unknown", id="kind"
        ),
        pytest.param(train_job_object(managedBy="kueue.x-k8s.io/multikueue"), "blueprint", "External", id="external"),
        pytest.param(
            train_job_object(status={"state": "Running"}, managedBy="kueue.x-k8s.io/multikueue"),
            "blueprint",
            "Running",
            id="external-with-state",
        ),
        pytest.param(
            train_job_object(managedBy="kubeflow.org/trainjob-controller"), "blueprint", "Unknown", id="managed-here"
        ),
        pytest.param(train_job_object(runtimeRef=None), "", "Unknown", id="no-runtime"),
        pytest.param(train_job_object(runtimeRef="torch"), "", "Unknown", id="odd-runtime"),
        pytest.param(train_job_object() | {"spec": None}, "", "Unknown", id="no-spec"),
    ],
)
def test_what_is_read_of_a_trainjob(obj: Object, runtime: str, state: str) -> None:
    """Runtime and state, also of objects that only an older schema accepts."""
    summary = Summary.of(CachedObject.of(obj))
    assert (summary.runtime, summary.state) == (runtime, state)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"state": "Pending", "conditions": [WAITS]}, "Unschedulable", id="waits"),
        pytest.param({"state": "Running", "conditions": [WAITS]}, "", id="runs"),
        pytest.param({"state": "Pending", "conditions": [WAITS | {"status": "False"}]}, "", id="no-longer"),
        pytest.param({"state": "Pending"}, "", id="no-conditions"),
        pytest.param({"state": "Pending", "conditions": None}, "", id="null"),
        pytest.param({"state": "Pending", "conditions": ["odd"]}, "", id="odd-conditions"),
    ],
)
def test_why_pods_wait(status: Object, expected: str) -> None:
    """The reason of the condition Pending, while that is the state."""
    assert Summary.of(CachedObject.of(train_job_object(status=status))).pending == expected
