"""What the webhook gets, and how often."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from aiohttp import web
from sqlalchemy import Connection
from structlog.testing import capture_logs

from packages.dashboard.tests.history.conftest import Cluster, train_job
from packages.dashboard.tests.history.test_queries import row
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.errors import ConfigurationError
from trainer_dashboard.history.notifications import ATTEMPTS, Webhook
from trainer_dashboard.history.schema import NOTIFICATIONS, TRAININGS
from trainer_dashboard.history.statements import put

SECRET = "T0/B1/hunter2"


class Receiver:
    """A webhook on loopback."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.answers: list[web.Response] = []
        """What is answered first; 200 afterwards."""
        self.may_answer = anyio.Event()
        self.may_answer.set()
        self.requests = 0
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.requests += 1
        await self.may_answer.wait()
        if self.answers:
            return self.answers.pop(0)
        assert request.path == f"/services/{SECRET}"
        self.texts.append((await request.json())["text"])
        return web.Response()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self.answer)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/services/{SECRET}"
        try:
            yield
        finally:
            await runner.cleanup()


async def until(cluster: Cluster, condition: Any) -> None:
    """Move the clock until the receiver has what is expected."""

    def holds(_: object) -> bool:
        return bool(condition())

    await cluster.until(holds, within=6 * 3600, step=5)


async def test_once_each(cluster: Cluster) -> None:
    """The webhook gets the end of a training once, also over restarts, and nothing of what had ended before."""
    receiver = Receiver()
    cluster.submit("before")
    cluster.end("before", "Failed")
    async with receiver.listening():
        webhook = Webhook(receiver.url)
        async with cluster.recorder(webhook=webhook):
            cluster.submit("good")
            cluster.submit("bad")
            cluster.submit("late")
            await cluster.until(lambda history: len(history.trainings()) == 4)
            cluster.end("good")
            cluster.end("bad", "Failed")
            await until(cluster, lambda: len(receiver.texts) == 2)
        cluster.end("late", "Failed")
        cluster.submit("meanwhile")
        cluster.end("meanwhile", "Failed")
        for _ in range(2):
            async with cluster.recorder(webhook=webhook):
                await until(cluster, lambda: len(receiver.texts) == 4)
                for _ in range(60):
                    await cluster.clock.advance(0.5)
    by_name = {text.split()[1]: text for text in receiver.texts}
    assert sorted(by_name) == ["default/bad", "default/good", "default/late", "default/meanwhile"]
    assert by_name["default/good"] == "TrainJob default/good has succeeded"
    assert by_name["default/bad"].startswith("TrainJob default/bad has failed: Ended: it is over")
    assert len(receiver.texts) == 4


async def test_namespaces_take_turns(cluster: Cluster) -> None:
    """Fifty trainings that fail in one namespace keep another namespace waiting for a few seconds, and are all sent."""
    receiver = Receiver()
    async with receiver.listening(), cluster.recorder(webhook=Webhook(receiver.url)):
        for number in range(50):
            cluster.submit(f"theirs-{number}")
        cluster.client.add(train_job("mine", namespace="quiet"))
        await cluster.until(lambda history: len(history.trainings()) == 51)
        for number in range(50):
            cluster.end(f"theirs-{number}", "Failed")
        await until(cluster, lambda: receiver.texts)
        cluster.end("mine", "Failed", namespace="quiet")
        begun = cluster.clock.monotonic()
        await cluster.until(lambda _: any("quiet/mine" in text for text in receiver.texts))
        assert cluster.clock.monotonic() - begun < 5
        await until(cluster, lambda: len(receiver.texts) == 51)
    assert len(set(receiver.texts)) == 51


async def test_cancelled(cluster: Cluster) -> None:
    """A recorder that is ended while the webhook answers notes the answer, and sends nothing twice."""
    receiver = Receiver()
    receiver.may_answer = anyio.Event()

    async def answer() -> None:
        receiver.may_answer.set()

    async with receiver.listening(), anyio.create_task_group() as tasks:
        async with cluster.recorder(webhook=Webhook(receiver.url)):
            cluster.submit()
            cluster.end("demo")
            await until(cluster, lambda: receiver.requests)
            tasks.start_soon(answer)  # once the recorder is cancelled, which the end of this block does first
        async with cluster.recorder(webhook=Webhook(receiver.url)):
            for _ in range(60):
                await cluster.clock.advance(0.5)
    assert len(receiver.texts) == 1


