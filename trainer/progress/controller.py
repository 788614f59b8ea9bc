"""The progress controller (KEP-2779): it runs one log follower for each running training, and for each running step.

A reconcile reads a TrainJob, its JobSet and the candidates for its primary pod, and starts or stops the follower of the
primary pod's log. Followers pass messages to the `ProgressWriter`. Only the leader follows logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice

import anyio
from anyio.abc import TaskGroup

from trainer.api.event_reasons import EventReason
from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.jobset_pods import jobset_keys
from trainer.api.metric_curve import MetricCurve
from trainer.api.progress import CONTAINER, monitoring_enabled, plain_lines_enabled
from trainer.api.trainjob import TRAIN_JOBS, is_managed_here
from trainer.api.trainjob_status import ConditionType
from trainer.framework.status.status import has_ended
from trainer.kube.barrier import Barrier
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.predicates import all_of, annotation_changed, any_of
from trainer.kube.controller.reconcile import Result
from trainer.kube.controller.sources import Kind
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.field_errors import FieldError, invalid
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import (
    Object,
    ObjectKey,
    annotations_of,
    is_being_deleted,
    is_condition_true,
    is_controlled_by,
    key_of,
    uid_of,
)
from trainer.kube.podlogs.instant import Instant
from trainer.kube.resource import PODS
from trainer.kube.selection import Selection
from trainer.progress.follower import Follower, FollowerContext, Listener
from trainer.progress.kept_curve import awaits_final_curve, final_curve, late_pods_until, wanted_curve
from trainer.progress.message_reader import TimedMessage
from trainer.progress.metrics import ProgressSeries
from trainer.progress.primary import (
    CANDIDATES,
    ContainerState,
    candidates,
    candidates_of,
    container_state,
    is_made_of,
    primary_pod,
)
from trainer.progress.protocol import Message, RejectedMessageError
from trainer.progress.silence import shows_silence
from trainer.progress.steps import OnEnd, step_states
from trainer.progress.train_jobs import (
    ShownProgress,
    has_stopped,
    is_settled,
    progress_changed,
    progress_of,
    shown_progress,
    shown_steps,
    shows_remaining,
    train_job_changed,
)
from trainer.progress.training import Training
from trainer.progress.writer import FIELD_MANAGER, ProgressWriter
from trainer.workloads import JOBSETS

log = get_logger(__name__)

_PAUSE_AFTER_DEFECT = 60.0
"""Seconds after which a log is read again whose reading has failed."""

_NAMED_VALUES = 4
"""Dropped values of one field that an event names; the note of an event has at most 1024 characters."""


@dataclass(frozen=True, slots=True)
class ProgressOptions:
    """Options of the progress controller (KEP-2779)."""

    status_interval: float = 5.0
    """Least seconds between two writes of the status of one TrainJob; the end of a run is written at once. Default: 5,
    with which a thousand TrainJobs make 200 requests a second."""
    read_interval: float = 0.5
    """Seconds between two reads of a log that has new lines; 0 reads each line at once. Default: 0.5, with which a
    thousand busy logs wake the manager 2,000 times a second."""
    stall_timeout: float | None = None
    """Seconds without progress after which a training counts as stalled; an annotation of the TrainJob takes
    precedence. Default: None, never."""
    with_pushes: bool = False
    """Whether pods may also post their progress to the status server. Default: False, only their logs report it."""


class ProgressController:
    """Reconciles TrainJobs, of one namespace or of all, with the followers of their logs.

    The constructor registers it with the manager.
    """

    def __init__(self, manager: Manager, options: ProgressOptions, *, namespace: str | None = None) -> None:
        selection = Selection(namespace=namespace)
        train_jobs = manager.informer(TRAIN_JOBS, selection)
        jobsets = manager.informer(JOBSETS, selection)
        # The pods that the plugin of JobSets caches as well.
        pods = manager.informer(PODS, Selection(namespace=namespace, label_selector=JOBSET_NAME))
        pods.add_index(CANDIDATES, candidates)
        self._train_jobs, self._jobsets, self._pods = train_jobs.lister, jobsets.lister, pods.lister
        series = manager.metrics.series(ProgressSeries)
        self._clock = manager.clock
        self._context = FollowerContext(manager.client, manager.clock, series, options.read_interval)
        self._events = EventRecorder(manager.events, FIELD_MANAGER)
        self._following = Barrier("could not follow log")
        self._writer = ProgressWriter(
            manager,
            self._train_jobs,
            options.status_interval,
            series,
            self._stall_of,
            steps_of=self._steps_of,
            is_silent=self._is_silent,
            curve_of=self._curve_of,
            with_pushes=options.with_pushes,
        )
        self._with_pushes = options.with_pushes
        self._default_stall_timeout = options.stall_timeout
        self._trainings: dict[ObjectKey, Training] = {}
        self._tasks: TaskGroup | None = None
        self._started = anyio.Event()
        manager.add(self._run_followers, name="progress followers")
        self._controller = controller = Controller("trainjob-progress", manager, self.reconcile)
        changed = any_of(train_job_changed, progress_changed) if options.with_pushes else train_job_changed
        controller.reconciles(TRAIN_JOBS, selection=selection, predicate=all_of(self._needs_reconcile, changed))
        controller.owns(JOBSETS, selection=selection, predicate=all_of(self._is_followed, annotation_changed))
        controller.watches_source(Kind(pods, jobset_keys, _candidate_changed))

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Start or stop the followers of one TrainJob, and check whether its training has stalled."""
        if self._tasks is None:
            await self._started.wait()
        obj = self._train_jobs.get(key)
        if obj is None or is_being_deleted(obj) or not is_managed_here(obj):
            self._forget(key)
            return None
        if key in self._trainings and self._training_of(obj) is None:
            self._forget(key)
        jobset = self._jobsets.get(key)
        if jobset is not None and not is_controlled_by(jobset, obj):
            jobset = None
        result: Result | None = None
        if all(monitoring_enabled(annotations_of(each)) for each in (obj, jobset or {})):
            result = self._observe(obj, jobset)
        else:
            self._forget(key)
        if has_ended(obj):
            self._close(key)
        if self._is_outdated(key, obj):
            self._writer.refresh(key)
        if awaits_final_curve(obj, annotations_of(obj), uid_of(obj)):
            if (curve := self._curve_of(obj)) is not None and curve.is_final:
                self._writer.refresh(key, at_once=True)
            elif (pause := late_pods_until(obj, self._clock.now())) is not None:
                result = Result(requeue_after=pause)
        return result

    def _observe(self, obj: Object, jobset: Object | None) -> Result | None:
        """Follow what has a log by now, and requeue for the next check for a stall."""
        pods: list[Object] = []
        state = None
        if jobset is not None:
            found = self._pods.by_index(CANDIDATES, candidates_of(key_of(jobset)))
            pods = [pod for pod in found if is_made_of(jobset, pod)]
            primary = primary_pod(pods, jobset)
            state = container_state(primary, jobset, obj) if primary is not None else None
        training = self._training_of(obj) or Training(obj, self._context, self._writer, self._events, self._start)
        self._follow_container(training, (obj, jobset or {}), state)
        training.keep_curve(obj)
        training.steps.observe(obj, step_states(jobset, pods, state))
        if training.place is not None or training.steps:
            self._trainings[training.key] = training
        self._record_push(training, obj)
        pause = training.check((obj, jobset or {}), state, self._default_stall_timeout)
        return None if pause is None else Result(requeue_after=pause)

    def _training_of(self, obj: Object) -> Training | None:
        """The training of this TrainJob, compared by uid; None if none of its logs was followed."""
        training = self._trainings.get(key_of(obj))
        return training if training is not None and training.uid == uid_of(obj) else None

    def _is_followed(self, old: CachedObject | None, new: CachedObject | None) -> bool:
        """Predicate: drops TrainJobs and JobSets without a pod, whose first pod triggers their reconcile."""
        obj = new or old
        if obj is None or obj.key in self._trainings or self._writer.has_state_of(obj.key):
            return True
        return bool(self._pods.keys_by_index(CANDIDATES, candidates_of(obj.key)))

    def _needs_reconcile(self, old: CachedObject | None, new: CachedObject | None) -> bool:
        """Predicate: drops TrainJobs without a pod whose status is right."""
        if self._is_followed(old, new):
            return True
        if new is None:
            return False
        status = {"status": new.get("status")}
        is_right = not shown_steps(status) and not self._is_outdated(new.key, status)
        return not is_right or awaits_final_curve(status, new.annotations, new.uid)

    def _is_outdated(self, key: ObjectKey, obj: Object) -> bool:
        """Whether the status has to be written although no message has arrived."""
        training = self._trainings.get(key)
        is_stalled = training is not None and training.stalls.stall is not None
        is_silent = training is not None and training.silence.is_silent
        return (
            is_condition_true(obj, ConditionType.STALLED) != is_stalled
            or shows_silence(progress_of(obj)) != is_silent
            or (has_stopped(obj) and shows_remaining(obj))
        )

    def _follow_container(self, training: Training, owners: Sequence[Object], state: ContainerState | None) -> None:
        """Follow the log of this container and stop the follower of any other.

        `owners` are the TrainJob and its JobSet, whose annotations say whether ordinary lines count.
        """
        obj, with_plain_lines = owners[0], all(plain_lines_enabled(annotations_of(each)) for each in owners)
        if training.follower is not None and not with_plain_lines:
            training.follower.reports.leave_plain_lines()
        if training.follower is not None:
            if state is not None and training.follower.place == state.place:
                if (since := training.follower.observe(state)) is not None:
                    self._submit(training, training.follower, since)
                return
            training.follower.mark_pod_gone()
        if state is None or state.started is None or state.place == training.place:
            return
        if training.place is None and state.has_ended and is_settled(obj, self._clock.now()):
            return
        # After the newest pod is deleted, the pods of failed attempts before it may still exist.
        if state.has_ended and state.age < training.age:
            return
        training.stop_following()
        # Another pod starts from nothing; its clock may differ from the first pod's.
        shown = shown_progress(obj) if training.place is None else None
        training.place, training.age = state.place, state.age
        training.follower = Follower(
            self._context,
            state,
            shown,
            self._listener(training),
            with_plain_lines=with_plain_lines,
            beside=ShownProgress.of(obj),
        )
        self._start(training.follower, str(training.key), partial(self._end_follower, training))
        if state.missing:
            detail = f"the pod has no container of this name; the log of {state.container} is read"
            error = invalid(f"metadata.annotations[{CONTAINER}]", state.missing, detail)
            training.warn_once(EventReason.INVALID_ANNOTATION, str(error), subject=CONTAINER)

    def _start(self, follower: Follower, name: str, on_end: OnEnd) -> None:
        assert self._tasks is not None, "reconciles wait for the task group"
        self._tasks.start_soon(self._follow, follower, name, on_end, name=f"follower of {name}")

    async def _follow(self, follower: Follower, name: str, on_end: OnEnd) -> None:
        with self._following.around(name) as attempt:
            await follower.run()
        if attempt.error is not None or follower.is_done:
            on_end(attempt.error)

    def _end_follower(self, training: Training, defect: Exception | None) -> None:
        if defect is not None:
            training.follower = training.place = None
            self._controller.enqueue(training.key, after=_PAUSE_AFTER_DEFECT)
        else:
            self._writer.flush(training.key, is_last=True)
            self._controller.enqueue(training.key)

    def _stall_of(self, obj: Object) -> str | None:
        training = self._training_of(obj)
        return None if training is None else training.stalls.stall

    def _is_silent(self, obj: Object) -> bool:
        training = self._training_of(obj)
        return training is not None and training.silence.is_silent

    def _curve_of(self, obj: Object) -> MetricCurve | None:
        """The curve that a TrainJob is to show; None where it wants none, or shows its final one."""
        training = self._training_of(obj)
        kept = wanted_curve(obj, None if training is None else training.curve)
        if kept is None:
            return None
        if not has_ended(obj):
            return kept.curve
        if training is not None and training.place is not None:
            is_read = training.is_read
        else:
            is_read = late_pods_until(obj, self._clock.now()) is None
        return final_curve(obj, kept.curve) if is_read else kept.curve

    def _steps_of(self, obj: Object) -> Object:
        training = self._training_of(obj)
        return shown_steps(obj) if training is None else training.steps.statuses(obj)

    def _close(self, key: ObjectKey) -> None:
        """Drop the state of an ended TrainJob once its log is read to the end."""
        self._writer.close(key)
        training = self._trainings.get(key)
        if training is not None and training.follower is not None:
            if not training.follower.is_done:
                return
            training.follower = None

    def _forget(self, key: ObjectKey) -> None:
        training = self._trainings.pop(key, None)
        if training is not None:
            training.stop()
        self._writer.forget(key)

    def _listener(self, training: Training) -> Listener:
        return Listener(
            partial(self._record_message, training),
            partial(self._record_rejected, training),
            partial(self._writer.flush, training.key),  # the end of a stream may be the end of the training
        )

    def _record_message(self, training: Training, timed: TimedMessage) -> None:
        """Pass a message of the log to the writer and the stall watch."""
        follower, (message, time, _) = training.follower, timed
        if message.dropped:
            self._warn_of_dropped(training, message.dropped)
        if follower is None:
            return
        self._submit(training, follower, time)
        if message.is_checkpoint_only:
            return
        self._record_progress(training, message, time)
        if (pause := training.earlier_check()) is not None:
            self._controller.enqueue(training.key, after=pause)

    def _record_push(self, training: Training, obj: Object) -> None:
        """Record progress that is newer than that of the log, so that it was pushed."""
        shown = shown_progress(obj) if self._with_pushes else None
        if training.follower is None or shown is None:
            return
        reports, time = training.follower.reports, Instant.parse(shown.last_updated_time)
        if time is None or not reports.is_posted(ShownProgress.of(obj)):
            return
        reports.give_way()
        if training.curve is not None:
            training.curve.take_pushed(shown)
            self._writer.refresh(training.key)
        message = Message(progress_percentage=shown.progress_percentage, train_metrics=shown.train_metrics)
        self._record_progress(training, message, time)

    def _record_progress(self, training: Training, message: Message, time: Instant) -> None:
        training.silence.record(time)
        if training.stalls.record(message, time):
            log.info("training makes progress again")
            self._writer.refresh(training.key)

    def _submit(self, training: Training, follower: Follower, newest: Instant) -> None:
        status = follower.reports.status_beside if self._with_pushes else lambda _: follower.status
        self._writer.submit(training.key, training.uid, status, newest, checkpoint=follower.reports.checkpoint)

    def _record_rejected(self, training: Training, error: RejectedMessageError) -> None:
        """Record a warning event, once per pod and kind, for a tagged line that is not a message."""
        text = (
            f"dropped a message about the progress of the training: {error}; further ones of the pod are not reported"
        )
        subject = f"{training.pod} {type(error).__name__}"
        training.warn_once(EventReason.TRAINER_STATUS_REJECTED, text, subject=subject)

    def _warn_of_dropped(self, training: Training, values: Sequence[FieldError]) -> None:
        """Record a warning event, once per pod and field, for values that break a rule."""
        for field, errors in groupby(values, lambda error: error.field.partition("[")[0]):
            named = "; ".join(map(str, islice(errors, _NAMED_VALUES)))
            text = f"dropped values of a message about the progress of the training, of which the rest counts: {named}"
            text += f"; further ones of {field} of the pod are not reported"
            subject = f"{training.pod} {field}"
            training.warn_once(EventReason.TRAINER_STATUS_REJECTED, text, subject=subject)

    async def _run_followers(self) -> None:
        async with anyio.create_task_group() as self._tasks:
            self._started.set()
            await anyio.sleep_forever()


def _candidate_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    return any(pod is not None and candidates(pod) for pod in (old, new))
