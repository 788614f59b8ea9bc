"""`trainer metrics`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.cli.conftest import finished, node_pod, screen, text_of, train_job
from trainer.cli.app import app
from trainer.cli.errors import CommandError
from trainer.cli.metrics.metrics import MetricReader
from trainer.cli.metrics.printing import MetricsFormat
from trainer.kube.objects import Object
from trainer.kube.podlogs.instant import Instant
from trainer_kube_testing import FakeClient, ManualClock

TAGGED = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus] "
START = 1_767_225_600
RUNNING = train_job(state="Running")


def write(client: FakeClient, *messages: dict[str, Any] | str, start: int = START, phase: str = "Running") -> None:
    """Let node 0 print messages, one each second, or other lines."""
    pod = node_pod("demo", 0, phase=phase)
    client.add({**pod, "metadata": {**pod["metadata"], "uid": "node"}})
    log = client.log(pod["metadata"]["name"], "default", "trainer")
    for number, message in enumerate(messages):
        line = message if isinstance(message, str) else TAGGED + json.dumps(message)
        log.write(f"{line}\n".encode(), Instant(start + number))
    if phase != "Running":
        log.end()


async def show(
    client: FakeClient, clock: ManualClock, form: MetricsFormat = MetricsFormat.CHART, job: Object = RUNNING
) -> str:
    """What the command prints."""
    console = screen(terminal=form is MetricsFormat.CHART)
    await MetricReader(client, client.add(job), form, console, clock).show()
    return text_of(console)


SAMPLES: list[dict[str, Any] | str] = [
    {"currentStep": 0, "trainMetrics": {"loss": 2.5, "learning_rate": 0.001}},
    "an ordinary line",
    {"currentStep": 10, "trainMetrics": {"loss": 1.0}, "evalMetrics": {"accuracy": 0.5}},
    {"currentStep": 20, "currentEpoch": 1, "trainMetrics": {"loss": 0.5}, "evalMetrics": {"accuracy": 0.75}},
]


async def test_charts(client: FakeClient, clock: ManualClock) -> None:
    """Each metric has a chart with its greatest and least and last value over the steps."""
    write(client, *SAMPLES, phase="Succeeded")

    lines = (await show(client, clock)).splitlines()

    assert lines[0] == "Training"
    assert lines[1].split() == ["loss", "last", "0.5", "learning_rate", "last", "0.001"]
    assert lines[2].startswith("2.5 ")
    assert lines[5].startswith("0.5 ")
    assert lines[6].split() == ["step", "0", "20", "step", "0", "0"]
    assert lines[8] == "Evaluation"
    assert lines[9].split() == ["accuracy", "last", "0.75"]
    assert lines[14].split() == ["step", "10", "20"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        pytest.param("Epoch {}/3 loss=0.9", ["epoch", "1", "3"], id="epochs"),
        pytest.param("iterate {}: loss=0.9", ["00:00:00", "+2", "s"], id="time"),
    ],
)
async def test_axis_of_a_plain_loop(client: FakeClient, clock: ManualClock, line: str, ends: list[str]) -> None:
    """Without steps the values are drawn over epochs, and without either over time."""
    write(client, *(line.format(number) for number in (1, 2, 3)), phase="Succeeded")

    assert (await show(client, clock)).splitlines()[6].split() == ends


async def test_json(client: FakeClient, clock: ManualClock) -> None:
    """Programs get all samples with the pod that they are of."""
    write(client, *SAMPLES, phase="Succeeded")

    answer = json.loads(await show(client, clock, MetricsFormat.JSON))

    assert (answer["name"], answer["namespace"], answer["container"]) == ("demo", "default", "trainer")
    assert answer["pod"] == "demo-node-0-0-abcde"
    assert [(metric["kind"], metric["name"], len(metric["samples"])) for metric in answer["metrics"]] == [
        ("train", "loss", 3),
        ("train", "learning_rate", 1),
        ("eval", "accuracy", 2),
    ]
    assert answer["metrics"][2]["samples"] == [
        {"time": "2026-01-01T00:00:02Z", "step": 10, "epoch": None, "value": 0.5},
        {"time": "2026-01-01T00:00:03Z", "step": 20, "epoch": 1, "value": 0.75},
    ]


async def test_csv(client: FakeClient, clock: ManualClock) -> None:
    """Tables get one row for each sample, the numbers as they were printed."""
    write(client, f'{TAGGED}{{"currentStep": 1, "trainMetrics": {{"a, b": 0.1000}}}}', phase="Succeeded")

    rows = list(csv.reader(io.StringIO(await show(client, clock, MetricsFormat.CSV))))

    assert rows == [
        ["time", "kind", "name", "value", "step", "epoch"],
        ["2026-01-01T00:00:00Z", "train", "a, b", "0.1000", "1", ""],
    ]


@pytest.mark.parametrize(
    ("messages", "error", "warning"),
    [
        pytest.param([], "TrainJob demo has reported no metrics: its training must call report()", "", id="none"),
        pytest.param(
            [{"currentStep": 1}], "TrainJob demo has reported progress, but no metrics", "", id="progress alone"
        ),
        pytest.param(
            [{"trainMetrics": {"loss": "much"}}],
            "TrainJob demo has reported progress, but no metrics",
            "warning: 1 values were dropped, the last one: trainMetrics[loss]: Invalid value",
            id="dropped value",
        ),
        pytest.param(
            ["[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus] much"],
            "TrainJob demo has reported no metrics",
            'warning: 1 messages were not understood, the last one: Invalid value: "much": must be one JSON object',
            id="not understood",
        ),
    ],
)
async def test_no_metrics(
    client: FakeClient,
    clock: ManualClock,
    capsys: pytest.CaptureFixture[str],
    messages: list[dict[str, Any]],
    error: str,
    warning: str,
) -> None:
    """A log without metrics is an error that says what to do."""
    write(client, *messages, phase="Succeeded")

    with pytest.raises(CommandError) as caught:
        await show(client, clock)

    assert str(caught.value).startswith(error)
    assert capsys.readouterr().err.startswith(warning)


@pytest.mark.parametrize(
    ("job", "phase", "error"),
    [
        pytest.param(
            train_job(state="Pending"),
            "Pending",
            "the training of TrainJob demo has not started yet: it is Pending",
            id="not started",
        ),
        pytest.param(
            train_job(**finished("Complete", "Done", "")),
            None,
            "the pod of TrainJob demo is gone, and its log with it: trainer get demo shows the last values",
            id="gone",
        ),
    ],
)
async def test_no_log(client: FakeClient, clock: ManualClock, job: Object, phase: str | None, error: str) -> None:
    """Where there is no log, the error says why."""
    if phase is not None:
        client.add(node_pod("demo", 0, phase=phase))

    with pytest.raises(CommandError) as caught:
        await show(client, clock, job=job)

    assert str(caught.value) == error


@asynccontextmanager
async def watching(
    client: FakeClient, clock: ManualClock, console: Console, form: MetricsFormat
) -> AsyncIterator[None]:
    """Watches in the background until the job, which ends after the body, has ended."""
    ended = anyio.Event()
    job = client.add(RUNNING)

    async def watch() -> None:
        await MetricReader(client, job, form, console, clock).watch()
        ended.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await clock.advance(0)
            yield
            await clock.advance(1)
            assert not ended.is_set()
            write(client, phase="Succeeded")
            client.add(train_job(**finished("Complete", "Done", "")))
            while not ended.is_set():
                await clock.advance(1)


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        pytest.param(
            MetricsFormat.CHART,
            [
                "2026-01-01T00:00:00Z  step 1  train loss 2.0",
                "2026-01-01T00:00:10Z  step 2  train loss 1.0",
                "2026-01-01T00:00:10Z  step 2  eval accuracy 0.5",
            ],
            id="text",
        ),
        pytest.param(
            MetricsFormat.CSV,
            [
                "time,kind,name,value,step,epoch",
                "2026-01-01T00:00:00Z,train,loss,2.0,1,",
                "2026-01-01T00:00:10Z,train,loss,1.0,2,",
                "2026-01-01T00:00:10Z,eval,accuracy,0.5,2,",
            ],
            id="csv",
        ),
    ],
)
async def test_watch_prints_samples(
    client: FakeClient, clock: ManualClock, form: MetricsFormat, lines: list[str]
) -> None:
    """Without a terminal a watch prints each sample when it comes, until the job has ended."""
    console = screen()
    write(client, {"currentStep": 1, "trainMetrics": {"loss": 2.0}})
    async with watching(client, clock, console, form):
        news = {"currentStep": 2, "trainMetrics": {"loss": 1.0}, "evalMetrics": {"accuracy": 0.5}}
        write(client, news, start=START + 10)

    assert text_of(console).splitlines() == lines


async def test_live_charts(client: FakeClient, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the charts grow while the training goes on."""
    monkeypatch.setenv("TERM", "xterm")
    console = screen(terminal=True)
    async with watching(client, clock, console, MetricsFormat.CHART):
        assert "no metrics yet" in text_of(console)
        write(client, *SAMPLES)
        await clock.advance(1)
        assert "last 0.5" in text_of(console)

    assert "demo  Complete" in text_of(console)


