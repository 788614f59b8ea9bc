"""Looks at what has become of the objects of a TrainJob (KEP-2170, "PostExecution Phase")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.status import Observation

if TYPE_CHECKING:
    from trainer.api.trainjob import TrainJob
    from trainer.framework.extension_points import Outcome
    from trainer.framework.pipeline import Pipeline
    from trainer.framework.status import Creation
    from trainer.kube.objects import Object


class Observer:
    """Asks the plugins of the phase PostExecution."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def observe(
        self,
        train_job: TrainJob,
        obj: Object,  # noqa: ARG002
        creation: Creation | None,
        decided: Outcome | None = None,
    ) -> Observation:
        """What is to be told about the TrainJob.

        Args:
            train_job: the TrainJob.
            obj: the same as JSON, for events.
            creation: what came of building and deploying; None when nothing was built.
            decided: how it ends if the child Jobs have not ended by themselves, such as at its deadline.

        Raises:
            PluginError: a plugin raised.
        """
        outcome = self._pipeline.outcome(train_job) or decided
        return Observation(creation, outcome, self._pipeline.jobs_status(train_job))
