"""Has a manager serve OptimizationJobs, where the cluster has them and lets it read them."""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.kube.cache.failures import explain
from trainer.kube.client import ListOptions
from trainer.kube.errors import KubeError, NotFoundError
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.selection import Selection
from trainer.v1alpha1.discovery import Version
from trainer_sweeps.controllers.choice import Choice
from trainer_sweeps.controllers.controller import SweepController

_LOOK: Final = 30.0
"""Seconds between two looks for the kind."""
_ONE: Final = ListOptions(limit=1)

log = get_logger(__name__)


def serve_sweeps(
    manager: Manager, namespace: str | None = None, version: Version = "v2alpha1", choice: Choice | None = None
) -> None:
    """Run the controller from the moment at which OptimizationJobs can be read; until then nothing else is different.

    An informer of its own accord would keep the manager from starting where the role is that of an earlier release.

    Args:
        manager: where the controller is registered.
        namespace: the only one whose objects are looked at. Default: None, all.
        version: of the TrainJobs and OptimizationJobs that the cluster serves. Default: v2alpha1.
        choice: chooses parameters. Default: by Optuna.
    """
    manager.add(partial(_serve, manager, namespace, version, choice), name="search for OptimizationJobs")


async def _serve(manager: Manager, namespace: str | None, version: Version, choice: Choice | None) -> None:
    resource = msgspec.structs.replace(OPTIMIZATION_JOBS, version=version)
    said = ""
    while True:
        try:
            await manager.api_reader.list_page(resource, Selection(namespace), _ONE)
        except NotFoundError:
            remedy = f"install the {resource.kind} CRD"
            if remedy != said:
                log.info("serves no OptimizationJobs, the cluster has none", remedy=remedy)
            said = remedy
        except KubeError as error:
            remedy = explain(resource, error)
            if remedy != said:
                log.warning("serves no OptimizationJobs, they cannot be read", remedy=remedy)
            said = remedy
        else:
            SweepController(manager, namespace=namespace, version=version, choice=choice)
            return
        await manager.clock.sleep(_LOOK)