def test_command_line(served: FakeClient, cluster: None) -> None:
    """The command draws, prints data, and refuses forms that it does not know."""
    served.add(train_job(**finished("Complete", "Done", "")))
    write(served, *SAMPLES, phase="Succeeded")
    invoke = CliRunner().invoke

    assert invoke(app, "metrics demo").stdout.startswith("Training\nloss ")
    assert json.loads(invoke(app, "metrics demo -o json").stdout)["name"] == "demo"
    watched = [json.loads(line) for line in invoke(app, "metrics demo -w -o json").stdout.splitlines()]
    assert [(sample["name"], sample["step"]) for sample in watched] == [
        ("loss", 0), ("learning_rate", 0), ("loss", 10), ("accuracy", 10), ("loss", 20), ("accuracy", 20)
    ]  # fmt: skip
    assert invoke(app, "metrics demo -w").stdout.splitlines()[0] == "2026-01-01T00:00:00Z  step 0  train loss 2.5"
    assert len(invoke(app, "metrics demo -o csv").stdout.splitlines()) == 7
    assert invoke(app, "metrics nope").stderr.startswith("error: there is no TrainJob nope in namespace default")
    assert (invoke(app, "metrics demo -o xml").exit_code, invoke(app, "metrics").exit_code) == (2, 2)
