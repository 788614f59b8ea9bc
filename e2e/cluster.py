"""The cluster under test, as kubectl sees it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

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
