"""Admission as people meet it who use kubectl."""

from __future__ import annotations

import json
from subprocess import CompletedProcess
from typing import Any

import pytest

from e2e.cluster import Cluster, train_job, training_runtime

HELLO = "print('hello')"


@pytest.fixture(autouse=True)
def _webhooks(session_cluster: Cluster) -> None:
    """They are called."""
    if not session_cluster.has_webhooks:
        pytest.skip("the API server of this cluster does not reach the webhooks")


def apply(cluster: Cluster, obj: dict[str, Any]) -> CompletedProcess[str]:
    """kubectl apply -f -, whatever comes of it."""
    return cluster.kubectl("apply", "-f", "-", stdin=json.dumps(obj), check=False)


def test_defaults(cluster: Cluster) -> None:
    """What is admitted has defaults, and runs to its end."""
    job = train_job("first", HELLO)
    job["spec"]["trainer"]["numProcPerNode"] = 1
    applied = apply(cluster, job)
    assert (applied.returncode, applied.stderr) == (0, "")
    stored = cluster.get("trainjob", "first") or {}
    assert stored["spec"]["trainer"]["numProcPerNode"] == "1"
    assert stored["spec"]["managedBy"] == "kubeflow.org/trainjob-controller"
    cluster.complete("first")


def test_refusals(cluster: Cluster) -> None:
    """What could not be built is refused with field, value and rule, and so is a change that would come too late."""
    unknown = train_job("refused", HELLO, podSpecOverrides=[{"targetJobs": [{"name": "nodes"}]}])
    too_many = train_job("refused", HELLO, nodes=100_001)
    for job, reason in (
        (unknown, 'spec.podSpecOverrides[0].targetJobs[0].name: Not found: "nodes": '),
        (too_many, "spec.trainer.numNodes: "),
    ):
        refused = apply(cluster, job)
        assert refused.returncode == 1
        assert reason in refused.stderr
    assert cluster.get("trainjob", "refused") is None

    assert apply(cluster, train_job("queued", HELLO, suspend=True)).returncode == 0
    cluster.wait_for_state("queued", "Suspended")
    changed = apply(cluster, train_job("queued", "print('other')", suspend=True))
    assert "spec.trainer: Forbidden: " in changed.stderr


def test_warnings(cluster: Cluster) -> None:
    """What its author should know reaches the terminal although the job is accepted."""
    job = train_job("waiting", HELLO, runtimeRef={"kind": "TrainingRuntime", "name": "not-yet"}, suspend=True)
    job["spec"]["trainer"]["command"] = ["echo a && echo b"]
    applied = apply(cluster, job)
    assert applied.returncode == 0
    missing = f"there is no TrainingRuntime not-yet in namespace {cluster.namespace} yet"
    assert f"Warning: spec.runtimeRef.name: {missing}" in applied.stderr
    elsewhere = apply(cluster, train_job("elsewhere", HELLO, runtime="nowhere", suspend=True))
    assert "Warning: spec.runtimeRef.name: there is no ClusterTrainingRuntime nowhere yet" in elsewhere.stderr
    assert apply(cluster, training_runtime("not-yet")).returncode == 0
    resumed = apply(cluster, job | {"spec": job["spec"] | {"suspend": False}})
    assert "Warning: spec.trainer.command: is not run by a shell, so && is passed on as a plain word" in resumed.stderr
