"""The curve of one metric that a TrainJob shows, as its training reports it (`trainer.api.metric_curve`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from trainer.api.metric_curve import CURVE_OF, MetricCurve, Origin, Reading, Unit, shows_final_curve
from trainer.api.trainjob_status import TrainerStatus
from trainer.framework.status.status import end_of, has_ended
from trainer.kube.objects import Object, annotations_of, uid_of
from trainer.kube.podlogs.instant import Instant
from trainer.progress.message_reader import TimedMessage
from trainer.progress.train_jobs import shown_progress

_LATE_PODS = timedelta(seconds=10)
"""After the end of a TrainJob whose log nobody has read, pods may still become known for so long."""


class KeptCurve:
    """The curve of a TrainJob in memory, which goes on from the one that it shows; the caller hands on all reports."""

    __slots__ = ("_known", "_pod", "curve")

    def __init__(self, curve: MetricCurve) -> None:
        self.curve = curve
        self._pod = ""
        self._known: Instant | None = None
        """Until when the curve has what the present pod has logged."""

    def read_from(self, pod: str) -> None:
        """Take what a pod of this uid logs from now on; what was read of its log before may come again."""
        reading = self.curve.reading
        self._pod, self._known = pod, Instant.parse(reading.time) if reading.pod == pod else None

    def take(self, timed: TimedMessage, position: tuple[int | None, int | None]) -> None:
        """Take a message of the log; `position` is the last step and epoch of its run, for what it lacks."""
        message, time, is_plain = timed
        step, epoch = message.current_step, message.current_epoch
        position = position[0] if step is None else step, position[1] if epoch is None else epoch
        if self._known is None or time > self._known:
            maps = (message.train_metrics, message.eval_metrics)
            self._add(maps, position, Reading(self._pod, str(time)), is_message=not is_plain)

    def take_pushed(self, status: TrainerStatus) -> None:
        """Take a status that was posted, unless it is known."""
        before, time = self.curve.reading, status.last_updated_time
        if before.pod or before.time != time:
            position = status.current_step, status.current_epoch
            self._add((status.train_metrics, status.eval_metrics), position, Reading("", time))

    def _add(
        self,
        maps: tuple[Mapping[str, str] | None, Mapping[str, str] | None],
        position: tuple[int | None, int | None],
        reading: Reading,
        *,
        is_message: bool = True,
    ) -> None:
        curve, (step, epoch) = self.curve, position
        for is_eval, metrics in enumerate(maps):
            if (value := (metrics or {}).get(curve.metric)) is None:
                continue
            unit = Unit.STEPS if step is not None else Unit.EPOCHS if epoch is not None else Unit.REPORTS
            origin = Origin(is_message, bool(is_eval), unit)
            number = step if step is not None else epoch
            if number is None:
                goes_on = curve.points and curve.origin == origin
                number = curve.points[-1].step + 1 if goes_on else 1
            curve = curve.with_point(number, value, origin=origin, reading=reading)
        self.curve = curve


def wanted_curve(obj: Object, kept: KeptCurve | None) -> KeptCurve | None:
    """The curve that a TrainJob is to show, which goes on; None without its annotation, or once it shows the final one.

    Args:
        obj: the TrainJob.
        kept: its curve so far. Default: None, the one that it shows.
    """
    annotations, uid = annotations_of(obj), uid_of(obj)
    metric = annotations.get(CURVE_OF)
    if metric is None or shows_final_curve(annotations, uid):
        return None
    if kept is not None and kept.curve.metric == metric:
        return kept
    return KeptCurve(MetricCurve.of(annotations, metric, uid))


def awaits_final_curve(obj: Mapping[str, object], annotations: Mapping[str, str], uid: str) -> bool:
    """Whether a TrainJob, as JSON, has ended and does not show its final curve."""
    return has_ended(obj) and CURVE_OF in annotations and not shows_final_curve(annotations, uid)


def final_curve(obj: Object, curve: MetricCurve) -> MetricCurve:
    """The curve of a TrainJob that has ended and whose log is read.

    Where no sample has come, the last value that its status shows is the only one: another manager has read it.
    """
    if not curve.points and (status := shown_progress(obj)) is not None:
        kept = KeptCurve(curve)
        kept.take_pushed(status)
        curve = kept.curve
    return replace(curve, is_final=True)


def late_pods_until(obj: Object, now: datetime) -> float | None:
    """Seconds for which pods of an ended TrainJob may still become known; None once they cannot."""
    ended = end_of(obj)
    remaining = (ended + _LATE_PODS - now).total_seconds() if ended is not None else 0
    return remaining if remaining > 0 else None
