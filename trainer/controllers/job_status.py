"""The status of a TrainJob: observes its objects (KEP-2170, "PostExecution Phase"), and writes what follows from them.

Pod problems are reported once they last. Each change is applied, then counted, and then recorded as events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.api.older_definition import OlderDefinition
from trainer.api.trainjob import TRAIN_JOBS, TrainJob
from trainer.api.trainjob_status import ConditionReason, ConditionType, State, TrainJobStatus
from trainer.controllers.failure_log import FailureLog
from trainer.controllers.job import Job
from trainer.controllers.metrics.trainjobs import Step, TrainJobMetrics
from trainer.framework.deploying.deployer import FIELD_MANAGER
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.reports import Outcome, PodProblem
from trainer.framework.status.status import Conditions, Ensured, Observation, owned_fields, reported_lines
from trainer.framework.status.status_events import StatusEvent, changed_conditions, status_events
from trainer.kube.bounded_dict import BoundedDict
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.errors import KubeError, NotFoundError
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, name_of, namespace_of


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
        goes_on = outcome is None and not job.is_finished
        report, report_errors = self._pipeline.status(train_job, finds_problems=goes_on)
        errors = (*errors, *report_errors)
        if job.is_finished:
            jobs, scale, restarts = report.jobs, report.scale, report.restarts
            return Observation(ensured, jobs=jobs, scale=scale, restarts=restarts, plugin_types=types, errors=errors)
        log: tuple[str, ...] = ()
        if outcome is not None and outcome.type is ConditionType.FAILED:
            since = train_job.metadata.creation_timestamp or ""
            outcome, log = await self._failures.trace(
                outcome, namespace_of(job.stored), since=since, earlier=_last_restart(train_job)
            )
        # Of a suspended one only counts which pods have not ended, and not what they wait for.
        present = (
            each for each in report.problems if not train_job.spec.suspend or each.type is ConditionType.STOPPING
        )
        problems, requeue_after = self._debounce.filter(train_job, tuple(present))
        return Observation(
            ensured=ensured,
            outcome=outcome,
            jobs=report.jobs,
            scale=report.scale,
            restarts=report.restarts,
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


log = get_logger(__name__)


def _without_additions(fields: Object) -> Object:
    """The fields as the definition of 0.1 takes them, which knows no restarts and no state Stopping."""
    older = {name: value for name, value in fields.items() if name != "restarts"}
    if older.get("state") == State.STOPPING:
        held = {each["type"] for each in older.get("conditions") or [] if each["status"] == "True"}
        older["state"] = State.SUSPENDED if ConditionType.SUSPENDED in held else State.RUNNING
    return older


_MOST_UNCONFIRMED = 1024
"""Failed writes that may have been carried out; the oldest is dropped first, without events."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a status, to be counted and recorded once it is stored."""

    fields: Object
    """The status as it was sent."""
    state: str | None
    changed: tuple[str, ...]
    steps: Sequence[Step]
    events: Sequence[StatusEvent]


class StatusWriter:
    """Applies the fields of the status that this controller owns.

    A write whose response is lost may have been carried out: it is counted and recorded when the cache shows it.
    """

    def __init__(self, manager: Manager, recorder: EventRecorder, metrics: TrainJobMetrics) -> None:
        self._client = manager.client
        self._older_definition = OlderDefinition(manager.clock)
        self._recorder = recorder
        self._metrics = metrics
        self._unconfirmed: BoundedDict[str, _Change] = BoundedDict(_MOST_UNCONFIRMED)

    async def write(self, job: Job, status: TrainJobStatus, seen: Observation) -> None:
        """Apply the status if it differs from that of the TrainJob, and record the events of the change."""
        obj, before, fields = job.stored, job.model.status, owned_fields(status, seen.plugin_types)
        present = None if before is None else owned_fields(before, seen.plugin_types)
        unconfirmed = self._unconfirmed.pop(job.uid, None)
        if unconfirmed is not None and unconfirmed.fields == present:
            self._record(obj, unconfirmed)
        if self._older_definition.is_present:
            fields, present = _without_additions(fields), None if present is None else _without_additions(present)
        if present == fields:
            return
        applied = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            # The uid keeps the status of a deleted TrainJob from a new one of the same name.
            "metadata": {"name": name_of(obj), "namespace": namespace_of(obj), "uid": job.uid},
            "status": fields,
        }
        change = _Change(
            fields,
            status.state,
            tuple(condition.type for condition in changed_conditions(before, status)),
            self._metrics.steps(job.model, status),
            tuple(status_events(before, status, seen)),
        )
        try:
            await self._client.apply(TRAIN_JOBS, applied, field_manager=FIELD_MANAGER, force=True, subresource="status")
        except NotFoundError:
            log.info("dropped status, the TrainJob is gone")
            return
        except KubeError as error:
            if self._older_definition.learn(error, "status.state"):
                log.warning(
                    "cannot write all of the status, the CRD of TrainJobs is older: apply the CRDs of this version"
                )
            self._unconfirmed[job.uid] = change
            raise
        self._record(obj, change)

    def refuse(self, obj: Object, message: str) -> None:
        """Record why a TrainJob cannot be read; without that there is no status to write."""
        self._recorder.record(obj, type="Warning", reason=ConditionReason.JOBS_BUILD_FAILED, message=message)

    def _record(self, obj: Object, change: _Change) -> None:
        for count, number in change.steps:
            count(number)
        log.info("wrote status", state=change.state, changed=change.changed)
        for kind, reason, message in change.events:
            self._recorder.record(obj, type=kind, reason=reason, message=message)
