"""The metrics of a TrainJob, read from the log of its primary container while somebody looks at them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup

from trainer.api.progress import plain_lines_enabled
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.objects import Object, annotations_of, uid_of
from trainer.kube.podlogs.position import Position
from trainer.progress.containers import StartedContainer
from trainer.progress.curves import Curves
from trainer.progress.feed import Feed, FeedReader
from trainer_dashboard.access.parties import Party
from trainer_dashboard.live.board import PAUSE
from trainer_dashboard.live.curves import SAMPLES
from trainer_dashboard.live.event_stream import Changes
from trainer_dashboard.recipe.recipe import reported_without_secrets

_OF_SAMPLE: Final = 28
"""Bytes of a sample: three numbers, and what an array keeps for more of them."""
_OF_NAME: Final = 1024
"""Bytes of a metric or parameter."""
_PARAMETERS_PACE: Final = 2.0
"""Seconds between two looks for secrets in parameters, which take a tenth of a second where a log has the most."""
_TOO_MUCH: Final = "too many metrics are shown at once: close other pages, and open this one again"


def _nothing(_size: int) -> None:
    """What a feed that nobody counts says its size to."""


class MetricFeed(FeedReader):
    """The curves of one TrainJob.

    Where the log may not be read, there are none, and `problem` says why.
    """

    def __init__(self, client: Client, job: Object, clock: Clock) -> None:
        self.curves = Curves(total_limit=SAMPLES, with_plain_lines=plain_lines_enabled(annotations_of(job)))
        self.count: Callable[[int], None] = _nothing
        """Called with the bytes of the curves. Default: they are not counted."""
        self._is_too_much = False
        self.listeners: set[Changes] = set()
        self._parameters: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
        self._due = 0.0
        self._clock = clock
        self._log = Feed(client, job, clock, self, pace=PAUSE)
        self._has_begun = False

    @property
    def problem(self) -> str:
        """Why there are no metrics, or no more of them; empty while they come."""
        return _TOO_MUCH if self._is_too_much else self._log.problem

    @property
    def parameters(self) -> Mapping[str, str]:
        """What its reporter says that it was started with, without secrets; what follows at once comes a bit later."""
        now = self._clock.monotonic()
        if self._parameters[0] is not self.curves.parameters and now >= self._due:
            self._due = now + _PARAMETERS_PACE
            self._parameters = self.curves.parameters, reported_without_secrets(self.curves.parameters)
        return self._parameters[1]

    def observe(self, pods: Sequence[Object]) -> None:
        """Take the present pods of the TrainJob."""
        self._log.observe(pods)

    async def run(self) -> None:
        """Follow until cancelled; what goes wrong ends this feed alone."""
        await self._log.run()

    def on_start(self, container: StartedContainer) -> Position:  # noqa: ARG002
        """See `FeedReader`."""
        if self._has_begun:
            self.curves.restart()
        self._has_begun = True
        return Position()

    def on_lines(self, block: bytes) -> None:
        """See `FeedReader`."""
        before = self.curves.parameters
        if self.curves.take(block) or self.curves.parameters is not before:
            self._count()
            self.on_problem_changed()

    def thin_out(self) -> None:
        """Keep half of the samples."""
        self.curves.thin_out()
        self._count()

    def give_up(self) -> None:
        """Keep no samples at all."""
        self._is_too_much = True
        self.curves.restart()
        self.on_problem_changed()

    def _count(self) -> None:
        names = len(self.curves.by_metric) + len(self.curves.parameters)
        self.count(self.curves.total * _OF_SAMPLE + names * _OF_NAME)

    def on_problem_changed(self) -> None:
        """See `FeedReader`."""
        for listener in self.listeners:
            listener.notify()


@dataclass(slots=True)
class MetricFeeds:
    """One feed of each TrainJob, shared by all pages about it, which runs as long as there is one."""

    client: Client
    clock: Clock
    tasks: TaskGroup
    _running: dict[str, tuple[MetricFeed, anyio.CancelScope]] = field(default_factory=dict, init=False)

    @asynccontextmanager
    async def of(self, job: Object, listener: Changes, party: Party) -> AsyncIterator[MetricFeed]:
        """That of a TrainJob; the listener is notified of new samples, and whoever comes first is who it is for."""
        uid = uid_of(job)
        if uid not in self._running:
            feed, scope = MetricFeed(self.client, job, self.clock), anyio.CancelScope()
            self._running[uid] = feed, scope
            self.tasks.start_soon(_run_within, scope, feed, party)
        feed, scope = self._running[uid]
        feed.listeners.add(listener)
        try:
            yield feed
        finally:
            feed.listeners.remove(listener)
            if not feed.listeners:
                del self._running[uid]
                scope.cancel()


async def _run_within(scope: anyio.CancelScope, feed: MetricFeed, party: Party) -> None:
    def end() -> None:
        feed.give_up()
        scope.cancel()

    with scope, party.holding(0, end=end, shrink=feed.thin_out) as holding:
        feed.count = partial(party.resize, holding)
        await feed.run()
