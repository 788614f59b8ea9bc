"""A TrainJob in the hands of a script or a notebook."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

import trainer
from tests.cli.conftest import finished, node_pod, train_job
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.errors import CommandError, GoneError
from trainer.kube.podlogs.instant import Instant
from trainer_kube_testing import FakeClient

pytestmark = pytest.mark.usefixtures("cluster")
COMPLETE = finished("Complete", "AllJobsCompleted", "jobset completed")
FAILED = finished(
    "Failed",
    "JobsFailed",
    "node-1: RuntimeError: no data\npod demo-node-0-1-abcde: container trainer exited with code 1; jobset failed\n"
    "last lines of its log:\n"
    "Traceback (most recent call last):\nRuntimeError: no data\n",
)
MESSAGE = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus] " + json.dumps(
    {"currentStep": 10, "trainMetrics": {"loss": 0.5}, "evalMetrics": {"accuracy": 0.75}}
)
START = 1_767_225_600


def submitted(served: FakeClient, **status: Any) -> trainer.SubmittedJob:
    """A TrainJob with this status."""
    served.add(train_job(**status))
    return trainer.job("demo")


def write_log(served: FakeClient, *lines: str) -> None:
    """Let node 0 have printed lines, and have ended."""
    pod = node_pod("demo", 0, phase="Succeeded")
    served.add({**pod, "metadata": {**pod["metadata"], "uid": "node"}})
    log = served.log(pod["metadata"]["name"], "default", "trainer")
    for number, line in enumerate(lines):
        log.write(f"{line}\n".encode(), Instant(START + number))
    log.end()


def test_status(served: FakeClient) -> None:
    """The state is that of the cluster whenever it is asked for; to print the handle asks nobody."""
    job = submitted(served, state="Running", trainerStatus={"progressPercentage": 40})

    assert (job.state, job.progress.percentage) == ("Running", 40)
    served.add(train_job(**COMPLETE))
    assert repr(job) == "SubmittedJob(name='demo', namespace='default', state='Running')"
    assert job.status() == trainer.JobStatus("Complete", "AllJobsCompleted", "jobset completed", job.progress)


def test_wait(served: FakeClient) -> None:
    """It returns the handle of a training that is complete, also where a loop runs."""
    job = submitted(served, **COMPLETE)

    async def cell() -> trainer.SubmittedJob:
        return job.wait()

    assert asyncio.run(cell()) is job


def test_failure(served: FakeClient) -> None:
    """The exception says which node failed, and the error of its program."""
    with pytest.raises(trainer.TrainingFailedError) as raised:
        submitted(served, **FAILED).wait()

    error = raised.value
    assert str(error) == "TrainJob demo has failed: node-1: RuntimeError: no data"
    assert (error.node, error.line, error.reason) == ("node-1", "RuntimeError: no data", "JobsFailed")


def test_timeout(served: FakeClient) -> None:
    """One that has not ended in time continues."""
    with pytest.raises(TimeoutError, match=r"TrainJob demo has not ended after 0 s: it is Running"):
        submitted(served, state="Running").wait(timeout=0)


def test_logs(served: FakeClient) -> None:
    """Lines are those that people read, also in the middle of a loop that somebody leaves early."""
    write_log(served, "one", MESSAGE, "two")
    job = submitted(served, **COMPLETE)

    assert list(job.logs()) == ["one", "two"]
    assert list(job.logs(tail=1, all_nodes=True)) == ["node-0 | two"]
    assert next(job.logs(follow=True)) == "one"


def test_long_log_left_early(served: FakeClient) -> None:
    """A reader that stops does not wait for the rest, of which a pipe holds only a part."""
    write_log(served, *(["x" * 1000] * 1000))
    lines = submitted(served, **COMPLETE).logs()

    assert next(lines) == "x" * 1000
    lines.close()  # type: ignore[attr-defined]


def test_progress_bar_left_early(served: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who stops reading while a bar is drawn keeps the stdout of the process, which Rich would point to nowhere."""
    taken: list[Console] = []
    monkeypatch.setattr(Console, "on_broken_pipe", lambda console: taken.append(console))  # noqa: PLW0108 - a method
    pod = node_pod("demo", 0, phase="Running")
    served.add({**pod, "metadata": {**pod["metadata"], "uid": "node"}})
    log = served.log(pod["metadata"]["name"], "default", "trainer")
    log.write(b"one\n 10%|#  |\r 20%|## |\r", Instant(START))
    lines = submitted(served, state="Running").logs(follow=True)

    assert next(lines) == "one"
    lines.close()  # type: ignore[attr-defined]
    assert taken == []


def test_no_logs(served: FakeClient) -> None:
    """Without pods there are none, and the error says so."""
    with pytest.raises(CommandError, match="TrainJob demo has no pods: it is Suspended"):
        list(submitted(served, state="Suspended").logs())


def test_metrics(served: FakeClient) -> None:
    """Each value is one record, which pandas takes as a row."""
    write_log(served, MESSAGE)

    assert submitted(served, **COMPLETE).metrics() == [
        trainer.MetricSample(datetime.fromtimestamp(START, UTC), "train", "loss", 0.5, 10, None),
        trainer.MetricSample(datetime.fromtimestamp(START, UTC), "eval", "accuracy", 0.75, 10, None),
    ]


def test_no_metrics_yet(served: FakeClient) -> None:
    """One that has not started has none."""
    assert submitted(served, state="Suspended").metrics() == []


def test_delete(served: FakeClient) -> None:
    """Afterwards it is gone, and every question says so."""
    job = submitted(served, state="Running")

    job.delete()

    assert served.objects(TRAIN_JOBS) == []
    with pytest.raises(GoneError, match="there is no TrainJob demo in namespace default"):
        job.status()


def test_another_one_of_its_name(served: FakeClient) -> None:
    """A handle does not speak of, or delete, a later TrainJob."""
    job = submitted(served, state="Running")
    later = train_job(state="Running")
    later["metadata"]["uid"] = "later"
    served.add(later)

    with pytest.raises(GoneError, match="was deleted, and there is another one of its name"):
        job.delete()


def test_html(served: FakeClient) -> None:
    """A notebook shows state, progress and metrics; what a training has named is text."""
    status = {"progressPercentage": 40, "trainMetrics": {"<b>": "0.5"}, "lastUpdatedTime": "2026-01-01T00:00:00Z"}

    shown = submitted(served, state="Running", trainerStatus=status)._repr_html_()

    assert "<strong>demo</strong> in default" in shown
    assert '<progress max="100" value="40"></progress> 40 %' in shown
    assert "&lt;b&gt;</th><td>0.5</td>" in shown


def test_html_of_a_silent_training(served: FakeClient) -> None:
    """In place of the remaining time a notebook shows for how long nothing has been reported."""
    last = (datetime.now(UTC) - timedelta(hours=2, minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"lastUpdatedTime": last, "estimatedRemainingTimeSummary": "no report since 10:30 UTC"}

    shown = submitted(served, state="Running", trainerStatus=status)._repr_html_()

    assert "Remaining</th><td>no report for 2 hours" in shown
