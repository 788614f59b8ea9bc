"""`python -m benchmarks.survival`: what is left of a training that is disrupted every half a minute.

The same training runs four times at once on a dev cluster: as a TrainJob with checkpoints, as one without, as a plain
Job of Kubernetes, and as a TrainJob with checkpoints that nobody disturbs. Every `--every` seconds the pods of the
first three are evicted by the eviction API, as by `kubectl drain`. **Goodput** is useful training time by total time:
the steps of whose results the training has something left at the end, times the length of a step, by the time since it
was created.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final

import anyio
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.child import child
from benchmarks.survival_training import STARTED
from trainer.api.checkpoints import CHECKPOINTS
from trainer.api.jobset_labels import JOBSET_NAME
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.installation import install_definitions, install_runtimes
from trainer.configuration.configuration import Configuration, render_configuration
from trainer.kube.client import Client
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import Object, has_finished, is_being_deleted, name_of
from trainer.kube.resource import JOBS, PERSISTENT_VOLUME_CLAIMS, PODS
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer.kube.selection import Selection

NAMESPACE: Final = "default"
_CLAIM: Final = "survival"
_MOUNT: Final = "/survival"
_TRAINING: Final = Path(__file__).with_name("survival_training.py")


@dataclass(frozen=True, slots=True)
class Lengths:
    """Times in seconds."""

    total: float
    every: float
    """Between two disruptions."""
    start: float
    """From the start of the program to its first step."""
    step: float
    interval: float
    """Between two checkpoints."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of running the training."""

    name: str
    is_train_job: bool
    has_checkpoints: bool
    is_disturbed: bool

    @property
    def pods(self) -> Selection:
        """Its pods."""
        label = JOBSET_NAME if self.is_train_job else "job-name"
        return Selection(NAMESPACE, label_selector=f"{label}={self.name}")


VARIANTS: Final = (
    Variant("checkpoints", is_train_job=True, has_checkpoints=True, is_disturbed=True),
    Variant("no-checkpoints", is_train_job=True, has_checkpoints=False, is_disturbed=True),
    Variant("plain-job", is_train_job=False, has_checkpoints=False, is_disturbed=True),
    Variant("undisturbed", is_train_job=True, has_checkpoints=True, is_disturbed=False),
)


@dataclass(frozen=True, slots=True)
class Run:
    """What one pod has recorded."""

    started: float
    """Unix time."""
    steps: tuple[tuple[int, float], ...]
    """Number and Unix time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one variant."""

    name: str
    disruptions: int
    starts: int
    steps: int
    """That were made, those made twice included."""
    kept: int
    """Of whose results something is left at the end."""
    goodput: float
    recovery: float
    """Seconds from the last step of one pod to the first of the next one, the median; not a number without one."""


def runs_of(record: Path) -> list[Run]:
    """The runs in the file of a training, which may end in the middle of a line; none while there is no file."""
    text = record.read_text() if record.exists() else ""
    runs: list[tuple[float, list[tuple[int, float]]]] = []
    for line in text.splitlines(keepends=True):
        word, _, moment = line.rstrip("\n").partition(" ")
        if not line.endswith("\n"):
            break
        if word == STARTED:
            runs.append((float(moment), []))
        else:
            runs[-1][1].append((int(word), float(moment)))
    return [Run(started, tuple(steps)) for started, steps in runs]


def outcome(variant: Variant, runs: Sequence[Run], disruptions: int, lengths: Lengths, seconds: float) -> Outcome:
    """Count what a variant has done in so many seconds."""
    made = sum(len(run.steps) for run in runs)
    last = runs if variant.has_checkpoints else runs[-1:]
    kept = next((run.steps[-1][0] for run in reversed(last) if run.steps), 0)
    trained = [run.steps for run in runs if run.steps]
    pauses = [after[0][1] - before[-1][1] for before, after in pairwise(trained)]
    goodput = kept * lengths.step / seconds
    recovery = statistics.median(pauses) if pauses else float("nan")
    return Outcome(variant.name, disruptions, len(runs), made, kept, goodput, recovery)


