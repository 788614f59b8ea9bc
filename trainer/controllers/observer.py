"""Observes the objects of a TrainJob (KEP-2170, "PostExecution Phase")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.trainjob_status import ConditionType
from trainer.controllers.debounce import Debounce
from trainer.controllers.failure_log import FailureLog
from trainer.framework.status.conditions import Conditions
from trainer.framework.status.pod_problems import reported_lines
from trainer.framework.status.status import Observation, is_finished
from trainer.kube.objects import namespace_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.api.trainjob import TrainJob
    from trainer.framework.pipeline import Pipeline
    from trainer.framework.plugin_api.errors import BuildError
    from trainer.framework.plugin_api.extension_points import Outcome
    from trainer.framework.status.status import Creation
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object


class Observer:
    """Calls the plugins of the phase PostExecution, and asks the cluster about what has failed.

    A plugin that raises hides nothing that the others report; the caller has the work queue retry for the sake of the
    errors in the observation.
    """

    def __init__(self, pipeline: Pipeline, client: Client, clock: Clock) -> None:
        self._pipeline = pipeline
        self._failures = FailureLog(client, clock)
        self._debounce = Debounce(clock)

    async def observe(
        self,
        train_job: TrainJob,
        obj: Object,
        creation: Creation | None = None,
        outcome: Outcome | None = None,
        errors: Sequence[BuildError] = (),
    ) -> Observation:
        """What the status is derived from.

        Args:
            train_job: the TrainJob.
            obj: the same as JSON.
            creation: the result of building and deploying. Defaults to None: nothing was built.
            outcome: how it ended. Defaults to None: it goes on, or has finished before.
            errors: of plugins that were asked for the outcome. Defaults to none.
        """
        types = self._pipeline.condition_types
        report, report_errors = self._pipeline.status(train_job)
        errors = (*errors, *report_errors)
        if is_finished(train_job):
            return Observation(creation, jobs=report.jobs, scale=report.scale, plugin_types=types, errors=errors)
        log: tuple[str, ...] = ()
        if outcome is not None and outcome.type is ConditionType.FAILED:
            since = train_job.metadata.creation_timestamp or ""
            outcome = await self._failures.explain(outcome, since=since, earlier=_last_restart(train_job))
            log = await self._failures.tail(outcome.culprit, namespace_of(obj)) if outcome.culprit else ()
        goes_on = outcome is None and not train_job.spec.suspend
        problems, requeue_after = self._debounce.filter(train_job, tuple(report.problems) if goes_on else ())
        return Observation(
            creation=creation,
            outcome=outcome,
            jobs=report.jobs,
            scale=report.scale,
            pod_problems=problems,
            conditions=tuple(report.conditions),
            plugin_types=types,
            log=log,
            errors=errors,
            requeue_after=requeue_after,
        )


def _last_restart(train_job: TrainJob) -> str:
    """What the condition Restarting says about it."""
    conditions = Conditions((train_job.status and train_job.status.conditions) or [], "")
    restarting = conditions.get(ConditionType.RESTARTING)
    lines = reported_lines(restarting)
    return lines[0].partition(": ")[2] if lines else ""
