"""`python -m benchmarks.history`: lists over a year of trainings, and a thousand trainings that report at once."""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from sqlalchemy import create_engine, func, select, text

from benchmarks.machine import this_machine
from tests.postgresql import MISSING, postgresql_programs, postgresql_server
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.cache.cached_object import CachedObject
from trainer.progress.containers import StartedContainer
from trainer.progress.curves import SAMPLES_LIMIT, Curves
from trainer.progress.samples import MetricId
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.metric_recorder import MetricRecorder
from trainer_dashboard.history.queries import Cursor, Filter, History, only
from trainer_dashboard.history.records import (
    MetricProgress,
    NewSamples,
    Training,
    prepared,
    save_samples,
    save_trainings,
)
from trainer_dashboard.history.schema import METRIC_CHUNKS, TRAININGS
from trainer_dashboard.history.statements import put

_DAY = 86400.0
_START = 1767225600.0
_RUNTIMES = ("torch-distributed", "jax-distributed", "mpi-openmpi", "plain")
_STATES = ("Complete",) * 17 + ("Failed",) * 3
_METRICS = json.dumps([["loss", "0.25", False], ["learning_rate", "0.0001", False], ["accuracy", "0.91", True]])
_BATCH = 5000
_CHUNKS = 200
_PERIOD = 5.0
"""Seconds between two reports of a training."""
_TAG = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"


def main(
    rows: Annotated[int, typer.Option(help="Trainings in the database: a year of 1,000 a day.")] = 365_000,
    jobs: Annotated[int, typer.Option(help="Trainings that report at once.")] = 1000,
    ticks: Annotated[int, typer.Option(help="Reports of each of them.")] = 24,
) -> None:
    """Print what lists and reports take in SQLite and PostgreSQL."""
    console, machine = Console(), this_machine()
    console.print(f"{machine.cpus} x {machine.cpu}, load average {machine.load_average}", highlight=False)
    with databases() as found:
        for name, database in found.items():
            database.migrate()
            began = time.perf_counter()
            fill(database, rows)
            console.print(f"{name}: {rows:,} trainings written in {time.perf_counter() - began:.0f} s", highlight=False)
            console.print(lists(name, History(database)))
            console.print(reports(name, database, jobs, ticks))
            console.print(curves(name, database))
            database.close()


@contextmanager
def databases() -> Iterator[dict[str, Database]]:
    """Empty databases of both kinds; PostgreSQL where it is installed."""
    with tempfile.TemporaryDirectory() as directory:
        sqlite = Database(f"sqlite:///{directory}/history.db")
        programs = postgresql_programs()
        if programs is None:
            Console(stderr=True).print(MISSING)
            yield {"SQLite": sqlite}
            return
        with postgresql_server(programs) as url:
            name = f"b{uuid.uuid4().hex}"
            admin = create_engine(url.replace("postgresql:", "postgresql+psycopg:").replace("NAME", "postgres"))
            with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text(f"CREATE DATABASE {name}"))
            admin.dispose()
            yield {"SQLite": sqlite, "PostgreSQL": Database(url.replace("NAME", name))}


def fill(database: Database, rows: int) -> None:
    """A year of trainings, of 50 namespaces."""
    chance = random.Random(1)  # noqa: S311 - the same trainings each time
    for start in range(0, rows, _BATCH):
        batch = [_row(chance, index, rows) for index in range(start, min(start + _BATCH, rows))]
        database.write(lambda connection, batch=batch: put(connection, TRAININGS, batch))  # type: ignore[misc]
    if not database.is_sqlite:
        database.write(lambda connection: connection.execute(text("ANALYZE trainings")))


def _row(chance: random.Random, index: int, rows: int) -> dict[str, Any]:
    created = _START + index * 365 * _DAY / rows
    return {
        "uid": str(uuid.UUID(int=chance.getrandbits(128))),
        "cluster": "c",
        "namespace": f"team-{chance.randrange(50)}",
        "name": f"training-{index % 5000}",
        "created": created,
        "started": created + 20,
        "ended": created + 3600,
        "deleted": created + 7200,
        "state": chance.choice(_STATES),
        "reason": "AllJobsCompleted",
        "message": "jobset completed successfully",
        "runtime_kind": "ClusterTrainingRuntime",
        "runtime": chance.choice(_RUNTIMES),
        "runtime_version": "generation 1",
        "image": "registry.example.com/training:1.2.3",
        "nodes": 4,
        "creator": "kubectl-create",
        "progress": 100,
        "metrics": _METRICS,
        "size": 20_000,
    }


def lists(name: str, history: History) -> Table:
    """How long lists of 100 take."""
    middle = Cursor(_START + 180 * _DAY, "f")
    cases: dict[str, Callable[[], object]] = {
        "the newest": history.trainings,
        "half a year back": partial(history.trainings, after=middle),
        "of a namespace": partial(history.trainings, Filter(namespaces=only("team-7"))),
        "failed": partial(history.trainings, Filter(state="Failed")),
        "failed, of a namespace": partial(history.trainings, Filter(namespaces=only("team-7"), state="Failed")),
        "of a name": partial(history.trainings, Filter(name="training-77")),
        "of a runtime, half a year back": partial(history.trainings, Filter(runtime="plain"), after=middle),
        "of a namespace that has none": partial(history.trainings, Filter(namespaces=only("nobody"))),
        "that ended last": partial(history.trainings, Filter(cluster="c"), by_end=True),
        "that ended half a year back": partial(history.trainings, Filter(cluster="c"), by_end=True, after=middle),
    }
    table = Table("a list of 100", "median", "worst of 50", title=f"{name}: lists", title_justify="left")
    for title, ask in cases.items():
        times = []
        for _ in range(50):
            began = time.perf_counter()
            ask()
            times.append(time.perf_counter() - began)
        table.add_row(title, f"{statistics.median(times) * 1e3:.1f} ms", f"{max(times) * 1e3:.1f} ms")
    return table


