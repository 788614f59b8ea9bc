"""Statuses that wait until the Jobs of others are created: whatever happens meanwhile, none is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import train_job_object
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.objects import find_condition, name_of
from trainer.kube.resource import JOBSETS
from trainer.kube.testing import settle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trainer.kube.objects import Object

CREATED = 30
"""More than are worked on at once."""

COMPLETED = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "jobset completed"}


def named(name: str, **spec: Any) -> Object:
    """A TrainJob of the crowd."""
    return train_job_object(**spec) | {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}}


class Crowd(Cluster):
    """Many TrainJobs at once, of which the one named `demo` is the first: its status waits for the others."""

    async def submit(self, **spec: Any) -> None:
        """Create all of them; requests for the JobSets of the last ones are not answered until `finish`."""
        self.last = self.client.faults.hold(verb="apply", resource=JOBSETS, name="last")
        self.client.add(train_job_object(**spec))
        for number in range(CREATED):
            self.client.add(named(f"other-{number}"))
        self.client.add(named("last"))

    def of(self, name: str) -> Object:
        """A TrainJob."""
        (found,) = [obj for obj in self.client.objects(TRAIN_JOBS) if name_of(obj) == name]
        return found

    @property
    def demo(self) -> Object:
        """The TrainJob that things happen to."""
        return self.of("demo")
