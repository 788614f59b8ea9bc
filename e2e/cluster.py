"""The cluster under test, as kubectl sees it."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from e2e.belongings import Belongings
from e2e.kubectl import BIN, Kubectl
from e2e.processes import Process
from e2e.waiting import until

IMAGE = "python:3.11-slim"
"""Recorded and not pulled by the dev cluster; on another cluster every script of these tests runs in it."""


@dataclass(slots=True)
class Cluster(Kubectl):
    """One namespace of the cluster under test."""

    manager_kubeconfig: Path
    """Of the controller manager."""
    is_local: bool
    """Whether pods are processes of this machine."""
    pod_network: str
    """How pods of the dev cluster reach each other; empty on another cluster."""
    manager: Process
    """A Manager."""
    configuration: dict[str, Any] = field(default_factory=dict)
    """Of the controller manager."""
    belongings: Belongings = field(default_factory=Belongings)
    """What the tests have made in it."""

    @property
    def has_webhooks(self) -> bool:
        """Whether mistakes are refused before they are stored."""
        return bool((self.configuration.get("webhook") or {}).get("enabled", True))

    @contextmanager
    def in_namespace(self, name: str = "", *, waits: bool = True) -> Iterator[Cluster]:
        """The cluster in an empty namespace, which is deleted afterwards.

        Args:
            name: of the namespace. Default: one that nobody else has.
            waits: whether the deletion is waited for.
        """
        own = replace(self, namespace=name or f"e2e-{uuid.uuid4().hex[:8]}")
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own.namespace}})
        yield own
        end = "--timeout=60s" if waits else "--wait=false"
        self.kubectl("delete", "namespace", own.namespace, "--ignore-not-found", end)

    def require_pod_networks(self) -> None:
        """Skip the test where pods of the dev cluster have no networks of their own, and cannot listen on one port."""
        if self.is_local and not self.pod_network.startswith("netns"):
            pytest.skip(f"pods share one network on this machine ({self.pod_network})")

    def require_local(self, need: str) -> None:
        """Skip the test where pods are no processes of this machine; `need` is what their image would have to have."""
        if not self.is_local:
            pytest.skip(f"needs an image with {need}, which this cluster may not have")

    def trainer(self, *arguments: str, stdin: str | None = None) -> CompletedProcess[str]:
        """Run a subcommand of `trainer` that takes a kubeconfig, to its end."""
        command = [str(BIN / "trainer"), *arguments, "--kubeconfig", str(self.kubeconfig), "-n", self.namespace]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=110, check=False)

    def apply(self, *objects: dict[str, Any]) -> None:
        """kubectl apply -f -."""
        self.kubectl(
            "apply", "-f", "-", stdin=yaml.dump_all(map(self.belongings.labelled, objects), Dumper=yaml.CSafeDumper)
        )

    def state(self, name: str) -> str:
        """`status.state` of a TrainJob; empty before it has one."""
        job = self.get("trainjob", name) or {}
        return str((job.get("status") or {}).get("state", ""))

    def wait_for_state(self, name: str, *states: str, timeout: float = 60) -> str:
        """Wait until a TrainJob is in one of these states."""

        def reached() -> str:
            state = self.state(name)
            return state if state in states else ""

        return until(reached, f"TrainJob {name} is {' or '.join(states)}", timeout=timeout)

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        """A condition of a TrainJob; empty while it has none of this type."""
        status = (self.get("trainjob", name) or {}).get("status") or {}
        return next((each for each in status.get("conditions") or [] if each["type"] == kind), {})

    def log(self, name: str, **labels: str) -> str:
        """What the pods of a TrainJob have written, or those of its replicated Job `job` or with index `node`."""
        names = {
            "job": "jobset.sigs.k8s.io/replicatedjob-name",
            "node": "batch.kubernetes.io/job-completion-index",
        }
        chosen = [f"{names[label]}={value}" for label, value in labels.items()]
        selector = ",".join([f"jobset.sigs.k8s.io/jobset-name={name}", *chosen])
        return self.kubectl("logs", "-l", selector, "--tail=-1", "--max-log-requests=10", check=False).stdout

    def suspend(self, name: str, is_suspended: bool = True) -> None:
        """Suspend a TrainJob, or resume it."""
        patch = f'{{"spec": {{"suspend": {str(is_suspended).lower()}}}}}'
        self.kubectl("patch", "trainjob", name, "--type=merge", "-p", patch)

    def evict(self, pod: str) -> None:
        """Evict a pod by the API that `kubectl drain` uses; it has a second to end."""
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
        body = json.dumps(eviction | {"deleteOptions": {"gracePeriodSeconds": 1}})
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/eviction"
        self.kubectl("create", "--raw", path, "-f", "-", stdin=body)

    def restarts(self, name: str) -> tuple[int, int]:
        """How often the JobSet of a TrainJob was started again, and how many of these times count."""
        status = (self.get("jobset", name) or {}).get("status") or {}
        return status.get("restarts", 0), status.get("restartsCountTowardsMax", 0)

    def complete(self, name: str, timeout: float = 120) -> dict[str, Any]:
        """A TrainJob that has ended, once it has; it must be Complete."""
        if self.wait_for_state(name, "Complete", "Failed", timeout=timeout) == "Failed":
            raise AssertionError(self.log(name) + self.kubectl("describe", "trainjob,pod").stdout)
        return self.get("trainjob", name) or {}

    def wait_for_condition(self, name: str, condition: str) -> None:
        """kubectl wait --for=condition=..."""
        self.kubectl("wait", f"--for=condition={condition}", f"trainjob/{name}", "--timeout=60s")


def train_job(
    name: str,
    script: str,
    *,
    nodes: int = 1,
    runtime: str = "plain",
    arguments: Sequence[str] = (),
    **spec: Any,
) -> dict[str, Any]:
    """A TrainJob whose nodes run a Python script, given as text."""
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": runtime},
            "trainer": {
                "image": IMAGE,
                "numNodes": nodes,
                "command": ["python", "-u", "-c", script, *arguments],
            },
            **spec,
        },
    }


def training_runtime(
    name: str,
    container: dict[str, Any] | None = None,
    *,
    annotations: dict[str, str] | None = None,
    pod: dict[str, Any] | None = None,
    kind: str = "TrainingRuntime",
    backoff_limit: int = 0,
) -> dict[str, Any]:
    """A runtime of one replicated Job.

    Args:
        name: its name.
        container: fields of the container that trains. Default: its name and image.
        annotations: of the pods.
        pod: fields of their spec.
        kind: a TrainingRuntime or a ClusterTrainingRuntime.
        backoff_limit: how often a Job makes failed pods again.
    """
    containers = [{"name": "trainer", "image": IMAGE, **(container or {})}]
    pod_spec = {"restartPolicy": "Never", "containers": containers, **(pod or {})}
    job = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {
            "backoffLimit": backoff_limit,
            "template": {"metadata": {"annotations": annotations or {}}, "spec": pod_spec},
        },
    }
    template = {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}}
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"mlPolicy": {"numNodes": 1}, "template": template},
    }