async def test_another_cluster(cluster: Cluster) -> None:
    """What is to be sent about another cluster is left to its own recorder."""
    due = {"uid": "other", "occasion": "Failed", "text": "of another", "state": "due", "attempts": 0, "due": 0.0}

    def fill(connection: Connection) -> None:
        put(connection, TRAININGS, [row("other", 0.0, cluster="another")])
        put(connection, NOTIFICATIONS, [due])

    await cluster.database.run(fill)
    receiver = Receiver()
    async with receiver.listening(), cluster.recorder(webhook=Webhook(receiver.url)):
        cluster.submit()
        cluster.end("demo")
        await until(cluster, lambda: receiver.texts)
        for _ in range(60):
            await cluster.clock.advance(0.5)
    assert receiver.texts == ["TrainJob default/demo has succeeded"]


async def test_stalls(cluster: Cluster) -> None:
    """The webhook gets each stall, with its sentence; markup of tenants is text."""
    receiver = Receiver()
    cluster.submit()
    async with receiver.listening(), cluster.recorder(webhook=Webhook(receiver.url)):
        await cluster.until(lambda history: history.trainings())
        for at in ("2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"):
            condition = {"type": "Stalled", "status": "True", "reason": "NoProgress", "lastTransitionTime": at}
            cluster.change("demo", state="Stalled", conditions=[condition | {"message": f"<!channel> since {at}"}])
            await until(cluster, lambda at=at: any(at in text for text in receiver.texts))
            cluster.change("demo", state="Running", conditions=[])
            await cluster.until(lambda history: history.trainings()[0].state == "Running")
    assert len(receiver.texts) == 2
    assert "&lt;!channel&gt;" in receiver.texts[0]


async def test_only_some(cluster: Cluster) -> None:
    """A webhook for failures gets no other ends."""
    receiver = Receiver()
    async with receiver.listening(), cluster.recorder(webhook=Webhook(receiver.url, frozenset({"Failed"}))):
        for name, kind in (("good", "Complete"), ("bad", "Failed")):
            cluster.submit(name)
            cluster.end(name, kind)
        await until(cluster, lambda: receiver.texts)
        for _ in range(60):
            await cluster.clock.advance(0.5)
    assert [text.split()[1] for text in receiver.texts] == ["default/bad"]


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        pytest.param(500, {}, id="error"),
        pytest.param(429, {"Retry-After": "60"}, id="throttled"),
        pytest.param(302, {"Location": "/elsewhere"}, id="redirect"),
    ],
)
async def test_tried_again(cluster: Cluster, status: int, headers: dict[str, str]) -> None:
    """What the webhook refuses is tried again, never elsewhere, and no log has the URL."""
    receiver = Receiver()
    receiver.answers = [web.Response(status=status, headers=headers)]
    with capture_logs() as logs:
        async with receiver.listening(), cluster.recorder(webhook=Webhook(receiver.url)):
            cluster.submit()
            cluster.end("demo")
            await until(cluster, lambda: receiver.texts)
    assert receiver.requests == 2
    assert any(f"answers {status}" in str(event) for event in logs)
    assert "hunter2" not in str(logs)


async def test_given_up(cluster: Cluster) -> None:
    """A webhook that is not there is given up after some hours, and no log has the URL."""
    with capture_logs() as logs:
        async with cluster.recorder(webhook=Webhook(f"http://127.0.0.1:1/{SECRET}")):
            cluster.submit()
            cluster.end("demo")
            await until(cluster, lambda: any(event.get("outcome") == "given up" for event in logs))
    tries = [event for event in logs if event["event"] == "could not notify"]
    assert len(tries) == ATTEMPTS
    assert "hunter2" not in str(logs)
    assert cluster.client.find(TRAIN_JOBS, "demo", "default") is not None


@pytest.mark.parametrize("url", ["", "ftp://host/hunter2", "hunter2", "https://", "https://a\nhunter2"])
def test_wrong_url(url: str) -> None:
    """A wrong URL is refused without its text, which no representation has either."""
    with pytest.raises(ConfigurationError, match="must begin with https://") as caught:
        Webhook(url)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(Webhook(f"https://host/{SECRET}"))
