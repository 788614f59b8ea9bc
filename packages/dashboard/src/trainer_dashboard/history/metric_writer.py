"""Follows the logs and the status of all trainings that run, and writes the samples of their metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import anyio
from anyio.abc import TaskGroup

from trainer.api.progress import plain_lines_enabled
from trainer.kube.client import Client
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.objects import Object, annotations_of, mapping_at, namespace_of
from trainer.progress.feed import Feed
from trainer_dashboard.history.chunks import URGENT
from trainer_dashboard.history.metric_recorder import MetricRecorder
from trainer_dashboard.history.persistence import Persistence
from trainer_dashboard.history.records import NewSamples, last_posted, metric_progress, save_samples
from trainer_dashboard.history.shares import Shares

PAUSE = 10.0
"""Seconds between two writes: many small chunks cost more than a few."""
PACE = 1.0
"""Seconds between two reads of a log."""
STREAMS = 2000
"""Logs that are followed at once, see `Shares`; further trainings wait."""
WAITING_LIMIT = 2_000_000
"""Samples of all trainings that wait to be written, in 48 MB; beyond them every second one goes of each training of the
namespace that has most."""
_AT_ONCE = 200
"""Trainings in one transaction."""


@dataclass(slots=True)
class _Recording:
    namespace: str
    recorder: MetricRecorder
    feed: Feed
    scope: anyio.CancelScope
    is_over: bool = False
    """Whether the training has ended, or is gone."""
    waiting: int = 0
    """Samples that were counted."""


class MetricWriter:
    """One log for each training, from when it has pods to its end."""

    def __init__(self, client: Client, persistence: Persistence, clock: Clock) -> None:
        self._client = client
        self._persistence = persistence
        self._clock = clock
        self._recordings: dict[str, _Recording] = {}
        self._done: set[str] = set()
        self._news: set[str] = set()
        self._waiting: list[MetricRecorder] = []
        """Those with something to write."""
        self._unsaved: list[NewSamples] = []
        """What is being written, or was when the writer was cancelled."""
        self._samples: Counter[str] = Counter()
        """Those that wait, by namespace."""
        self._turn = anyio.Lock()
        self._urgent = anyio.Event()
        self._streams = Shares(STREAMS)

    async def observe(self, job: Object, uid: str, pods: Sequence[Object], tasks: TaskGroup, *, is_over: bool) -> None:
        """Take a training that the database has, with its present pods.

        Args:
            job: the TrainJob.
            uid: its own.
            pods: those that it has.
            tasks: where its log is followed.
            is_over: whether it has ended, or is gone.
        """
        recording = self._recordings.get(uid)
        if recording is None:
            if uid in self._done or not (pods or is_over):
                return
            progress = await self._persistence.run(partial(metric_progress, uid=uid))
            if progress is None or progress.is_done:
                self._done.add(uid)
                return
            posted = await self._persistence.run(partial(last_posted, uid=uid, run=progress.run))
            with_plain_lines = plain_lines_enabled(annotations_of(job))
            recorder = MetricRecorder(uid, progress, self._note, posted, with_plain_lines=with_plain_lines)
            feed = Feed(self._client, job, self._clock, recorder, pace=PACE)
            recording = self._recordings[uid] = _Recording(namespace_of(job), recorder, feed, anyio.CancelScope())
            tasks.start_soon(self._follow, recording)
        recording.recorder.observe_status(mapping_at(job, "status", "trainerStatus"))
        recording.feed.observe(pods)
        recording.is_over = is_over
        if is_over and not pods:
            self._finish(uid, recording)

    def forget(self, uid: str) -> None:
        """The training is gone; what is left of it is written."""
        recording = self._recordings.get(uid)
        if recording is not None:
            self._finish(uid, recording)
        self._done.discard(uid)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            async with move_on_after(self._clock, PAUSE):
                await self._urgent.wait()
            self._urgent = anyio.Event()
            await self.write()

    def _note(self, uid: str) -> None:
        self._news.add(uid)
        recording = self._recordings.get(uid)
        if recording is None:
            return
        self._count(recording, recording.recorder.waiting)
        if recording.waiting >= URGENT:
            self._urgent.set()
        if self._samples.total() > WAITING_LIMIT:
            self._thin_out()

    def _count(self, recording: _Recording, waiting: int) -> None:
        """Count its samples that wait."""
        self._samples[recording.namespace] += waiting - recording.waiting
        recording.waiting = waiting
        if not self._samples[recording.namespace]:
            del self._samples[recording.namespace]

    def _thin_out(self) -> None:
        """While the database is away, all trainings together take bounded memory."""
        namespace = max(self._samples, key=lambda each: self._samples[each])
        for recording in self._recordings.values():
            if recording.namespace == namespace:
                recording.recorder.thin_out()
                self._count(recording, recording.recorder.waiting)

    async def write(self) -> None:
        """Write what there is, and end what has nothing more to come."""
        async with self._turn:
            await self._save()
            self._collect()
            while self._waiting:
                some, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
                self._unsaved = [self._drain(recorder) for recorder in some]
                await self._save()

    def _drain(self, recorder: MetricRecorder) -> NewSamples:
        if (recording := self._recordings.get(recorder.uid)) is not None:
            self._count(recording, 0)
        return recorder.drain()

    async def _save(self) -> None:
        await self._persistence.write_all(save_samples, self._unsaved, lambda new: new.uid)
        self._unsaved = []

    def _collect(self) -> None:
        for uid in [*self._news]:
            recording = self._recordings.get(uid)
            if recording is not None and recording.is_over and recording.recorder.is_at_end:
                self._finish(uid, recording)
        self._waiting += [self._recordings[uid].recorder for uid in self._news if uid in self._recordings]
        self._news.clear()

    def _finish(self, uid: str, recording: _Recording) -> None:
        recording.scope.cancel()
        del self._recordings[uid]
        self._count(recording, 0)
        self._news.discard(uid)
        self._done.add(uid)
        recording.recorder.finish()
        self._news.discard(uid)
        self._waiting.append(recording.recorder)
        self._urgent.set()

    async def _follow(self, recording: _Recording) -> None:
        with recording.scope:
            await self._streams.run(recording.namespace, recording.feed.run)
