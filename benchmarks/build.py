"""`python -m benchmarks.build`: what the manager computes for one TrainJob, without any I/O.

A whole manager works on an API server within the same process. Each sample of processor time and each call of a
function counts for the part of the manager that has made it; what the stand-in of the API server does is left out.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import anyio
import msgspec
import typer
from rich.console import Console
from rich.table import Table

import trainer
import trainer_kube_testing
from benchmarks.converging.load import completed, runtime, train_job
from benchmarks.machine import this_machine
from benchmarks.results import Machine
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from trainer.api.trainjob import TRAIN_JOBS
from trainer.configuration.configuration import Configuration
from trainer.kube.clock import SystemClock, timestamp
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object
from trainer.manager import build_manager
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient

DEFAULT_OUTPUT = Path(__file__).parent / "build.json"
NAMESPACE = "default"
PHASES = ("create", "resync", "complete")
"""From the TrainJob to its JobSet and first status; a reconcile that finds nothing to do; and from the end of the
JobSet to the last status."""
_ROOT = f"{Path(trainer.__file__).parent}/"
_STAND_IN = "stand-in"
_STAGES = {
    f"{Path(trainer_kube_testing.__file__).parent}/": _STAND_IN,
    "kube/cache/": "informers",
    "kube/queue/": "queue and worker",
    "kube/controller/": "queue and worker",
    "kube/manager/": "client",
    "kube/events/": "events",
    "kube/metrics/": "metrics",
    "controllers/metrics/": "metrics",
    "controllers/trainjob.py": "read and decide",
    "controllers/job.py": "read and decide",
    "controllers/job_objects.py": "read and decide",
    "controllers/": "status",
    "framework/status/": "status",
    "framework/runtimes/": "runtime and snapshot",
    "framework/deploying/": "hash, compare, deploy",
    "framework/": "build",
    "plugins/": "build",
}
"""The stage of a module of the manager, by the first prefix that fits; the others count for their callers."""
_OTHER = "event loop"
_SAMPLE = 0.001
_POLL = 0.05
_REST = 0.002
"""Seconds of processor time within `_POLL`, below which a manager has nothing left to do."""


class Stage(msgspec.Struct, frozen=True):
    """One part of the manager, for each TrainJob."""

    phase: str
    stage: str
    cpu_ms: float
    calls: float
    """Functions entered, and coroutines resumed."""


class Result(msgspec.Struct, frozen=True):
    """What a TrainJob takes."""

    jobs: int
    machine: Machine
    requests: dict[str, dict[str, float]]
    """Writes for each TrainJob, by phase and kind."""
    stages: list[Stage]


class _Profile:
    """Samples of processor time, or calls of functions, by stage."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._stages: dict[str, str | None] = {}

    @contextmanager
    def sampled(self) -> Iterator[None]:
        """Count seconds of processor time."""
        began, samples = time.process_time(), Counter[str]()
        previous = signal.signal(signal.SIGPROF, lambda _, frame: samples.update([self._stage(frame)]))
        signal.setitimer(signal.ITIMER_PROF, _SAMPLE, _SAMPLE)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, previous)
            seconds = (time.process_time() - began) / max(samples.total(), 1)
            self.counts.update({stage: count * seconds for stage, count in samples.items()})

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count calls."""

        def count(frame: FrameType, event: str, _: Any) -> None:
            if event == "call":
                self.counts[self._stage(frame)] += 1

        sys.setprofile(count)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _stage(self, frame: FrameType | None) -> str:
        while frame is not None:
            stage = self._of(frame.f_code.co_filename)
            if stage is not None:
                return stage
            frame = frame.f_back
        return _OTHER

    def _of(self, file: str) -> str | None:
        if file not in self._stages:
            path = file.removeprefix(_ROOT)
            found = (stage for prefix, stage in _STAGES.items() if path.startswith(prefix))
            self._stages[file] = next(found, None)
        return self._stages[file]


class Subject:
    """A manager with as many TrainJobs, which goes through the phases."""

    def __init__(self, jobs: int) -> None:
        self._names = [f"job-{number:05}" for number in range(jobs)]
        self.client = FakeClient(
            runtime(NAMESPACE), resources=[TRAIN_JOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, JOBSETS]
        )
        self.manager: Manager = build_manager(self.client, Configuration().without_servers())

    def disturb(self, phase: str) -> None:
        """Do what others do to the objects."""
        for obj in self._changed(phase):
            self.client.add(obj)

    def _changed(self, phase: str) -> list[Object]:
        if phase == "create":
            return [train_job(NAMESPACE, name) for name in self._names]
        objects = self.client.objects(JOBSETS)
        if phase == "resync":
            return [each | {"status": {"restarts": 0, "replicatedJobsStatus": []}} for each in objects]
        return [each | {"status": completed(timestamp(SystemClock().now()))} for each in objects]

    async def rest(self) -> None:
        """Wait until nothing is left to do."""
        spent, before = 1.0, time.process_time()
        while spent > _REST:
            await anyio.sleep(_POLL)
            now = time.process_time()
            spent, before = now - before, now


async def _measure(jobs: int, *, calls: bool) -> tuple[dict[str, Counter[str]], dict[str, Counter[str]]]:
    """Seconds or calls by phase and stage, and writes by phase and kind."""
    found: dict[str, Counter[str]] = {}
    requests: dict[str, Counter[str]] = {}
    subject = Subject(jobs)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(subject.manager.run)
        await subject.manager.wait_for_start()
        for phase in PHASES:
            subject.disturb(phase)
            subject.client.requests.clear()
            profile = _Profile()
            with profile.counted() if calls else profile.sampled():
                await subject.rest()
            found[phase] = profile.counts
            requests[phase] = Counter(
                f"{each.verb} {each.resource.plural}{'/status' if each.subresource else ''}"
                for each in subject.client.requests
                if each.verb not in {"get", "list", "watch"}
            )
        tasks.cancel_scope.cancel()
    return found, requests


def run(jobs: int) -> Result:
    """Measure all phases."""
    anyio.run(lambda: _measure(min(jobs, 20), calls=True))  # imports and caches
    calls, requests = anyio.run(lambda: _measure(jobs, calls=True))
    seconds, _ = anyio.run(lambda: _measure(jobs, calls=False))
    stages = [*dict.fromkeys(_STAGES.values()), _OTHER]
    return Result(
        jobs,
        this_machine(),
        {phase: {kind: count / jobs for kind, count in sorted(each.items())} for phase, each in requests.items()},
        [
            Stage(phase, stage, seconds[phase][stage] / jobs * 1000, calls[phase][stage] / jobs)
            for phase in PHASES
            for stage in stages
            if stage != _STAND_IN
        ],
    )


def print_result(console: Console, result: Result) -> None:
    """A table of the stages, with processor time and calls of each phase."""
    table = Table("", *PHASES, title=f"CPU and calls for each of {result.jobs} TrainJobs")

    def cells(stages: list[Stage]) -> Iterator[str]:
        for phase in PHASES:
            own = [each for each in stages if each.phase == phase]
            cpu, calls = sum(each.cpu_ms for each in own), sum(each.calls for each in own)
            yield f"{cpu:.2f} ms, {calls:.0f}"

    for name in dict.fromkeys(each.stage for each in result.stages):
        table.add_row(name, *cells([each for each in result.stages if each.stage == name]))
    table.add_section()
    table.add_row("all", *cells(result.stages))
    table.add_row(
        "writes",
        *(", ".join(f"{kind} {count:.2f}" for kind, count in each.items()) for each in result.requests.values()),
    )
    console.print(table)


def main(
    *,
    jobs: Annotated[int, typer.Option(min=1, help="TrainJobs.")] = 300,
    output: Annotated[Path, typer.Option(help="JSON file to write.")] = DEFAULT_OUTPUT,
) -> None:
    """Measure what the manager computes for a TrainJob, from its creation to its end."""
    configure_logging(level="error")
    result = run(jobs)
    output.write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    print_result(Console(width=None if sys.stdout.isatty() else 120), result)


if __name__ == "__main__":
    typer.run(main)
