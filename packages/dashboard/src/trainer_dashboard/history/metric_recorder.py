"""The samples of one training that wait to be written, of its log and of its status, and how far the log was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from trainer.kube.logger import get_logger
from trainer.kube.objects import mapping_at
from trainer.kube.podlogs.position import Position
from trainer.progress.containers import StartedContainer
from trainer.progress.curves import SERIES_LIMIT, Curve, Curves
from trainer.progress.feed import FeedReader
from trainer.progress.samples import MetricId
from trainer_dashboard.history.chunks import BUFFER_LIMIT
from trainer_dashboard.history.records import MetricProgress, NewSamples, PostedSample
from trainer_dashboard.history.training import seconds

log = get_logger(__name__)

_LONGEST_NAME = 256


class MetricRecorder(FeedReader):
    """Goes on in the log where what is in the database ends, so that no sample is written twice.

    Args:
        uid: of the TrainJob.
        progress: from the database.
        on_news: called when there is something to write.
        last_posted: the last samples of metrics that were taken from the status. Default: none were.
        with_plain_lines: see `SampleReader`.
    """

    def __init__(
        self,
        uid: str,
        progress: MetricProgress,
        on_news: Callable[[str], None],
        last_posted: Mapping[MetricId, PostedSample] | None = None,
        *,
        with_plain_lines: bool = True,
    ) -> None:
        self.uid = uid
        self.is_at_end = False
        """Whether the container that is followed has ended, and all of its log is read."""
        self._progress = progress
        self._on_news = on_news
        self._curves = Curves(total_limit=BUFFER_LIMIT, with_plain_lines=with_plain_lines)
        self._position = Position()
        self._container: StartedContainer | None = None
        """That to which the position belongs."""
        self._logged: set[MetricId] = set()
        """Metrics that the log of this run has."""
        self._parameters: Mapping[str, str] = {}
        """Those that are to be written."""
        self._posted = Curves(total_limit=BUFFER_LIMIT)
        self._last_posted = dict(last_posted or {})

    @property
    def is_done(self) -> bool:
        """Whether nothing more comes."""
        return self._progress.is_done

    @property
    def waiting(self) -> int:
        """Samples that are to be written."""
        return self._curves.total + self._posted.total

    def thin_out(self) -> None:
        """Drop every second sample that waits."""
        self._curves.thin_out()
        self._posted.thin_out()

    def observe_status(self, progress: Mapping[str, Any]) -> None:
        """Take the metrics of a status that its log has not: those that were posted to the status server.

        A status repeats what was said before: a metric of training counts when its value or the step is another one,
        one of evaluation when its value is.
        """
        time, step = seconds(progress.get("lastUpdatedTime")), progress.get("currentStep")
        if time is None:
            return
        at = float(step) if isinstance(step, int) else -1.0
        for name, is_eval in (("trainMetrics", False), ("evalMetrics", True)):
            for metric_name, text in mapping_at(progress, name).items():
                self._take_posted(MetricId(is_eval, str(metric_name)[:_LONGEST_NAME]), time, at, text)
        if self._posted.total:
            self._on_news(self.uid)

    def _take_posted(self, metric: MetricId, time: float, step: float, text: object) -> None:
        try:
            value = float(str(text))
        except ValueError:
            return
        last = self._last_posted.get(metric)
        if metric in self._logged or not isfinite(value) or (last is None and len(self._last_posted) >= SERIES_LIMIT):
            return
        if last is not None:
            is_same = last.value == value and (metric.is_eval or last.step == step)
            if is_same or time <= last.time:
                return
        self._last_posted[metric] = PostedSample(time, step, value)
        self._posted.add(metric, time, step, value)

    def on_start(self, container: StartedContainer) -> Position:
        """See `FeedReader`."""
        self.is_at_end = False
        if container == self._container:  # whose log was left for a while
            return self._position
        self._container, progress = container, self._progress
        if (progress.pod, progress.container) == (container.pod_uid, container.container):
            self._position = _position_of(progress.position)
            return self._position
        self._curves.restart()  # of runs the last one is kept
        self._logged.clear()
        if progress.run:
            self._posted.drain()
        self._position = Position()
        self._progress = replace(
            progress, run=progress.run + 1, pod=container.pod_uid, container=container.container, position=""
        )
        return self._position

    def on_lines(self, block: bytes) -> None:
        """See `FeedReader`."""
        before = self._curves.parameters
        has_metrics = self._curves.take(block)
        if self._curves.parameters is not before:
            self._parameters = self._curves.parameters
        if has_metrics or self._parameters:
            self._logged.update(self._curves.by_metric)
            self._on_news(self.uid)

    def on_end(self) -> None:
        """See `FeedReader`."""
        self.is_at_end = True
        self._on_news(self.uid)

    def finish(self) -> None:
        """Nothing more comes, so that the log is not read again after a restart."""
        if not self._progress.is_done:
            self._progress = replace(self._progress, is_done=True)
            self._on_news(self.uid)

    def drain(self) -> NewSamples:
        """Hand over what is to be written."""
        runs = [(self._progress.run, self._curves.drain())] if self._curves.total else []
        chunks = self._progress.chunks + len(runs)
        self._progress = replace(self._progress, chunks=chunks, position=self._position.text)
        posted: Mapping[MetricId, Curve] = {}
        if self._progress.run or self._progress.is_done:  # before, it is not known to which run they belong
            posted = {metric: curve for metric, curve in self._posted.drain().items() if metric not in self._logged}
        parameters, self._parameters = self._parameters, {}
        return NewSamples(self.uid, runs, self._progress, posted, parameters)


def _position_of(text: str) -> Position:
    try:
        return Position.of_text(text) if text else Position()
    except ValueError as error:
        log.warning("could not go on in log, reading it again", error=str(error))
        return Position()
