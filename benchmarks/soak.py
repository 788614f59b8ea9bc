"""`python -m benchmarks.soak`: trainings come and go at a steady rate, and nothing of what serves them may grow.

A dev cluster whose pods are fake, a manager with its webhooks, a recorder with its database and a dashboard with open
pages run as processes of their own. What containers print is written by this process to the files from which the
cluster serves logs. Now and then all connections to the API server break. After the first tenth of the time, and eight
times later, nothing is created until all trainings are gone, and each process says what it holds. While a figure would
fail the run, it goes on for some rests, since what leaks goes on growing and what settles or wanders does not. The run
fails if a figure is proved to grow (`benchmarks.soaking.trend`), if one seems to and an hour or more can neither prove
nor exclude it, if a training does not end as it should, or if a log or a page tells of trouble that was not injected.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final

import anyio
import typer
from rich.console import Console

from benchmarks.child import Child
from benchmarks.machine import this_machine
from benchmarks.soaking.containers import Containers
from benchmarks.soaking.faults import Faults
from benchmarks.soaking.observed import CHANGES
from benchmarks.soaking.pages import Pages
from benchmarks.soaking.processes import Processes, Subject, running
from benchmarks.soaking.report import dubious, grown, leaks, show, trends
from benchmarks.soaking.trainings import Trainings
from benchmarks.soaking.trend import HOUR
from benchmarks.watching.cluster import BusyCluster
from trainer.kube.manager.manager import Manager
from trainer.kube.rest.connection import ConnectionOptions, connect

_SERVING: Final = re.compile(
    r'"server": ?"dashboard".*?"address": ?"([^"]+)"|"address": ?"([^"]+)".*?"server": ?"dashboard"'
)
_RESTS: Final = tuple(0.1 + 0.9 * number / 8 for number in range(9))
"""When nothing is created for a while, as shares of the time; what has been before the first does not count."""
_FURTHER_RESTS: Final = 4
"""At most, while a figure would fail the run."""
_QUIET: Final = 20.0
"""Seconds after which a process holds no more of trainings that are gone: retries have ended, pages have been left."""
_SAMPLES: Final = 5
"""Of each process at a rest."""
_PAUSE: Final = 2.0
"""Seconds between them."""
_RESTART_AFTER: Final = 10.0
"""Seconds until the API server is restarted: what it holds is judged from then on."""
_FEWEST_ENTRIES: Final = 20
_MOST_ERRORS: Final = 20
"""That are printed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is asked for."""

    seconds: float
    rate: float
    pages: int

    @property
    def warm_up(self) -> float:
        """Seconds until the first rest."""
        return self.seconds * _RESTS[0]

    @property
    def spells(self) -> list[float]:
        """Seconds from each rest to the next."""
        return [self.seconds * (later - former) for former, later in pairwise((0.0, *_RESTS))]

    @property
    def must_tell(self) -> bool:
        """Whether it is long enough to tell a leak from what is none: a figure that stays dubious fails it."""
        return self.seconds >= HOUR

    @property
    def entries(self) -> int:
        """Of bounded caches: so many that they are full before the first rest."""
        return max(_FEWEST_ENTRIES, int(self.rate * self.warm_up))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it."""

    trainings: Trainings
    containers: Containers
    pages: Pages
    faults: Faults


async def soak(console: Console, processes: Processes, plan: Plan) -> Outcome:
    """Let trainings come and go while processes are sampled."""
    async with connect(ConnectionOptions(kubeconfig=processes.kubeconfig)) as client:
        manager = Manager(client)
        trainings = Trainings(manager, plan.entries * CHANGES)
        await trainings.prepare()
        tokens = await BusyCluster(client).tokens(plan.pages)
        pages = Pages(_address(processes.subjects["dashboard"].child), tokens, trainings)
        containers = Containers(processes.data, trainings)
        faults = Faults(processes.balancer, processes.restart_cluster)
        subjects = list(processes.subjects.values())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await manager.wait_for_start()
            tasks.start_soon(containers.run)
            tasks.start_soon(pages.run)
            tasks.start_soon(faults.run, _RESTART_AFTER)
            await trainings.run(plan.rate, spells(plan, subjects, console), partial(_rest, subjects, faults))
            tasks.cancel_scope.cancel()
    return Outcome(trainings, containers, pages, faults)


