"""Keeps the progress of TrainJobs current (KEP-2779): one follower for each training that runs.

A reconcile looks at a TrainJob, its JobSet and the candidates for its primary pod, and sees to it that the right log is
followed. What the logs say reaches the `ProgressWriter`. Only the leader follows.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

import anyio
import structlog

from trainer.api.event_reasons import EventReason
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.progress import CONTAINER, STALL_SECONDS, monitoring_enabled, stall_seconds
from trainer.api.trainjob import TRAIN_JOBS, is_managed_here
from trainer.api.trainjob_status import ConditionType, TrainerStatus
from trainer.framework.status.status import end_of, has_ended
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.predicates import annotation_changed
from trainer.kube.controller.reconcile import Result
from trainer.kube.controller.sources import Kind
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.field_errors import invalid
from trainer.kube.objects import (
    ObjectKey,
    annotations_of,
    find_condition,
    is_being_deleted,
    is_condition_true,
    is_controlled_by,
    key_of,
    uid_of,
)
from trainer.kube.podlogs.instant import Instant
from trainer.kube.resource import JOBSETS, PODS
from trainer.kube.selection import Selection
from trainer.progress.follower import Follower, FollowerContext
from trainer.progress.history import History
from trainer.progress.history_server import HistoryServer
from trainer.progress.metrics import ProgressSeries
from trainer.progress.primary_pod import CANDIDATES, candidates, candidates_of, container_state, is_made_of, primary_pod
from trainer.progress.stalls import Before, StallWatch
from trainer.progress.writer import FIELD_MANAGER, ProgressWriter, is_at_rest, shows_remaining

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from anyio.abc import TaskGroup

    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.field_errors import FieldError
    from trainer.kube.manager.manager import Manager
    from trainer.kube.objects import Object
    from trainer.progress.options import ProgressOptions
    from trainer.progress.primary_pod import ContainerState
    from trainer.progress.protocol import Message, RejectedMessageError

log = structlog.get_logger(__name__)

SETTLED_AFTER = timedelta(minutes=10)
"""How long after the end of a TrainJob a manager that has just started still reads its log."""

_PAUSE_AFTER_DEFECT = 60.0

_TOLD_VALUES = 4
"""Dropped values of one field that an event names: its note has at most 1024 characters."""


class ProgressController:
    """Registers itself with the manager, which runs it.

    Args:
        manager: provides the client, informers and the clock.
        options: how logs are followed.
        namespace: where TrainJobs are looked after; default: everywhere.

    Attributes:
        history: samples of the metrics of running trainings.
    """

    def __init__(self, manager: Manager, options: ProgressOptions, *, namespace: str | None = None) -> None:
        selection = Selection(namespace=namespace)
        train_jobs = manager.informer(TRAIN_JOBS, selection)
        jobsets = manager.informer(JOBSETS, selection)
        # The pods that the plugin of JobSets caches as well.
        pods = manager.informer(PODS, Selection(namespace=namespace, label_selector=JOBSET_NAME))
        pods.add_index(CANDIDATES, candidates)
        self._train_jobs, self._jobsets, self._pods = train_jobs.lister, jobsets.lister, pods.lister
        self.history = History(samples=options.history_samples)
        series = manager.metrics.series(ProgressSeries)
        self._clock = manager.clock
        self._context = FollowerContext(manager.client, manager.clock, series, options.read_interval)
        self._events = EventRecorder(manager.events, FIELD_MANAGER)
        self._stalls = StallWatch(manager.clock, series)
        self._writer = ProgressWriter(manager, self._train_jobs, options.status_interval, series, self._stall_of)
        self._default_stall_timeout = options.stall_timeout
        self._trainings: dict[ObjectKey, _Training] = {}
        if options.serve_history:
            HistoryServer(self.history).register(manager)
        self._tasks: TaskGroup | None = None
        self._started = anyio.Event()
        manager.add(self._run_followers, name="progress followers")
        self._controller = controller = Controller("trainjob-progress", manager, self.reconcile)
        controller.reconciles(TRAIN_JOBS, selection=selection, predicate=_train_job_changed)
        controller.owns(JOBSETS, selection=selection, predicate=annotation_changed)
        controller.watches_source(Kind(pods, _jobset_of_pod, _candidate_changed))

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """See to it that the right log is followed for one TrainJob."""
        await self._started.wait()
        obj = self._train_jobs.get(key)
        if obj is None or is_being_deleted(obj) or not is_managed_here(obj):
            self._forget(key)
            return None
        known = self._trainings.get(key)
        if known is not None and known.uid != uid_of(obj):
            self._forget(key)
        jobset = self._jobsets.get(key)
        if jobset is not None and not is_controlled_by(jobset, obj):
            jobset = None
        result: Result | None = None
        if all(monitoring_enabled(annotations_of(each)) for each in (obj, jobset or {})):
            state = self._look(jobset, obj) if jobset is not None else None
            self._point(key, obj, state)
            result = self._check_stall(key, (obj, jobset or {}), state)
        else:
            self._forget(key)
        if has_ended(obj):
            self._close(key)
        elif self._is_outdated(obj):
            self._writer.refresh(key)
        return result

    def _is_outdated(self, obj: Object) -> bool:
        """Whether what a TrainJob shows has to be written anew without news from its log."""
        if is_condition_true(obj, ConditionType.STALLED) != (self._stalls.stall_of(key_of(obj)) is not None):
            return True
        return is_at_rest(obj) and shows_remaining(obj)

    def _look(self, jobset: Object, train_job: Object) -> ContainerState | None:
        """What the container whose log tells of the progress is doing; None while there is none."""
        pods = self._pods.by_index(CANDIDATES, candidates_of(key_of(jobset)))
        pod = primary_pod((pod for pod in pods if is_made_of(jobset, pod)), jobset)
        return container_state(pod, jobset, train_job) if pod is not None else None

    def _point(self, key: ObjectKey, obj: Object, state: ContainerState | None) -> None:
        """Have this container's log followed, and no other one."""
        training = self._trainings.get(key)
        if training is not None and training.follower is not None:
            if state is not None and training.follower.place == state.place:
                if (since := training.follower.see(state)) is not None:
                    self._submit(training, training.follower, since)
                return
            training.follower.lose()
        if state is None or state.started is None:
            return
        if training is None:
            if state.has_ended and _is_settled(obj, self._clock.now()):
                return
            training = self._trainings[key] = _Training(self, obj)
        # When the newest pod is gone, failed ones before it may be left.
        is_older = state.has_ended and state.age < training.age
        if training.place != state.place and not is_older:
            training.stop()
            # Of another pod nothing goes on in this one; their clocks may differ, too.
            shown = _shown(obj) if training.place is None else None
            training.place, training.age = state.place, state.age
            training.follower = Follower(self._context, state, shown, training)
            self._start(training, training.follower)
            if state.missing:
                detail = f"the pod has no container of this name; the log of {state.container} is read"
                error = invalid(f"metadata.annotations[{CONTAINER}]", state.missing, detail)
                training.tell_once(self._events, EventReason.INVALID_ANNOTATION, str(error), subject=CONTAINER)

    def _start(self, training: _Training, follower: Follower) -> None:
        assert self._tasks is not None, "reconciles wait for the task group"
        training.scope = anyio.CancelScope()
        self._tasks.start_soon(self._follow, training, follower, training.scope, name=f"follower of {training.key}")

    async def _follow(self, training: _Training, follower: Follower, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await follower.run()
            except Exception:
                # One odd log must not end the manager, and is looked at again.
                log.exception("following a log failed")
                training.follower = training.place = None
                self._controller.enqueue(training.key, after=_PAUSE_AFTER_DEFECT)
            else:
                self._writer.flush(training.key, is_last=True)
                self._controller.enqueue(training.key)

    def _check_stall(self, key: ObjectKey, told_by: Sequence[Object], state: ContainerState | None) -> Result | None:
        """Warn of a training that runs and gets nowhere; says when to look again."""
        training = self._trainings.get(key)
        if training is None or state is None or state.has_ended or has_ended(told_by[0]):
            self._stalls.forget(key)
            return None
        timeout, is_own = self._stall_timeout(training, told_by)
        self._stalls.watch(
            key,
            (state.place, state.started),
            timeout,
            is_expected_to_report=is_own,
            before=_before(told_by[0], training.follower, state),
        )
        complaint = self._stalls.check(key)
        if complaint is not None:
            log.warning("training makes no progress", complaint=complaint)
            self._events.record(
                training.reference, type="Warning", reason=EventReason.TRAINING_STALLED, message=complaint
            )
        pause = self._stalls.next_check(key)
        training.is_checked = pause is not None
        return None if pause is None else Result(requeue_after=pause)

    def _stall_of(self, obj: Object) -> str | None:
        """What is to be told of the stall of this TrainJob, and of no other one of its name."""
        training = self._trainings.get(key_of(obj))
        return None if training is None or training.uid != uid_of(obj) else self._stalls.stall_of(training.key)

    def _stall_timeout(self, training: _Training, told_by: Sequence[Object]) -> tuple[float | None, bool]:
        """Seconds, and whether they were set for this very training."""
        for obj in told_by:
            try:
                seconds = stall_seconds(annotations_of(obj))
            except ValueError as error:
                training.tell_once(self._events, EventReason.INVALID_ANNOTATION, str(error), subject=STALL_SECONDS)
                continue
            if seconds is not None:
                return seconds, True
        return self._default_stall_timeout, False

    def _close(self, key: ObjectKey) -> None:
        """The TrainJob has ended: it no longer shows what remains, and once all is read, nothing else is kept of it."""
        self._writer.close(key)
        training = self._trainings.get(key)
        if training is not None and training.follower is not None:
            if not training.follower.is_done:
                return
            training.follower = None
        self.history.forget(key)

    def _forget(self, key: ObjectKey) -> None:
        training = self._trainings.pop(key, None)
        if training is not None:
            training.stop()
        self.history.forget(key)
        self._stalls.forget(key)
        self._writer.forget(key)

    def heard(self, training: _Training, message: Message, time: Instant) -> None:
        """A training has reported something."""
        follower = training.follower
        if follower is None:
            return
        self.history.record(training.key, training.uid, message, time)
        self._submit(training, follower, time)
        if self._stalls.record(training.key, message, time):
            log.info("training makes progress again")
            self._writer.refresh(training.key)
        if not training.is_checked and (pause := self._stalls.next_check(training.key)) is not None:
            training.is_checked = True
            self._controller.enqueue(training.key, after=pause)

    def _submit(self, training: _Training, follower: Follower, newest: Instant) -> None:
        self._writer.submit(training.key, training.uid, lambda: follower.status, newest)

    def refused(self, training: _Training, error: RejectedMessageError) -> None:
        """A training has reported something that is no message; people are warned once per pod."""
        pod, _ = training.place or ("", "")
        text = (
            f"dropped a message about the progress of the training: {error}; further ones of the pod are not reported"
        )
        training.tell_once(self._events, EventReason.TRAINER_STATUS_REJECTED, text, subject=pod)

    def dropped(self, training: _Training, values: Sequence[FieldError]) -> None:
        """A training has reported values that break a rule; people are warned once per pod and field of a message."""
        pod, _ = training.place or ("", "")
        for field, errors in groupby(values, lambda error: error.field.partition("[")[0]):
            told = "; ".join(map(str, islice(errors, _TOLD_VALUES)))
            text = f"dropped values of a message about the progress of the training, of which the rest counts: {told}"
            further = f"; further ones of {field} of the pod are not reported"
            training.tell_once(
                self._events, EventReason.TRAINER_STATUS_REJECTED, text + further, subject=f"{pod} {field}"
            )

    def ended(self, training: _Training) -> None:
        """What a training has reported may have been all."""
        self._writer.flush(training.key)

    async def _run_followers(self) -> None:
        async with anyio.create_task_group() as self._tasks:
            self._started.set()
            await anyio.sleep_forever()


class _Training:
    """What is known of one TrainJob whose log is, or was, followed."""

    def __init__(self, controller: ProgressController, obj: Object) -> None:
        self._controller = controller
        self.key = key_of(obj)
        self.uid = uid_of(obj)
        self.reference: Object = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            "metadata": {"name": self.key.name, "namespace": self.key.namespace, "uid": self.uid},
        }
        self.place: tuple[str, str] | None = None
        """Pod and container that are, or were last, followed."""
        self.age: tuple[int, str] = (0, "")
        """See `ContainerState`."""
        self.follower: Follower | None = None
        """None once all is read of a TrainJob that has ended."""
        self.scope: anyio.CancelScope | None = None
        self.is_checked = False
        """Whether it will be looked at when a stall would begin."""
        self._told: set[tuple[str, str]] = set()

    def stop(self) -> None:
        """Follow no more."""
        if self.scope is not None:
            self.scope.cancel()
        self.follower = None

    def on_message(self, message: Message, time: Instant) -> None:
        """See `Listener`."""
        self._controller.heard(self, message, time)

    def on_rejected(self, error: RejectedMessageError) -> None:
        """See `Listener`."""
        self._controller.refused(self, error)

    def on_dropped(self, values: Sequence[FieldError]) -> None:
        """See `Listener`."""
        self._controller.dropped(self, values)

    def on_end(self) -> None:
        """See `Listener`."""
        self._controller.ended(self)

    def tell_once(self, events: EventRecorder, reason: str, message: str, *, subject: str = "") -> None:
        """Warn people with an event, unless one of this reason and subject was recorded before."""
        if (reason, subject) not in self._told:
            self._told.add((reason, subject))
            log.info("warned of the progress of a training", reason=reason, message=message)
            events.record(self.reference, type="Warning", reason=reason, message=message)


