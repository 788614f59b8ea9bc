"""Has a manager serve the v1 kinds."""

from __future__ import annotations

from functools import partial
from typing import Final

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.jobset_pods import PODS_BY_JOBSET, made_by_jobsets
from trainer.kube.manager.manager import Manager
from trainer.kube.resource import PODS
from trainer.kube.selection import Selection
from trainer.v1alpha1.discovery import Version
from trainer_v1_jobs.api.kinds import SERVED_KINDS
from trainer_v1_jobs.controllers.controller import JobController
from trainer_v1_jobs.controllers.deployment import Deployment
from trainer_v1_jobs.controllers.training_operator import TrainingOperator

_LOOK: Final = 30.0
"""Seconds between two looks for the Training Operator; a change is logged."""


def serve_jobs(manager: Manager, namespace: str | None = None, version: Version = "v2alpha1") -> None:
    """Register the controllers of all served kinds.

    Args:
        manager: where they are registered.
        namespace: the only one whose jobs are looked at. Default: None, all.
        version: of the TrainJobs that the cluster serves. Default: v2alpha1.
    """
    pods = manager.informer(PODS, Selection(namespace, label_selector=JOBSET_NAME))
    pods.add_index(PODS_BY_JOBSET, made_by_jobsets)
    deployment, operator = Deployment(manager, namespace), TrainingOperator(manager, namespace)
    for kind in SERVED_KINDS:
        JobController(manager, kind, deployment, operator, namespace=namespace, version=version)
    manager.add(partial(_look, manager, operator), name="search for the Training Operator")


async def _look(manager: Manager, operator: TrainingOperator) -> None:
    """Say in the log, from the start on, who works on the jobs."""
    while True:
        operator.evidence()
        await manager.clock.sleep(_LOOK)
