"""The samples of one training that wait to be written, and how far its log has been read with them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from trainer.history.chunks import BUFFER_LIMIT
from trainer.history.records import NewSamples
from trainer.kube.podlogs.position import Position
from trainer.progress.curves import Curves
from trainer.progress.primary_log import PrimaryLogReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainer.history.records import MetricProgress
    from trainer.progress.containers import StartedContainer
    from trainer.progress.curves import Curve
    from trainer.progress.samples import MetricId

log = structlog.get_logger(__name__)

_RUNS = 16
"""Runs that wait to be written; a training that restarts more often between two writes loses the oldest."""


class MetricRecorder(PrimaryLogReader):
    """Goes on in the log where what is in the database ends, so that no sample is written twice.

    Args:
        uid: of the TrainJob.
        progress: from the database.
        on_news: called when there is something to write.
    """

    def __init__(self, uid: str, progress: MetricProgress, on_news: Callable[[str], None]) -> None:
        self.uid = uid
        self.is_at_end = False
        """Whether the container that is followed has ended, and all of its log is read."""
        self._progress = progress
        self._on_news = on_news
        self._curves = Curves(total_limit=BUFFER_LIMIT)
        self._ended_runs: list[tuple[int, Mapping[MetricId, Curve]]] = []
        self._position = Position()

    @property
    def is_done(self) -> bool:
        """Whether nothing more comes."""
        return self._progress.is_done

    @property
    def waiting(self) -> int:
        """Samples of the present run that are to be written."""
        return self._curves.total

    def begin(self, container: StartedContainer) -> Position:
        """See `PrimaryLogReader`."""
        self.is_at_end = False
        progress = self._progress
        if (progress.pod, progress.container) == (container.pod_uid, container.container):
            self._position = _position_of(progress.position)
            return self._position
        if self._curves.total:
            self._ended_runs = [*self._ended_runs, (progress.run, self._curves.drain())][-_RUNS:]
        self._curves.restart()
        self._position = Position()
        self._progress = replace(
            progress, run=progress.run + 1, pod=container.pod_uid, container=container.container, position=""
        )
        return self._position

    def take(self, block: bytes) -> None:
        """See `PrimaryLogReader`."""
        if self._curves.take(block):
            self._on_news(self.uid)

    def end(self) -> None:
        """See `PrimaryLogReader`."""
        self.is_at_end = True
        self._on_news(self.uid)

    def finish(self) -> None:
        """Nothing more comes, so that the log is not read again after a restart."""
        if not self._progress.is_done:
            self._progress = replace(self._progress, is_done=True)
            self._on_news(self.uid)

    def drain(self) -> NewSamples:
        """Hand over what is to be written."""
        runs, self._ended_runs = self._ended_runs, []
        if self._curves.total:
            runs.append((self._progress.run, self._curves.drain()))
        chunks = self._progress.chunks + len(runs)
        self._progress = replace(self._progress, chunks=chunks, position=self._position.text)
        return NewSamples(self.uid, runs, self._progress)


def _position_of(text: str) -> Position:
    try:
        return Position.of_text(text) if text else Position()
    except ValueError as error:
        log.warning("could not go on in log, reading it again", error=str(error))
        return Position()
