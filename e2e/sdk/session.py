"""A user of the SDK in a namespace."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubeflow.trainer import KubernetesBackendConfig, TrainerClient
from kubeflow.trainer.options import (
    ContainerPatch,
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    PodSpecPatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainingRuntimeSpecPatch,
)

if TYPE_CHECKING:
    from kubeflow.trainer.types.types import TrainJob

TRAINER = ("trainer.kubeflow.org", "v1alpha1")


@dataclass
class Session:
    """A user in a namespace."""

    namespace: str
    gate: Path
    """The directory that trainings find at /gate."""

    def __post_init__(self) -> None:
        self.config = KubernetesBackendConfig(namespace=self.namespace)
        self.client = TrainerClient(self.config)
        self.api = self.client.backend.custom_api
        self.core = self.client.backend.core_api
        self.gate.mkdir()

    def gated(self, job: str = "node", **pod: Any) -> RuntimePatch:
        """A patch that mounts the gate in the pods of a replicated Job."""
        volume = {"name": "gate", "hostPath": {"path": str(self.gate)}}
        container = ContainerPatch(name="node", volume_mounts=[{"name": "gate", "mountPath": "/gate"}])
        return patched(job, PodSpecPatch(volumes=[volume], containers=[container], **pod))

    def go(self) -> None:
        """Let trainings end."""
        (self.gate / "go").touch()

    def reaches(self, name: str, *statuses: str, callbacks: list[Callable[[TrainJob], None]] | None = None) -> TrainJob:
        """Wait until the SDK reports one of some statuses."""
        return self.client.wait_for_job_status(name, {*statuses}, 150, polling_interval=1, callbacks=callbacks)

    def life(self, name: str) -> list[str]:
        """What the SDK says of a TrainJob when it is new, when all its nodes run, and in the end."""
        seen = [self.client.get_job(name).status, self.reaches(name, "Running", "Failed").status]
        self.go()
        return [*seen, self.reaches(name, "Complete", "Failed").status]

    def steps(self, name: str) -> dict[str, Any]:
        return {step.name: step.status for step in self.client.get_job(name).steps}

    def log(self, name: str, **which: Any) -> list[str]:
        return list(self.client.get_job_logs(name, **which))

    def stored(self, name: str) -> Any:
        """The TrainJob as the cluster has it."""
        return self.api.get_namespaced_custom_object(*TRAINER, self.namespace, "trainjobs", name)

    def job_set(self, name: str) -> Any:
        """What it has become."""
        arguments = ("jobset.x-k8s.io", "v1alpha2", self.namespace, "jobsets", name)
        return until(lambda: self.api.get_namespaced_custom_object(*arguments))

    def refusal(self, **arguments: Any) -> list[Any]:
        """Status and message of the API server for a TrainJob that it does not accept."""
        try:
            self.client.train(**arguments)
        except RuntimeError as error:
            cause: Any = error.__cause__
            return [cause.status, json.loads(cause.body)["message"]]
        return []


def until(look: Callable[[], Any]) -> Any:
    """What is there, as soon as it is."""
    deadline = time.monotonic() + 60
    while True:
        try:
            if found := look():
                return found
        except Exception:
            if time.monotonic() > deadline:
                raise
        assert time.monotonic() < deadline
        time.sleep(0.1)


def patched(job: str, pod: PodSpecPatch, metadata: dict[str, Any] | None = None) -> RuntimePatch:
    """A patch of the pods of a replicated Job; the metadata is that of JobSet, Job and pods."""
    pods = PodTemplatePatch(metadata=metadata, spec=pod)
    template = JobTemplatePatch(metadata=metadata, spec=JobSpecPatch(template=pods))
    jobs = JobSetSpecPatch(replicated_jobs=[ReplicatedJobPatch(name=job, template=template)])
    return RuntimePatch(TrainingRuntimeSpecPatch(template=JobSetTemplatePatch(metadata=metadata, spec=jobs)))