def reports(name: str, database: Database, jobs: int, ticks: int) -> Table:
    """What it takes to write the reports of trainings: watch events, log lines, rows and samples."""
    recorders = [_recorder(number) for number in range(jobs)]
    known: list[Training] = []
    began_wall, began_cpu = time.perf_counter(), time.process_time()
    worst = 0.0
    for tick in range(ticks):
        began = time.perf_counter()
        known = [_training(number, tick, known[number].written if known else {}) for number in range(jobs)]
        for number, recorder in enumerate(recorders):
            recorder.on_lines(_lines(number, tick))
        for start in range(0, jobs, 100):
            some = [*map(prepared, known[start : start + 100])]
            written = database.write(partial(save_trainings, cluster="b", trainings=some, now=_START))
            for each, versions in zip(some, written, strict=True):
                each.training.written = versions
        if tick % 2:  # samples are written every ten seconds
            for start in range(0, jobs, 200):
                news = [recorder.drain() for recorder in recorders[start : start + 200]]
                database.write(partial(save_samples, news=news))
        worst = max(worst, time.perf_counter() - began)
    wall, cpu = (time.perf_counter() - began_wall) / ticks, (time.process_time() - began_cpu) / ticks
    table = Table(
        "", "", title=f"{name}: {jobs:,} trainings that report every 5 s, 10 metrics each", title_justify="left"
    )
    table.add_row("processor time of the recorder, share of a core", f"{cpu / _PERIOD:.0%}")
    table.add_row("time to write all, of 5 s", f"{wall:.2f} s")
    table.add_row("the longest", f"{worst:.2f} s")
    return table


def curves(name: str, database: Database) -> Table:
    """What it takes to store and to read the samples of one long training: 100,000 of each of five metrics."""
    chance = random.Random(1)  # noqa: S311 - the same samples each time
    row = _row(chance, 0, 1) | {"uid": "long"}
    database.write(lambda connection: put(connection, TRAININGS, [row]))
    began = time.perf_counter()
    for number in range(_CHUNKS):
        samples = Curves()
        for step in range(number * SAMPLES_LIMIT // _CHUNKS, (number + 1) * SAMPLES_LIMIT // _CHUNKS):
            for metric in range(5):
                loss = 2 / (1 + step / 1e4) + chance.gauss(0, 0.05)
                samples.add(MetricId(is_eval=False, name=f"m{metric}"), round(_START + step * 0.7, 6), step, loss)
        progress = MetricProgress(1, "pod", "node", "", number + 1, number == _CHUNKS - 1)
        database.write(partial(save_samples, news=[NewSamples("long", [(1, samples.drain())], progress)]))
    written = time.perf_counter() - began
    began = time.perf_counter()
    found = History(database).curves("long")
    read = time.perf_counter() - began
    content = func.sum(func.length(METRIC_CHUNKS.c.content))
    size = database.read(lambda connection: connection.scalar(select(content).where(METRIC_CHUNKS.c.uid == "long")))
    table = Table("", "", title=f"{name}: a training with {found.total:,} samples", title_justify="left")
    table.add_row(f"made and written, in {_CHUNKS} chunks", f"{written:.1f} s")
    table.add_row("stored", f"{(size or 0) / 1e6:.1f} MB")
    table.add_row("read and decoded", f"{read * 1e3:.0f} ms")
    return table


def _recorder(number: int) -> MetricRecorder:
    recorder = MetricRecorder(f"b-{number}", MetricProgress(), lambda _: None)
    recorder.on_start(StartedContainer(f"pod-{number}", "ns", f"job-{number}-node-0-0", "node", "node-0"))
    return recorder


def _training(number: int, tick: int, written: Any) -> Training:
    """As an informer hands it on."""
    status = {
        "state": "Running",
        "startTime": "2026-01-01T00:00:00Z",
        "trainerStatus": {
            "progressPercentage": tick % 100,
            "currentStep": tick,
            "trainMetrics": {f"metric_{index}": str(tick / (index + 1)) for index in range(10)},
        },
    }
    metadata = {
        "name": f"job-{number}",
        "namespace": "ns",
        "uid": f"b-{number}",
        "resourceVersion": str(tick),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    spec = {
        "runtimeRef": {"name": "torch-distributed"},
        "trainer": {"numNodes": 4, "command": ["torchrun", "train.py"]},
    }
    types = {"apiVersion": TRAIN_JOBS.api_version, "kind": TRAIN_JOBS.kind}
    raw = json.dumps(types | {"metadata": metadata, "spec": spec, "status": status}).encode()
    return Training(CachedObject.compact(raw, TRAIN_JOBS.api_version, TRAIN_JOBS.kind), None, None, "", None, written)


def _lines(number: int, tick: int) -> bytes:
    metrics = {f"metric_{index}": tick / (index + 1) + number for index in range(10)}
    message = json.dumps({"currentStep": tick, "trainMetrics": metrics})
    second = f"{tick // 12 % 60:02}:{tick * 5 % 60:02}"
    return f"2026-01-01T00:{second}.5Z {_TAG} {message}\n2026-01-01T00:{second}.6Z epoch {tick}\n".encode()


if __name__ == "__main__":
    typer.run(main)
