"""Following a sweep to its end: a live table on a terminal, a line for each news elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

import anyio
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.console import duration, note, printable, short_duration
from trainer.cli.current_cluster import ConnectedCluster
from trainer.cli.jobs.find import list_train_jobs
from trainer.cli.jobs.progress import short_value
from trainer.cli.jobs.receiver import Receiver, report_errors, watch_for
from trainer.framework.status.status import UNTOUCHED
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.objects import Object, name_of, namespace_of, uid_of
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection
from trainer_sweeps.api.optimizationjob import TrialState
from trainer_sweeps.commands.again import again_lines
from trainer_sweeps.commands.table import STYLES, header_lines, trial_lines
from trainer_sweeps.commands.view import ShownTrial, SweepView, trials_of

_REFRESH_SECONDS: Final = 0.5
_HINT_SECONDS: Final = 10.0
"""After this time without a sign of a controller the user gets a hint."""
_WAITING: Final = frozenset({"Pending", "Blocked", "Stalled"})
"""States of TrainJobs that are printed with their reason."""
_LONGEST_LINE: Final = 200
"""Cells of a line that says why a trial waits; `trainer explain` says all of it."""
_HINT_FAILED: Final = 3
"""Trials that have failed, without one that has not, before the user gets a hint."""
_HINT_PERCENT: Final = 10
"""Progress of a trial from which its metrics are expected to be all that it has."""
_MOST_KEPT: Final = 10
"""Trials of the table that stays on a terminal, the best ones."""
_CHROME: Final = 6
"""Lines of a terminal that are not for trials."""


class SweepDisplay:
    """Prints what happens to a sweep; a context manager that owns the bottom of a terminal while it is open."""

    def __init__(self, console: Console, clock: Clock, *, script: str = "") -> None:
        self._console, self._clock, self._script = console, clock, script
        self._view: SweepView | None = None
        self._words: dict[int, str] = {}
        self._obstacles: set[str] = set()
        self._best = 0
        self._has_hinted = self._has_hinted_at_failures = False
        self._state, self._message = UNTOUCHED, ""
        self._live = Live(
            console=console, get_renderable=self._screen, auto_refresh=False, transient=True
        ) if console.is_interactive else None  # fmt: skip

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    async def keep_fresh(self, present: Callable[[], SweepView | None]) -> None:
        """Update the live table, and its times, until cancelled."""
        while self._live is not None:
            self._view = present()
            self._live.refresh()
            await self._clock.sleep(_REFRESH_SECONDS)

    def show(self, view: SweepView) -> None:
        """Print what is new: trials that begin and end where there is no table, what has failed, what is better."""
        self._view = view
        for each in view.trials:
            self._show_trial(view, each)
            self._show_obstacle(each)
            self._hint_at_another_metric(view, each)
        self._hint_at_failures(view)
        if view.best is not None and view.best.number != self._best and self._live is None:
            self._best = view.best.number
            text = f"best so far: trial {self._best}, {printable(view.objective.metric)} {short_value(view.best_value)}"
            left = f", ETA {duration(view.remaining_seconds)}" if view.remaining_seconds is not None else ""
            self._console.print(f"{text} ({view.ended} of {view.total} trials{left})")
        if (view.state, view.message) != (self._state, self._message) and not view.has_ended:
            self._state, self._message = view.state, view.message
            if view.message or self._live is None:
                self._console.print(_state_line(view))

    def end(self, view: SweepView) -> None:
        """Print how it has ended, and the best trial with the command that trains it again."""
        # What the live table had shown is gone with it.
        table = trial_lines(view, view.ranked()[:_MOST_KEPT], self._console) if self._live is not None else []
        for line in [*table, _state_line(view), *again_lines(view, script=self._script)]:
            self._console.print(line)

    def hint(self, text: str) -> None:
        """Print a line of advice."""
        self._console.print(Text("note: ", style="bold").append(text, style="not bold default"))

    def _show_trial(self, view: SweepView, shown: ShownTrial) -> None:
        trial, word = shown.trial, shown.word
        if self._words.get(trial.number) == word:
            return
        is_new = trial.number not in self._words
        self._words[trial.number] = word
        if trial.state is TrialState.FAILED or (self._live is None and (is_new or trial.has_ended)):
            self._console.print(_trial_line(view, shown))

    def _show_obstacle(self, shown: ShownTrial) -> None:
        """Print why a trial waits, each kind of reason once: others wait for the same nodes."""
        trial, job = shown.trial, shown.job
        if trial.has_ended or job is None or shown.word not in _WAITING or not job.message:
            return
        if job.reason not in self._obstacles:
            self._obstacles.add(job.reason)
            line = Text(f"trial {trial.number}  ", style="bold")
            line.append(shown.word, style=f"not bold {STYLES[shown.word]}")
            line.append(f"  {printable(job.message)}", style="not bold default")
            line.truncate(_LONGEST_LINE, overflow="ellipsis")
            self._console.print(line)

    def _hint_at_another_metric(self, view: SweepView, shown: ShownTrial) -> None:
        """Say once, before all trials have run in vain, that none of the metrics of one that runs is the objective."""
        trial, metric = shown.trial, view.objective.metric
        percentage = shown.job.progress.percentage if shown.job is not None else None
        is_early = percentage is not None and percentage < _HINT_PERCENT
        if self._has_hinted or trial.has_ended or not shown.reported or is_early:
            return
        if not trial.curve.points and metric not in shown.reported:
            self._has_hinted = True
            names = ", ".join(map(printable, shown.reported[:_MOST_KEPT]))
            text = f"trial {trial.number} reports {names}, and no {printable(metric)} so far: a trial without it fails"
            self.hint(text)

    def _hint_at_failures(self, view: SweepView) -> None:
        """Say once that no trial has succeeded, which is most often an error that all of them will have."""
        failed = view.count(TrialState.FAILED)
        is_limited = view.spec.max_failed_trials is not None
        if self._has_hinted_at_failures or is_limited or view.has_ended or view.ended > failed:
            return
        if failed >= _HINT_FAILED:
            self._has_hinted_at_failures = True
            command = f"trainer delete sweep {view.name} -n {view.namespace}"
            self.hint(f"all {failed} trials so far have failed: {command} ends it; --max-failed N does by itself")

    def _screen(self) -> Group:
        view = self._view
        if view is None:
            return Group(Text())
        header = header_lines(view, self._console)
        room = max(self._console.height - len(header) - _CHROME, 3)
        running = [each for each in view.trials if not each.trial.has_ended]
        others = [each for each in view.ranked() if each.trial.has_ended]
        shown = [*running, *others][:room]
        lines = [*header, *(trial_lines(view, shown, self._console) if shown else [])]
        if (more := len(view.trials) - len(shown)) > 0:
            lines.append(Text(f"and {more} more", style="dim"))
        for line in lines:
            line.truncate(self._console.width, overflow="ellipsis")
        return Group(*lines)


async def follow_to_end(
    cluster: ConnectedCluster, sweep: Object, console: Console, clock: Clock, *, script: str = ""
) -> SweepView | None:
    """Show a sweep until it ends, and how; None if it is deleted before.

    Args:
        cluster: that has it.
        sweep: as the server has returned it.
        console: that shows it.
        clock: for times.
        script: its path here. Default: as the template has it.
    """
    with SweepDisplay(console, clock, script=script) as display:
        resource = cluster.served.resource(OPTIMIZATION_JOBS)
        view = await SweepFollower(cluster.client, resource, sweep, display, clock).run()
    if view is not None:
        display.end(view)
    return view


def _trial_line(view: SweepView, shown: ShownTrial) -> Text:
    """A trial that begins, with its parameters; one that has ended, with its value or the reason."""
    trial, line = shown.trial, Text(f"trial {shown.trial.number}", style="bold")
    if trial.has_ended:
        line.append(f"  {shown.word}", style=f"not bold {STYLES.get(shown.word, 'default')}")
        parts = [f"{view.objective.metric} {short_value(trial.value)}"] if trial.value is not None else []
        parts += [f"after {short_duration(shown.seconds)}"] if shown.seconds is not None else []
        parts += [trial.message] if trial.message else []
    else:
        parts = [f"{name} {short_value(trial.assignment.get(name, ''))}" for name in view.parameters]
    return line.append("".join(f"  {printable(part)}" for part in parts), style="not bold default")


def _state_line(view: SweepView) -> Text:
    line = Text(f"{view.name}  ", style="bold").append(
        view.state, style=f"not bold {STYLES.get(view.state, 'default')}"
    )
    line.append(
        f"  {view.ended} of {view.total} trials" + (f": {view.counts}" if view.counts else ""), style="not bold default"
    )
    if view.has_ended:
        line.append(f"  after {duration(view.elapsed_seconds)}", style="not bold default")
    return line.append(f"  {printable(view.message)}" if view.message else "", style="not bold default")


@dataclass
class SweepFollower:
    """Keeps a sweep up to date by watches on it and on its trials, which survive a restarted API server."""

    client: Client
    resource: Resource
    """OptimizationJobs as the cluster serves them."""
    sweep: Object
    """As the server has returned it."""
    display: SweepDisplay
    clock: Clock
    _trials: dict[str, Object] = field(default_factory=dict, init=False)
    _is_gone: bool = field(default=False, init=False)
    _ended: anyio.Event = field(default_factory=anyio.Event, init=False)

    async def run(self) -> SweepView | None:
        """Follow it to its end; None if it is deleted before."""
        of_it = Selection(namespace_of(self.sweep), field_selector=f"metadata.name={name_of(self.sweep)}")
        of_trials = trials_of(name_of(self.sweep), namespace_of(self.sweep))
        async with anyio.create_task_group() as tasks:
            known = [self.sweep]
            for receiver, resource, selection, present in (
                (Receiver(tasks, self._see_trial, self._lose_trial), TRAIN_JOBS, of_trials, []),
                (Receiver(tasks, self._see, self._lose), self.resource, of_it, known),
            ):
                informer = watch_for(receiver, self.client, resource, selection, self.clock, known=present)
                tasks.start_soon(report_errors, informer, f"{resource.kind}s", note, self.clock)
            tasks.start_soon(self.display.keep_fresh, self.view)
            tasks.start_soon(self._hint_at_missing_controller)
            await self._ended.wait()
            tasks.cancel_scope.cancel()
        if self._is_gone:
            return None
        selection = trials_of(name_of(self.sweep), namespace_of(self.sweep))
        self._trials = {name_of(job): job for job in await list_train_jobs(self.client, selection)}
        view = self.view()
        self.display.show(view)
        return view

    def view(self) -> SweepView:
        """The sweep as it is known now."""
        return SweepView.of(self.sweep, self._trials.values(), self.clock.now())

    def _see(self, obj: Object) -> None:
        if uid_of(obj) != uid_of(self.sweep):
            self._is_gone = True
            self._ended.set()
            return
        self.sweep = obj
        self._show()

    def _lose(self, obj: Object) -> None:
        if uid_of(obj) == uid_of(self.sweep) and not self._ended.is_set():
            self._is_gone = True
            self._ended.set()

    def _see_trial(self, job: Object) -> None:
        self._trials[name_of(job)] = job
        self._show()

    def _lose_trial(self, job: Object) -> None:
        self._trials.pop(name_of(job), None)
        self._show()

    def _show(self) -> None:
        if self._ended.is_set():
            return
        view = self.view()
        self.display.show(view)
        if view.has_ended:
            self._ended.set()

    async def _hint_at_missing_controller(self) -> None:
        await self.clock.sleep(_HINT_SECONDS)
        if self.view().state == UNTOUCHED and not self._trials:
            self.display.hint(
                "no controller of sweeps has handled it yet: check that a manager runs (trainer status), and that "
                "trainer-operator[sweeps] is installed with it"
            )