def _shown(obj: Object) -> TrainerStatus | None:
    """The progress that a TrainJob shows; None also when somebody has written what cannot be read."""
    shown = (obj.get("status") or {}).get("trainerStatus")
    try:
        return TrainerStatus.from_object(shown) if shown else None
    except InvalidObjectError:
        return None


def _before(obj: Object, follower: Follower | None, state: ContainerState) -> Before:
    """What an earlier manager has left about the present run."""
    stalled = find_condition(obj, ConditionType.STALLED) or {}
    since = Instant.parse(stalled.get("lastTransitionTime") or "")
    is_of_run = since is not None and state.started is not None and since > state.started
    is_stalled = is_of_run and stalled.get("status") == "True"
    status = follower.resumed if follower is not None else None
    return Before(status, str(stalled.get("message") or "") if is_stalled else None)


def _is_settled(obj: Object, now: datetime) -> bool:
    """Whether the log of a TrainJob that has ended need not be read: whoever said that it has ended did that.

    A manager that finds thousands of them when it starts reads only those of which another may not have had the time.
    """
    if shows_remaining(obj):
        return False
    ended = end_of(obj)
    return ended is not None and now - ended > SETTLED_AFTER


def _train_job_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    """Anything but the rest of the status, which is written every few seconds."""
    return old is None or new is None or _decisive(old) != _decisive(new)


def _decisive(obj: CachedObject) -> tuple[Any, ...]:
    told = {"status": obj.get("status")}
    is_outdated = is_at_rest(told) and shows_remaining(told)
    return obj.uid, is_being_deleted(obj), annotations_of(obj), has_ended(told), is_outdated


def _candidate_changed(old: CachedObject | None, new: CachedObject | None) -> bool:
    return any(pod is not None and candidates(pod) for pod in (old, new))


def _jobset_of_pod(pod: CachedObject) -> Iterable[ObjectKey]:
    name = pod.labels.get(JOBSET_NAME)
    return (ObjectKey(pod.key.namespace, name),) if name else ()
