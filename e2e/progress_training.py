"""Trainings that tell how far they are: scripts for pods, put together from what the tests say in few words."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from e2e.cluster import IMAGE, Cluster, train_job

_PRELUDE = """
import json, os, sys, time

TAG = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"

def write(data):
    os.write(1, data if isinstance(data, bytes) else data.encode())

def say(**fields):
    write(TAG + " " + json.dumps(fields) + "\\n")

def live_on():
    time.sleep(300)
"""
"""What the scripts have at hand; writes are not buffered, and each is one system call."""


def script(body: str) -> str:
    """The text of a Python program: `say(**fields)` reports, `write` prints as is, `live_on()` keeps the pod."""
    return _PRELUDE + textwrap.dedent(body)


def training(
    name: str, body: str, *, annotations: dict[str, str] | None = None, runtime: str = "plain", **spec: Any
) -> dict[str, Any]:
    """A TrainJob whose nodes run such a program.

    Args:
        name: its name.
        body: the program, see `script`.
        annotations: those of the TrainJob.
        runtime: a ClusterTrainingRuntime, or with a slash before it a TrainingRuntime of the namespace.
        spec: fields of its spec besides.
    """
    job = train_job(name, script(body), runtime=runtime.removeprefix("/"), **spec)
    if runtime.startswith("/"):
        job["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
    if annotations:
        job["metadata"]["annotations"] = annotations
    return job


def own_runtime(cluster: Cluster, name: str) -> dict[str, Any]:
    """A TrainingRuntime of the namespace like the runtime "plain", to be changed by the test."""
    plain = cluster.get("clustertrainingruntime", "plain")
    assert plain is not None
    kind = {"apiVersion": plain["apiVersion"], "kind": "TrainingRuntime", "metadata": {"name": name}}
    return kind | {"spec": plain["spec"]}


def container(name: str, body: str) -> dict[str, Any]:
    """A container that runs such a program."""
    return {"name": name, "image": IMAGE, "command": ["python", "-u", "-c", script(body)]}


def replicated_job(
    name: str, containers: Sequence[dict[str, Any]], *, annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    """A further part of a runtime's JobSet, with annotations of its pods."""
    pod_spec = {"restartPolicy": "Never", "containers": list(containers)}
    pod_template = {"metadata": {"annotations": annotations or {}}, "spec": pod_spec}
    return {"name": name, "template": {"spec": {"backoffLimit": 0, "template": pod_template}}}
