"""Looks at what has become of the objects of a TrainJob (KEP-2170, "PostExecution Phase")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionType
from trainer.controllers.failure_log import FailureLog
from trainer.controllers.patience import Patience
from trainer.framework.status.conditions import Conditions
from trainer.framework.status.pod_problems import told_by
from trainer.framework.status.status import Observation, is_finished
from trainer.kube.objects import namespace_of

if TYPE_CHECKING:
    from trainer.api.trainjob import TrainJob
    from trainer.framework.pipeline import Pipeline
    from trainer.framework.plugin_api.extension_points import Outcome
    from trainer.framework.status.status import Creation
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object


class Observer:
    """Asks the plugins of the phase PostExecution, and the cluster about what has failed.

    A plugin that raises keeps nobody from hearing what the others have seen; the caller shall raise `problems`
    afterwards, for the work queue to try again.
    """

    def __init__(self, pipeline: Pipeline, client: Client, clock: Clock) -> None:
        self._pipeline = pipeline
        self._failures = FailureLog(client, clock)
        self._patience = Patience(clock)

    async def observe(
        self,
        train_job: TrainJob,
        obj: Object,
        creation: Creation | None,
        decided: Outcome | None = None,
    ) -> Observation:
        """What is to be told about the TrainJob.

        Args:
            train_job: the TrainJob.
            obj: the same as JSON.
            creation: what came of building and deploying; None when nothing was built.
            decided: how it ends if the child Jobs have not ended by themselves, such as at its deadline.
        """
        pipeline, types = self._pipeline, self._pipeline.condition_types
        jobs, problems = pipeline.jobs_status(train_job)
        scale, errors = pipeline.node_scale(train_job)
        problems += errors
        if is_finished(train_job):
            return Observation(creation, jobs=jobs, scale=scale, plugin_types=types, problems=tuple(problems))
        ended, errors = pipeline.outcome(train_job)
        problems += errors
        outcome = ended or decided
        log: tuple[str, ...] = ()
        if outcome is not None and outcome.type is ConditionType.FAILED:
            since = train_job.metadata.creation_timestamp or ""
            outcome = await self._failures.explain(outcome, since=since, earlier=_last_restart(train_job))
            log = await self._failures.tail(outcome.culprit, namespace_of(obj)) if outcome.culprit else ()
        is_going_on = outcome is None and not train_job.spec.suspend
        present, errors = pipeline.impediments(train_job) if is_going_on else ([], [])
        problems += errors
        impediments, look_again = self._patience.sift(train_job, present)
        conditions, errors = pipeline.status_conditions(train_job)
        return Observation(
            creation=creation,
            outcome=outcome,
            jobs=jobs,
            scale=scale,
            impediments=impediments,
            conditions=tuple(conditions),
            plugin_types=types,
            log=log,
            problems=(*problems, *errors),
            look_again_after=look_again,
        )


def _last_restart(train_job: TrainJob) -> str:
    """What the condition Restarting remembers."""
    conditions = Conditions((train_job.status and train_job.status.conditions) or [], "")
    restarting = conditions.get(ConditionType.RESTARTING)
    lines = told_by(restarting)
    return lines[0].partition(": ")[2] if lines else ""
