"""Admission as a tenant meets it."""

from __future__ import annotations

from typing import Any

from trainer.api.trainingruntime import TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.testing import StaticReader
from trainer.framework.runtimes.runtimes import FoundRuntime, RuntimeNotFoundError, Runtimes, runtime_place
from trainer.framework.startup.registry import Registry
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import Resource
from trainer.plugins.jobset.plugin import JobSetPlugin
from trainer.webhooks.live_runtimes import LiveRuntimes
from trainer.webhooks.train_job import review_train_job
from trainer_kube_testing import FakeClient


class NothingCached(Runtimes):
    """A cache that is still empty, so that the webhook asks the API server."""

    def __init__(self) -> None:
        """It has no informers."""

    def present(self, resource: Resource, key: ObjectKey) -> None:
        """See `Runtimes.present`."""

    async def find(self, train_job: Any, *, built_on: str = "", is_built: bool = False) -> FoundRuntime:
        """See `Runtimes.find`."""
        resource, key = runtime_place(train_job)
        raise RuntimeNotFoundError(resource.kind, key)


async def review(obj: Object, *stored: Object) -> tuple[list[str], list[str]]:
    """Errors and warnings of admission, which looks up runtimes at the API server."""
    client = FakeClient(*stored, resources=(TRAIN_JOBS, TRAINING_RUNTIMES))
    pipeline = Pipeline(Registry([JobSetPlugin(StaticReader())]))
    found = await review_train_job(obj, None, pipeline, LiveRuntimes(NothingCached(), client))
    return [str(error) for error in found.errors], [str(warning) for warning in found.warnings]