def spells(plan: Plan, subjects: Sequence[Subject], console: Console) -> Iterator[float]:
    """Seconds until each rest: those of the plan, and then some more while a figure of a process would fail the run."""
    yield from plan.spells
    for _ in range(_FURTHER_RESTS):
        doubts = []
        for subject in subjects:
            found = trends(subject.rests)
            names = leaks(found) + (dubious(found) if plan.must_tell else [])
            doubts += [f"{name} of the {subject.name}" for name in names]
        if not doubts:
            return
        console.print(f"one more rest, since there may be a leak: {', '.join(doubts)}", highlight=False)
        yield plan.spells[-1]


async def _rest(subjects: Sequence[Subject], faults: Faults) -> None:
    """Ask all processes what they hold when there is nothing to do."""
    async with faults.calm:
        await anyio.sleep(_QUIET)
        for _ in range(_SAMPLES):
            for subject in subjects:
                await subject.take_sample()
            await anyio.sleep(_PAUSE)
    for subject in subjects:
        subject.rests.append(subject.samples[-_SAMPLES:])


def _address(dashboard: Child) -> str:
    found = _SERVING.search(dashboard.log.read_text())
    if found is None:
        raise RuntimeError(f"the dashboard does not say where it is: see {dashboard.log}")
    return f"http://{found[1] or found[2]}"


def judge(console: Console, plan: Plan, processes: Processes, outcome: Outcome) -> list[str]:
    """Print what came of it; returns what is wrong."""
    wrong: list[str] = []
    for subject in processes.subjects.values():
        try:
            found = trends(subject.rests)
        except ValueError as error:
            wrong.append(f"{subject.name}: {error}")
            continue
        show(console, subject.name, found)
        gains = ", ".join(grown(subject.rests[0], subject.rests[-1]))
        if growing := leaks(found):
            wrong.append(f"{subject.name}: {', '.join(growing)} grow; {gains}")
        if plan.must_tell and (doubtful := dubious(found)):
            wrong.append(f"{subject.name}: {', '.join(doubtful)} may grow, too much differs to tell; {gains}")
        log = [line for file in subject.logs for line in file.read_text(errors="replace").splitlines()]
        wrong += [f"{subject.name} says {many} times: {text}" for text, many in outcome.faults.complaints(log).items()]
    wrong += outcome.trainings.problems
    refused = outcome.pages.refused + outcome.faults.unexplained(outcome.pages.interrupted)
    wrong += [f"the dashboard refused {many} pages: {text}" for text, many in refused.items()]
    return wrong


def _summary(processes: Processes, outcome: Outcome) -> str:
    created, ended = outcome.trainings.created.total(), outcome.trainings.ended.total()
    database = sum(file.stat().st_size for file in processes.directory.glob("history.db*")) / 2**20
    seconds = outcome.trainings.seconds
    taken = {each.name: each.child.cpu_seconds() / seconds for each in processes.subjects.values()}
    cpu = ", ".join(f"{name} {share:.0%}" for name, share in taken.items())
    return (
        f"{created} trainings in {seconds / 60:g} minutes, {ended} as they should; {outcome.containers.total} "
        f"lines of progress, {outcome.pages.opened.total()} pages opened ({outcome.pages.received / 2**20:.1f} MiB; an "
        f"outage kept {len(outcome.pages.interrupted)} from being read), "
        f"{len(outcome.faults.windows)} outages, of which the first was a restart; history {database:.1f} MiB; "
        f"processors: {cpu}"
    )


def main(
    minutes: Annotated[float, typer.Option(min=0.5, help="Length of the run.")] = 10,
    rate: Annotated[float, typer.Option(min=0.1, help="Trainings a second.")] = 2,
    pages: Annotated[int, typer.Option(min=2, help="Readers of the dashboard.")] = 10,
    logs: Annotated[Path | None, typer.Option(help="Where logs and samples are kept. Default: nowhere.")] = None,
) -> None:
    """Run trainings for some time; exit code 1 where something leaks or fails."""
    plan, console = Plan(minutes * 60, rate, pages), Console(width=None if sys.stdout.isatty() else 140)
    machine = this_machine()
    console.print(f"{machine.cpus} x {machine.cpu}, load average {machine.load_average}", highlight=False)
    if logs is not None:
        logs.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() if logs is None else nullcontext(logs) as directory,
        running(Path(directory), plan.entries) as processes,
    ):
        outcome = anyio.run(soak, console, processes, plan)
        wrong = judge(console, plan, processes, outcome)
        console.print(_summary(processes, outcome), highlight=False)
    for each in wrong[:_MOST_ERRORS]:
        console.print(f"error: {each}", highlight=False, markup=False)
    if len(wrong) > _MOST_ERRORS:
        console.print(f"and {len(wrong) - _MOST_ERRORS} more errors", highlight=False)
    raise typer.Exit(1 if wrong else 0)


if __name__ == "__main__":
    typer.run(main)
