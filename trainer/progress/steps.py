"""The steps beside the training: initializers and the exporter, whose containers report their progress like trainings.

A step is known by the name of its container. Its log is followed while the container runs, so a TrainJob has as many
followers more as it has steps that run, and a TrainJob without steps has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.jobset_pods import recency_of
from trainer.api.trainjob_status import STEP_FIELDS, StepState, StepStatus, TrainerStatus
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, key_of, uid_of
from trainer.progress.follower import Follower, FollowerContext, Listener
from trainer.progress.message_reader import TimedMessage
from trainer.progress.primary import ContainerState, is_of, state_of
from trainer.progress.protocol import RejectedMessageError
from trainer.progress.train_jobs import is_settled, shown_steps
from trainer.progress.writer import ProgressWriter
from trainer.workloads.containers import containers_of

OnEnd = Callable[[Exception | None], None]
"""Called when a log is read to its end, or with what went wrong."""
Start = Callable[[Follower, str, OnEnd], None]
"""Starts a follower under a name for people."""


log = get_logger(__name__)


class Steps:
    """Follows the logs of the steps of one TrainJob; the caller calls `observe` at each reconcile."""

    __slots__ = ("_by_field", "_context", "_gone", "_key", "_start", "_uid", "_writer")

    def __init__(self, obj: Object, context: FollowerContext, writer: ProgressWriter, start: Start) -> None:
        self._key, self._uid = key_of(obj), uid_of(obj)
        self._context = context
        self._writer = writer
        self._start = start
        self._by_field: dict[str, _Step] = {}
        self._gone: frozenset[str] = frozenset()
        """Fields that an earlier write has shown, of steps whose pods were deleted before they ended."""

    def observe(self, obj: Object, states: Mapping[str, ContainerState]) -> None:
        """Start and stop followers, and queue a write when a step has begun or ended.

        Args:
            obj: the TrainJob.
            states: of the steps that have started, by container; see `step_states`.
        """
        shown = shown_steps(obj)
        for container, name in STEP_FIELDS.items():
            if (state := states.get(container)) is not None:
                self._by_field[name] = self._observed(obj, name, self._by_field.get(name), state)
            else:
                self._miss(name, _state_in(shown.get(name)))
        if _words(self.statuses(obj)) != _words(shown):
            self._writer.refresh(self._key)

    def statuses(self, obj: Object) -> Object:
        """The fields of the status that show the steps of the TrainJob, also those of an earlier manager."""
        kept = {name: value for name, value in shown_steps(obj).items() if name not in self._gone}
        return kept | {name: step.status for name, step in self._by_field.items()}

    def __bool__(self) -> bool:
        """Whether there is, or was, a step."""
        return bool(self._by_field or self._gone)

    def stop(self) -> None:
        """Read no more logs."""
        for step in self._by_field.values():
            step.stop()

    def _miss(self, name: str, shown: StepState | None) -> None:
        """Note that no pod has the container of a step, as while the TrainJob is suspended."""
        step = self._by_field.get(name)
        if step is None:
            self._gone |= {name} if shown is StepState.RUNNING else frozenset()
        elif step.state.has_ended:
            if step.follower is not None:
                step.follower.mark_pod_gone()
        else:
            step.stop()
            del self._by_field[name]
            self._gone |= {name}

    def _observed(self, obj: Object, name: str, step: _Step | None, state: ContainerState) -> _Step:
        """The step in the present state of its container."""
        if step is not None and step.state.place == state.place:
            step.observe(state)
            return step
        if step is not None:
            step.stop()
        shown = _parsed(shown_steps(obj).get(name))
        is_read = shown is not None and shown.state is state.as_step and state.has_ended
        if is_read or (state.has_ended and is_settled(obj, self._context.clock.now())):
            return _Step(state, reported=_as_training(shown))
        follower = Follower(self._context, state, _as_training(shown), self._listener(name))
        step = _Step(state, follower)

        def end(_: Exception | None) -> None:
            step.stop()
            self._writer.flush(self._key, is_last=True)

        self._start(follower, f"{name} of {self._key}", end)
        return step

    def _listener(self, name: str) -> Listener:
        warned = set[str]()

        def record_message(timed: TimedMessage) -> None:
            self._writer.submit(self._key, self._uid, None, timed.time)
            if timed.message.dropped:
                warn_once("value", str(timed.message.dropped[0]))

        def warn_once(what: str, detail: str) -> None:
            if what not in warned:
                warned.add(what)
                about = {"train_job": str(self._key), "field": name, "what": what}
                log.warning("dropped what a step reports", **about, detail=detail)

        def record_rejected(error: RejectedMessageError) -> None:
            warn_once("message", str(error))

        return Listener(record_message, record_rejected, partial(self._writer.flush, self._key))


@dataclass(slots=True)
class _Step:
    """One container that is, or was, followed."""

    state: ContainerState
    follower: Follower | None = None
    """None when its log is not read any more, or not again since an earlier manager has."""
    reported: TrainerStatus | None = None
    """Its last report, once its log is not read."""

    @property
    def status(self) -> Object:
        """The value of its field."""
        state = self.state.as_step
        reported = self.reported if self.follower is None else self.follower.status
        if reported is None:
            return StepStatus(state=state).to_object()
        is_running, is_complete = state is StepState.RUNNING, state is StepState.COMPLETE
        return StepStatus(
            state=state,
            progress_percentage=None if is_complete else reported.progress_percentage,
            estimated_remaining_seconds=reported.estimated_remaining_seconds if is_running else None,
            estimated_remaining_time_summary=reported.estimated_remaining_time_summary if is_running else None,
            last_updated_time=reported.last_updated_time,
        ).to_object()

    def observe(self, state: ContainerState) -> None:
        """Update the state of the container."""
        self.state = state
        if self.follower is not None:
            self.follower.observe(state)

    def stop(self) -> None:
        """Read no more of its log."""
        if self.follower is not None:
            self.follower.stop()
            self.reported, self.follower = self.follower.status, None


def step_states(
    jobset: Object | None, pods: Sequence[Object], trainer: ContainerState | None
) -> dict[str, ContainerState]:
    """The containers that are steps and have started, by name, each in the newest pod that has it.

    Args:
        jobset: that of the TrainJob; None without one.
        pods: of the JobSet, the candidates for the primary pod, among which is the pod of each step.
        trainer: the container of the training, which is no step whatever its name.
    """
    if jobset is None:
        return {}
    newest: dict[str, Object] = {}
    for pod in sorted((pod for pod in pods if is_of(jobset, pod)), key=recency_of):
        newest |= dict.fromkeys(STEP_FIELDS.keys() & containers_of(pod), pod)
    states = {name: state_of(pod, name) for name, pod in newest.items()}
    training = trainer.place if trainer is not None else None
    return {name: state for name, state in states.items() if state.started is not None and state.place != training}


def _parsed(shown: object) -> StepStatus | None:
    try:
        return StepStatus.from_object(shown) if isinstance(shown, dict) else None
    except InvalidObjectError:
        return None


def _state_in(shown: object) -> StepState | None:
    status = _parsed(shown)
    return status.state if status is not None else None


def _words(statuses: Object) -> dict[str, StepState | None]:
    return {name: _state_in(shown) for name, shown in statuses.items()}


def _as_training(shown: StepStatus | None) -> TrainerStatus | None:
    """The reports of a step as the status of a training run; None without any."""
    if shown is None or shown.last_updated_time is None:
        return None
    return TrainerStatus(
        progress_percentage=shown.progress_percentage,
        estimated_remaining_seconds=shown.estimated_remaining_seconds,
        estimated_remaining_time_summary=shown.estimated_remaining_time_summary,
        last_updated_time=shown.last_updated_time,
    )
