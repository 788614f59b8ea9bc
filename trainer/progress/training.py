"""What the progress controller keeps of one training."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainer.api.event_reasons import EventReason
from trainer.api.progress import STALL_SECONDS, stall_seconds
from trainer.api.trainjob import TRAIN_JOBS
from trainer.api.trainjob_status import ConditionType
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, annotations_of, find_condition, key_of, uid_of
from trainer.kube.podlogs.instant import Instant
from trainer.progress.follower import Follower, FollowerContext
from trainer.progress.kept_curve import KeptCurve, wanted_curve
from trainer.progress.primary import ContainerState
from trainer.progress.silence import SilenceWatch
from trainer.progress.stalls import StallWatch
from trainer.progress.steps import Start, Steps
from trainer.progress.train_jobs import has_stopped, reported_of
from trainer.progress.writer import ProgressWriter

log = get_logger(__name__)


class Training:
    """The state of one TrainJob whose logs are followed now or were followed."""

    def __init__(
        self, obj: Object, context: FollowerContext, writer: ProgressWriter, events: EventRecorder, start: Start
    ) -> None:
        self.key = key_of(obj)
        self.uid = uid_of(obj)
        self.reference: Object = {
            "apiVersion": obj["apiVersion"],
            "kind": TRAIN_JOBS.kind,
            "metadata": {"name": self.key.name, "namespace": self.key.namespace, "uid": self.uid},
        }
        self.place: tuple[str, str] | None = None
        """Pod uid and container of the present or last follower."""
        self.age: tuple[int, str] = (0, "")
        """See `ContainerState`."""
        self.follower: Follower | None = None
        """None after the log of an ended TrainJob is read to the end."""
        self.curve: KeptCurve | None = None
        """None where the TrainJob wants none, or shows its final one."""
        self.steps = Steps(obj, context, writer, start)
        self.stalls = StallWatch(context.clock, context.series)
        self.silence = SilenceWatch(context.clock)
        self._clock = context.clock
        self._check_due = math.inf
        """When, by the monotonic clock, a reconcile is queued since a stall or a silence would begin."""
        self._events = events
        self._warned: set[tuple[str, str]] = set()

    @property
    def pod(self) -> str:
        """Uid of the pod of the present or last follower."""
        return self.place[0] if self.place else ""

    def check(
        self, owners: Sequence[Object], state: ContainerState | None, default_timeout: float | None
    ) -> float | None:
        """Look for a stall, of which a warning event is recorded, and without a timeout for a silence.

        Args:
            owners: the TrainJob and its JobSet, whose annotations set the timeout.
            state: the primary container; None if it is unknown.
            default_timeout: seconds without progress where no annotation sets them; None for no timeout.

        Returns:
            Seconds until the next check; None if only a message can change the result.
        """
        obj = owners[0]
        if self.place is None or state is None or state.has_ended or has_stopped(obj):
            self.stalls.stop()
            self.silence.stop()
            self._check_due = math.inf
            return None
        timeout, is_own = self._stall_timeout(owners, default_timeout)
        run = (state.place, state.started)
        if timeout is None:
            self.silence.watch(run, state.started, reported_of(obj))
            self.silence.check()
        else:
            self.silence.stop()
        self.stalls.watch(
            run,
            timeout,
            is_expected_to_report=is_own,
            shown=self.follower.reports.resumed if self.follower is not None else None,
            stall=_stall_before(obj, state),
        )
        if (complaint := self.stalls.check()) is not None:
            log.warning("training makes no progress", complaint=complaint)
            self._warn(EventReason.TRAINING_STALLED, complaint)
        self._check_due = math.inf
        return self.earlier_check()

    def keep_curve(self, obj: Object) -> None:
        """Hand what the primary container reports on to the curve that the TrainJob is to show."""
        self.curve = wanted_curve(obj, self.curve)
        reports = self.follower.reports if self.follower is not None else None
        if reports is not None and reports.curve is not self.curve:
            reports.curve = self.curve
            if self.curve is not None:
                self.curve.read_from(self.pod)

    @property
    def is_read(self) -> bool:
        """Whether a log was followed and is read to its end."""
        return self.place is not None and (self.follower is None or self.follower.is_done)

    def earlier_check(self) -> float | None:
        """Seconds until the next check if it is due before the one that is queued, which it replaces; else None."""
        pauses = [each for each in (self.stalls.next_check, self.silence.next_check) if each is not None]
        due = self._clock.monotonic() + min(pauses, default=math.inf)
        if due >= self._check_due:
            return None
        self._check_due = due
        return min(pauses)

    def stop_following(self) -> None:
        """Cancel the follower of the primary container."""
        if self.follower is not None:
            self.follower.stop()
        self.follower = None

    def stop(self) -> None:
        """Follow nothing, and watch for stalls and silence no more."""
        self.stop_following()
        self.steps.stop()
        self.stalls.stop()
        self.silence.stop()

    def warn_once(self, reason: str, message: str, *, subject: str = "") -> None:
        """Record a warning event, unless one of this reason and subject was recorded before."""
        if (reason, subject) not in self._warned:
            self._warned.add((reason, subject))
            log.info("warned of the progress of a training", reason=reason, message=message)
            self._warn(reason, message)

    def _warn(self, reason: str, message: str) -> None:
        self._events.record(self.reference, type="Warning", reason=reason, message=message)

    def _stall_timeout(self, owners: Sequence[Object], default: float | None) -> tuple[float | None, bool]:
        """The timeout in seconds, and whether an annotation of this training set it."""
        for owner in owners:
            try:
                seconds = stall_seconds(annotations_of(owner))
            except ValueError as error:
                self.warn_once(EventReason.INVALID_ANNOTATION, str(error), subject=STALL_SECONDS)
                continue
            if seconds is not None:
                return seconds, True
        return default, False


def _stall_before(obj: Object, state: ContainerState) -> str | None:
    """The message of a stall of the present run that an earlier manager has written; None if it has ended."""
    stalled = find_condition(obj, ConditionType.STALLED) or {}
    since = Instant.parse(stalled.get("lastTransitionTime") or "")
    is_of_run = since is not None and state.started is not None and since > state.started
    return str(stalled.get("message") or "") if is_of_run and stalled.get("status") == "True" else None