class Survival:
    """The four trainings on one dev cluster."""

    def __init__(self, client: Client, claims: Path, lengths: Lengths) -> None:
        self._client, self._claims, self._lengths = client, claims, lengths
        self._disruptions = dict.fromkeys((variant.name for variant in VARIANTS), 0)

    async def measure(self) -> list[Outcome]:
        """Train, disturb, and count."""
        for obj in _claims():
            await self._client.create(PERSISTENT_VOLUME_CLAIMS, obj)
        started = time.time()
        for variant in VARIANTS:
            resource = TRAIN_JOBS if variant.is_train_job else JOBS
            await self._client.create(resource, self._training(variant))
        end = anyio.current_time() + self._lengths.total
        while anyio.current_time() + self._lengths.every < end:
            await anyio.sleep(self._lengths.every)
            for variant in VARIANTS:
                if variant.is_disturbed:
                    await self._disturb(variant)
        await anyio.sleep(max(0.0, end - anyio.current_time()))
        seconds = time.time() - started
        return [
            outcome(each, runs_of(self._record(each)), self._disruptions[each.name], self._lengths, seconds)
            for each in VARIANTS
        ]

    async def _disturb(self, variant: Variant) -> None:
        """Evict the pods that run; one that is going already is left alone."""
        for pod in (await self._client.list(PODS, variant.pods)).items:
            if has_finished(pod) or is_being_deleted(pod):
                continue
            metadata = {"name": name_of(pod), "namespace": NAMESPACE}
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
            try:
                await self._client.create(PODS, eviction, subresource="eviction")
            except NotFoundError:
                continue
            self._disruptions[variant.name] += 1

    def _record(self, variant: Variant) -> Path:
        return self._claims / NAMESPACE / _CLAIM / variant.name

    def _command(self, variant: Variant) -> list[str]:
        lengths = (self._lengths.start, self._lengths.step, self._lengths.interval)
        return [sys.executable, str(_TRAINING), f"{_MOUNT}/{variant.name}", *map(str, lengths)]

    def _training(self, variant: Variant) -> Object:
        metadata: Object = {"name": variant.name, "namespace": NAMESPACE}
        volumes = [{"name": _CLAIM, "persistentVolumeClaim": {"claimName": _CLAIM}}]
        mounts = [{"name": _CLAIM, "mountPath": _MOUNT}]
        if not variant.is_train_job:
            container = {"name": "trainer", "image": "none", "command": self._command(variant), "volumeMounts": mounts}
            pod = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
            spec = {"backoffLimit": 1_000_000, "template": {"spec": pod}}
            return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
        if variant.has_checkpoints:
            metadata["annotations"] = {CHECKPOINTS: "checkpoints"}
        override = {
            "targetJobs": [{"name": "node"}],
            "volumes": volumes,
            "containers": [{"name": "trainer", "volumeMounts": mounts}],
        }
        spec = {
            "runtimeRef": {"name": "plain"},
            "trainer": {"image": "none", "command": self._command(variant)},
            "podSpecOverrides": [override],
        }
        return {"apiVersion": TRAIN_JOBS.api_version, "kind": TRAIN_JOBS.kind, "metadata": metadata, "spec": spec}


def _claims() -> Iterator[Object]:
    for name in (_CLAIM, "checkpoints"):
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }


def show(outcomes: Sequence[Outcome], lengths: Lengths) -> None:
    """Print the table."""
    console = Console(width=100)
    console.print(
        f"{lengths.total:g} s, a disruption every {lengths.every:g} s, {lengths.start:g} s to start, steps of "
        f"{lengths.step:g} s, a checkpoint every {lengths.interval:g} s",
        highlight=False,
    )
    table = Table("training", "evicted", "starts", "steps made", "kept", "lost", "recovery s", "goodput")
    for each in outcomes:
        cells = (each.disruptions, each.starts, each.steps, each.kept, each.steps - each.kept)
        table.add_row(each.name, *map(str, cells), f"{each.recovery:.1f}", f"{each.goodput:.1%}")
    console.print(table)


async def run(kubeconfig: Path, claims: Path, lengths: Lengths) -> list[Outcome]:
    """Measure on a dev cluster whose manager runs."""
    async with connect(ConnectionOptions(kubeconfig=kubeconfig)) as client:
        return await Survival(client, claims, lengths).measure()


async def _prepare(kubeconfig: Path) -> None:
    async with connect(ConnectionOptions(kubeconfig=kubeconfig)) as client:
        await install_definitions(client)
        await install_runtimes(client)


def main(
    seconds: Annotated[float, typer.Option(min=1, help="Length of the whole.")] = 600,
    every: Annotated[float, typer.Option(min=1, help="Seconds between two disruptions.")] = 30,
    start: Annotated[float, typer.Option(help="Seconds from the start of the program to its first step.")] = 3,
    step: Annotated[float, typer.Option(help="Seconds of a step.")] = 0.2,
    interval: Annotated[float, typer.Option(help="Seconds between two checkpoints.")] = 10,
) -> None:
    """Train under disruptions, and print the goodput."""
    lengths = Lengths(seconds, every, start, step, interval)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        kubeconfig, data = directory / "kubeconfig", directory / "data"
        trainer = [sys.executable, "-m", "trainer.cli"]
        options = ["--data-dir", str(data), "--kubeconfig", str(kubeconfig)]
        with child("cluster", [*trainer, "cluster", *options], directory, ready="cluster ready"):
            anyio.run(_prepare, kubeconfig)
            configuration = directory / "configuration.yaml"
            configuration.write_text(render_configuration(Configuration().without_servers()), encoding="utf-8")
            files = ["--kubeconfig", str(kubeconfig), "--config", str(configuration)]
            with child("manager", [*trainer, "manager", *files], directory, ready="started manager"):
                show(anyio.run(run, kubeconfig, data / "claims", lengths), lengths)


if __name__ == "__main__":
    typer.run(main)
