"""`trainer top`: the TrainJobs of a cluster on the whole screen, those that train first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import typer
from rich.console import Console
from rich.text import Text

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.console import output, printable, terminal_width
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.jobs.find import list_train_jobs
from trainer.cli.jobs.state import STATE_STYLES, JobState
from trainer.cli.jobs.table import JobTable
from trainer.cli.jobs.watch import JobWatch
from trainer.cli.options import Context, Kubeconfig, Namespace
from trainer.kube.client import Client
from trainer.kube.clock import Clock, SystemClock, parse_timestamp
from trainer.kube.objects import Object, key_of, metadata_of
from trainer.kube.selection import Selection

_ORDER = ("Running", "Stopping", "Restarting", "Stalled", "Pending", "Blocked", "Submitted", "Created", "Suspended")
"""States from the top of the screen down; then those in other states, and those that have ended."""


def top(*, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None) -> None:
    """Show the TrainJobs of all namespaces, or of one, on the whole screen until interrupted: those that train first.

    Those with the least remaining time come first, and those that have ended last, the newest of them on top. Where
    standard output is no terminal, they are printed once.
    """

    async def show(cluster: ConnectedCluster) -> None:
        screen = Top(output(), SystemClock(), namespace)
        await screen.run(cluster.client)

    raise typer.Exit(run_on(current_cluster(kubeconfig, context), show))


@dataclass
class Top:
    """The screen of `trainer top`."""

    console: Console
    clock: Clock
    namespace: str | None = None
    """None: those of all namespaces."""
    _table: JobTable = field(init=False)

    def __post_init__(self) -> None:
        self._table = JobTable(with_namespace=self.namespace is None, ascii_only=self.console.options.ascii_only)

    async def run(self, client: Client) -> None:
        """Show the TrainJobs until cancelled, or print them where there is no screen."""
        jobs = await list_train_jobs(client, Selection(self.namespace))
        if not self.console.is_interactive:
            for line in self.lines(jobs):
                self.console.print(line)
            return
        watch = JobWatch(client, TRAIN_JOBS, Selection(self.namespace), jobs, self.clock, ends=False)
        await watch.on_screen(self.console, self.lines, is_whole=True)

    def lines(self, jobs: Sequence[Object]) -> list[Text]:
        """How many are in which state, and a line for each, as many as the screen has room for."""
        ranked = sorted(((JobState.of(job), job) for job in jobs), key=_rank)
        shown = [job for _, job in ranked]
        self._table.width = terminal_width(self.console)
        if self.console.is_interactive:
            room = max(self.console.height - 4, 1)
            shown = shown[:room] if len(shown) > room else shown
        lines = [_summary([state for state, _ in ranked]), Text(), *self._table.lines(shown, self.clock.now())]
        if len(shown) < len(ranked):
            lines.append(Text(f"and {len(ranked) - len(shown)} more", style="dim"))
        return lines


def _rank(ranked: tuple[JobState, Object]) -> tuple[object, ...]:
    state, job = ranked
    place = len(_ORDER) + state.is_terminal if state.word not in _ORDER else _ORDER.index(state.word)
    remaining = state.progress.remaining_seconds
    created = metadata_of(job).get("creationTimestamp")
    age = -parse_timestamp(created).timestamp() if state.is_terminal and created else 0.0
    return place, float("inf") if remaining is None else remaining, age, key_of(job)


def _summary(states: Sequence[JobState]) -> Text:
    """The line above the table, such as `7 TrainJobs: 4 Running, 2 Pending, 1 Failed`."""
    text = Text(f"{len(states)} TrainJob{'' if len(states) == 1 else 's'}", style="bold")
    counts = Counter(state.word for state in states)
    for number, (word, count) in enumerate(counts.items()):
        text.append(", " if number else ": ", style="not bold default")
        text.append(f"{count} {printable(word)}", style=f"not bold {STATE_STYLES.get(word, 'default')}")
    return text
