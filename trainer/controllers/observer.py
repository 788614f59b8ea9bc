"""Observes the objects of a TrainJob (KEP-2170, "PostExecution Phase"); pod problems are reported once they last."""

from __future__ import annotations

from collections.abc import Sequence

from trainer.api.trainjob import TrainJob
from trainer.api.trainjob_status import ConditionType
from trainer.controllers.failure_log import FailureLog
from trainer.controllers.job import Job
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.reports import Outcome, PodProblem
from trainer.framework.status.conditions import Conditions, reported_lines
from trainer.framework.status.status import Ensured, Observation
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.objects import namespace_of


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
        job: Job,
        ensured: Ensured | None = None,
        outcome: Outcome | None = None,
        errors: Sequence[BuildError] = (),
    ) -> Observation:
        """Observe what the status is derived from."""
        train_job, types = job.model, self._pipeline.condition_types
        is_new = ensured is not None and ensured.is_new
        goes_on = outcome is None and not job.is_finished and not train_job.spec.suspend
        report, report_errors = self._pipeline.status(train_job, finds_problems=goes_on and not is_new)
        errors = (*errors, *report_errors)
        if job.is_finished:
            return Observation(ensured, jobs=report.jobs, scale=report.scale, plugin_types=types, errors=errors)
        log: tuple[str, ...] = ()
        if outcome is not None and outcome.type is ConditionType.FAILED:
            since = train_job.metadata.creation_timestamp or ""
            outcome = await self._failures.explain(outcome, since=since, earlier=_last_restart(train_job))
            log = await self._failures.tail(outcome.culprit, namespace_of(job.stored)) if outcome.culprit else ()
        problems, requeue_after = self._debounce.filter(train_job, tuple(report.problems))
        return Observation(
            ensured=ensured,
            outcome=outcome,
            jobs=report.jobs,
            scale=report.scale,
            pod_problems=problems,
            conditions=tuple(report.conditions),
            plugin_types=types,
            log=log,
            errors=errors,
            requeue_after=soonest(requeue_after, None if ensured is None else ensured.retry_after),
        )


def soonest(*pauses: float | None) -> float | None:
    """The shortest of these pauses; None without any."""
    return min((each for each in pauses if each is not None), default=None)


def _last_restart(train_job: TrainJob) -> str:
    lines = reported_lines(Conditions.of(train_job.status).get(ConditionType.RESTARTING))
    return lines[0].partition(": ")[2] if lines else ""


SECONDS = 1.0
"""Seconds that a problem must last: enough for the other pods of a large job to report the same, and short for people
who wait."""

_REMEMBERED = 4096
"""Limit of the TrainJobs whose problems are held back; the oldest is dropped first, and its problem is reported later.
"""


class Debounce:
    """Reports a reason for which pods cannot start only once it has lasted.

    The one event that there is shall say how many pods are concerned; and some trouble, such as a volume that is still
    being created, is over at once. What has been reported before a restart of the manager is not held back.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: BoundedDict[str, dict[str, float]] = BoundedDict(_REMEMBERED)

    def filter(self, train_job: TrainJob, present: Sequence[PodProblem]) -> tuple[Sequence[PodProblem], float | None]:
        """The problems to report now, and after how many seconds to requeue if some are held back."""
        now, uid = self._clock.monotonic(), train_job.metadata.uid or ""
        before, reported = self._since.pop(uid, None) or {}, _reported(train_job)
        new = {
            each.reason: max(SECONDS, each.debounce)
            for each in present
            if each.type is ConditionType.PENDING and each.reason not in reported
        }
        since = {reason: before.get(reason, now) for reason in new}
        held = {reason: left for reason in new if (left := since[reason] + new[reason] - now) > 0}
        if held:
            self._since[uid] = since
        passed = tuple(each for each in present if each.type is not ConditionType.PENDING or each.reason not in held)
        return passed, min(held.values(), default=None)


def _reported(train_job: TrainJob) -> frozenset[str]:
    pending = Conditions.of(train_job.status).get(ConditionType.PENDING)
    if pending is None or pending.status != "True":
        return frozenset()
    return frozenset(line.partition(": ")[0] for line in reported_lines(pending))
