"""Watching TrainJobs: a live table on a terminal, or one line for each change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field

import anyio
from anyio.abc import TaskGroup
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from trainer.cli.console import note, printable
from trainer.cli.jobs.receiver import Receiver, report_errors, watch_for
from trainer.cli.jobs.state import JobState
from trainer.kube.cache.informer import Informer
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.objects import Object, ObjectKey, key_of, resource_version_of
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection

_REFRESH_SECONDS = 0.25
_TICK_SECONDS = 1.0
"""How often ages are updated."""


@dataclass(slots=True)
class JobWatch:
    """Keeps the selected TrainJobs up to date by a watch, which survives a restarted API server."""

    client: Client
    resource: Resource
    selection: Selection
    present: InitVar[Sequence[Object]]
    """The selected TrainJobs before the watch."""
    clock: Clock
    ends: bool
    """Whether it watches one job, until that has ended or is gone; else it runs until cancelled."""
    _jobs: dict[ObjectKey, Object] = field(default_factory=dict, init=False)
    _ended: anyio.Event = field(default_factory=anyio.Event, init=False)
    _changed: Callable[[Object], None] = field(default=lambda _job: None, init=False)
    _has_news: bool = field(default=False, init=False)

    def __post_init__(self, present: Sequence[Object]) -> None:
        self._jobs.update((key_of(job), job) for job in present)
        for job in present:
            self._note_end(job)

    @property
    def is_good(self) -> bool:
        """Whether the one job that was watched to its end, if any, is complete."""
        return not self.ends or any(JobState.of(job).is_complete for job in self._jobs.values())

    async def by_lines(self, print_job: Callable[[Object], None]) -> None:
        """Print each job, and again whenever it has changed."""
        for job in self._sorted():
            print_job(job)
        self._changed = print_job
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(report_errors, self._start(tasks), "the TrainJobs", note, self.clock)
            await self._ended.wait()
            tasks.cancel_scope.cancel()

    async def on_screen(
        self, console: Console, lines: Callable[[Sequence[Object]], Sequence[Text]], *, is_whole: bool = False
    ) -> None:
        """Show the jobs on a terminal, where they stay at the end, or on a screen of their own, which goes."""
        async with anyio.create_task_group() as tasks:
            informer = self._start(tasks)

            def screen() -> Group:
                shown = lines(self._sorted()) or [Text("no TrainJobs yet", style="dim")]
                for line in shown:
                    line.truncate(console.width, overflow="ellipsis")
                if informer.last_error is not None:
                    problem = f"not up to date, trying again: {printable(str(informer.last_error))}"
                    shown = [*shown, Text(problem, style="yellow")]
                return Group(*shown)

            with Live(console=console, get_renderable=screen, auto_refresh=False, screen=is_whole) as live:
                tasks.start_soon(self._keep_fresh, live)
                await self._ended.wait()
                live.refresh()
                tasks.cancel_scope.cancel()

    def _start(self, tasks: TaskGroup) -> Informer:
        receiver = Receiver(tasks, self._see, self._lose)
        return watch_for(receiver, self.client, self.resource, self.selection, self.clock, known=self._jobs.values())

    def _see(self, job: Object) -> None:
        known = self._jobs.get(key_of(job))
        if known is not None and resource_version_of(known) == resource_version_of(job):
            return
        self._jobs[key_of(job)] = job
        self._has_news = True
        if not self._ended.is_set():
            self._changed(job)
        self._note_end(job)

    def _lose(self, job: Object) -> None:
        if self._ended.is_set():
            return
        self._jobs.pop(key_of(job), None)
        self._has_news = True
        if self.ends:
            note(f"TrainJob {key_of(job).name} was deleted")
            self._ended.set()

    def _note_end(self, job: Object) -> None:
        if self.ends and JobState.of(job).is_terminal:
            self._ended.set()

    def _sorted(self) -> list[Object]:
        return [self._jobs[key] for key in sorted(self._jobs)]

    async def _keep_fresh(self, live: Live) -> None:
        """Show changes, many at once, and update ages."""
        shown_at = self.clock.monotonic()
        live.refresh()
        while True:
            await self.clock.sleep(_REFRESH_SECONDS)
            now = self.clock.monotonic()
            if self._has_news or now - shown_at >= _TICK_SECONDS:
                self._has_news, shown_at = False, now
                live.refresh()
