"""Metrics of a TrainJob that are read while somebody looks at them."""

from __future__ import annotations

import anyio
import pytest

from packages.dashboard.tests.conftest import UserClient, node_pod, train_job
from trainer.kube.errors import ForbiddenError, UnauthorizedError
from trainer.kube.logs.redaction import REDACTED
from trainer.progress.samples import MetricId
from trainer_dashboard.live import metric_feed
from trainer_dashboard.live.metric_feed import MetricFeed
from trainer_kube_testing import ManualClock, eventually

TAG = b"[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        pytest.param("log", ForbiddenError(403, "no right to logs"), id="log"),
        pytest.param("get", UnauthorizedError(401, "no right to jobsets"), id="jobset"),
    ],
)
async def test_refused_for_a_while(verb: str, error: Exception) -> None:
    """What was refused is asked for again, and the problem is over when it is read."""
    clock = ManualClock()
    client = UserClient()
    client.faults.fail(error, verb=verb)
    client.log("demo-node-0-0-abcde", "default", "node").write(b'%b {"trainMetrics": {"loss": 2.5}}\n' % TAG)
    feed = MetricFeed(client, train_job(), clock)
    feed.observe([client.add(node_pod("demo"))])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(feed.run)
        await eventually(lambda: "no right" in feed.problem, clock=clock, within=1)
        await eventually(lambda: bool(feed.curves.by_metric), clock=clock, within=60)
        assert not feed.problem
        tasks.cancel_scope.cancel()


async def test_many_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more samples than one answer may have every second goes, and the last stays."""
    monkeypatch.setattr(metric_feed, "SAMPLES", 100)
    clock = ManualClock()
    client = UserClient()
    log = client.log("demo-node-0-0-abcde", "default", "node")
    for step in range(250):
        log.write(b'%b {"trainMetrics": {"loss": %d, "lr": 1}}\n' % (TAG, step))
    feed = MetricFeed(client, train_job(), clock)
    feed.observe([client.add(node_pod("demo"))])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(feed.run)
        await eventually(lambda: 249 in _losses(feed), clock=clock, within=60)
        assert 50 <= feed.curves.total <= 100
        tasks.cancel_scope.cancel()


async def test_pace_of_parameters() -> None:
    """A log that has other parameters again and again has them looked through for secrets every two seconds alone."""
    clock = ManualClock()
    client = UserClient()
    log = client.log("demo-node-0-0-abcde", "default", "node")
    log.write(b'%b {"parameters": {"lr": "1", "hub_token": "hunter2"}}\n' % TAG)
    feed = MetricFeed(client, train_job(), clock)
    feed.observe([client.add(node_pod("demo"))])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(feed.run)
        await eventually(lambda: bool(feed.curves.parameters), clock=clock, within=60)
        assert feed.parameters == {"lr": "1", "hub_token": REDACTED}
        feed.curves.take(b'2026-01-01T00:00:00Z %b {"parameters": {"lr": "2"}}\n' % TAG)
        assert feed.parameters["lr"] == "1"
        await clock.advance(2)
        assert feed.parameters["lr"] == "2"
        tasks.cancel_scope.cancel()


def _losses(feed: MetricFeed) -> list[float]:
    curve = feed.curves.by_metric.get(MetricId(is_eval=False, name="loss"))
    return [] if curve is None else list(curve.values)
