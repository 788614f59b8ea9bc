"""A tenant takes neither memory nor turns from the others who use the dashboard of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from packages.dashboard.tests.conftest import PAGE, UserClient, node_pod, running, train_job, visiting
from packages.dashboard.tests.live.test_log_stream import Reader
from packages.dashboard.tests.members import TOKEN, ClusterClient
from trainer.framework.deploying.transforms import bounded_cache
from trainer.kube.events.compact import MESSAGE_LIMIT
from trainer.kube.objects import Object
from trainer.kubernetes_yaml import parse
from trainer.v1alpha1.discovery import V2ALPHA1
from trainer_dashboard.access.cluster_authenticator import ClusterAuthenticator
from trainer_dashboard.access.memory import OF_ONE
from trainer_dashboard.access.parties import REQUESTS_OF_ONE, Parties
from trainer_dashboard.access.viewer import Owner
from trainer_dashboard.live.event_stream import Changes, EventStream
from trainer_dashboard.live.log_stream import LogSource, LogStreams
from trainer_dashboard.live.metric_feed import MetricFeeds
from trainer_dashboard.live.namespace_informers import NamespaceInformers
from trainer_dashboard.requests import submissions
from trainer_dashboard.server import Dashboard, DashboardOptions
from trainer_kube_testing import ManualClock

EVENTS = 100
TAG = b"[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"
TENANT = "system:serviceaccount:team:one"


def large_event(number: int) -> Object:
    """An event about the TrainJob as large as the API server stores it."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"large-{number}", "namespace": "default", "annotations": {"a": "x" * 500_000}},
        "involvedObject": {"kind": "Job", "name": "demo-node-0", "namespace": "default"},
        "reason": "Large",
        "message": "x" * 500_000,
        "count": 3,
        "type": "Normal",
        "lastTimestamp": "2026-01-01T00:00:05Z",
    }


async def test_large_events() -> None:
    """A page with a hundred events of a megabyte has a kilobyte of each, and what it shows of them."""
    client = UserClient(train_job(), *map(large_event, range(EVENTS)))
    async with visiting(client) as visitor, visitor.stream("/api/trainjobs/default/demo") as events:
        shown = await events.next("events")
        while len(shown) < EVENTS:
            shown = await events.next("events")
        assert {(len(event["message"]), event["count"]) for event in shown} == {(MESSAGE_LIMIT, 3)}


async def test_unread_logs() -> None:
    """Streams of 16 logs of four-byte characters, which nobody reads, hold what one party may hold and no more."""
    clock, parties = ManualClock(), Parties()
    pods = [node_pod("demo", index) for index in range(16)]
    client = UserClient(*pods, clock=clock)
    sources = tuple(LogSource(pod["metadata"]["name"], "node") for pod in pods)
    logs = [client.log(source.pod, "default", "node") for source in sources]
    streams = LogStreams(NamespaceInformers(cache := bounded_cache(client, clock)), clock)
    readers = [Reader() for _ in range(4)]
    most = 0

    async def stream(reader: Reader) -> None:
        request: Any = make_mocked_request("GET", "/", writer=reader)
        with parties.of(TENANT).streaming(lambda: None, logs=len(sources)) as slot:
            assert slot is not None
            await streams.stream(request, "default", sources, Owner(client), slot)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cache.run)
        for reader in readers:
            tasks.start_soon(stream, reader)
        await clock.advance(1)
        for reader in readers:
            reader.leave()
        for _ in range(5):
            for log in logs:
                log.write(("\U0001f600" * 1000 + "\n").encode() * 60)
            await clock.advance(1)
            most = max(most, parties.memory.used)
        tasks.cancel_scope.cancel()
    assert OF_ONE // 4 < most <= OF_ONE
    assert parties.memory.used == 0


async def test_metric_feeds() -> None:
    """The samples of any number of trainings that one party looks at are thinned out to what it may hold."""
    clock, parties = ManualClock(), Parties()
    parties.memory.of_one = 1 << 20
    jobs = [train_job(f"job-{number}") for number in range(8)]
    client = UserClient(*jobs, clock=clock)
    for job in jobs:
        name = job["metadata"]["name"]
        log = client.log(f"{name}-node-0-0-abcde", "default", "node")
        log.write(b"".join(b'%b {"trainMetrics": {"loss": %d}}\n' % (TAG, step) for step in range(8000)))
    async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        feeds = MetricFeeds(client, clock, tasks)
        shown = []
        for job in jobs:
            feed = await stack.enter_async_context(feeds.of(job, Changes(), parties.of(TENANT)))
            feed.observe([client.add(node_pod(job["metadata"]["name"]))])
            shown.append(feed)
        for _ in range(20):
            await clock.advance(1)
        assert (1 << 20) // 3 < parties.memory.used_by(parties.of(TENANT).name) <= 1 << 20
        assert all(curve.values[-1] == 7999 for feed in shown for curve in feed.curves.by_metric.values())
        assert not any(feed.problem for feed in shown)
        tasks.cancel_scope.cancel()
    assert parties.memory.used == 0


def test_pages_of_one_party() -> None:
    """Pages that follow more logs than one party may hold give way, and pages of others stay."""
    parties = Parties()
    ended: list[str] = []
    users = ["jane", *(f"system:serviceaccount:team:{number}" for number in range(64))]
    with ExitStack() as stack:
        for user in users:
            stack.enter_context(parties.of(user).streaming(partial(ended.append, user), logs=16))
        assert parties.memory.used_by(parties.of(TENANT).name) <= OF_ONE
        assert 0 < len(ended) < 64
        assert "jane" not in ended


async def test_unread_answers() -> None:
    """An answer is counted until its reader has taken it, and the largest of a party that has too many ends."""
    parties, readers = Parties(), [Reader() for _ in range(5)]
    ended: list[Reader] = []

    async def answer(reader: Reader) -> None:
        request: Any = make_mocked_request("GET", "/", writer=reader)
        await parties.of(TENANT).send(request, web.Response(body=b"x" * (8 << 20)), partial(ended.append, reader))

    async with anyio.create_task_group() as tasks:
        for reader in readers:
            reader.leave()
            tasks.start_soon(answer, reader)
        await anyio.wait_all_tasks_blocked()
        assert (len(ended), parties.memory.used) == (1, OF_ONE)
        for reader in readers:
            reader.come_back()
    assert parties.memory.used == 0
    assert all(len(reader.written) == 8 << 20 for reader in readers)


def text_of(namespace: str, size: int) -> str:
    """A text of this size that takes long to read."""
    text = f"apiVersion: v1\nkind: TrainJob\nmetadata: {{name: x, namespace: {namespace}}}\nspec: {{a: ["
    return text + "[]," * ((size - len(text)) // 3 - 1) + "]}"


@pytest.mark.parametrize("path", ["/api/trials", "/api/trainjobs"])
@pytest.mark.parametrize(
    ("text", "message", "is_read"),
    [
        pytest.param(
            text_of("team", 60_000), "you may not create TrainJobs in the namespace team", False, id="no-right"
        ),
        pytest.param(text_of("ours", 60_000), "must be", True, id="right"),
        pytest.param(text_of("", 60_000), "metadata.namespace: Required value", False, id="no-namespace"),
        pytest.param(text_of("ours", 128 << 10), "must have at most", False, id="too-long"),
        pytest.param("a: [", "not valid YAML", True, id="short"),
    ],
)
async def test_rights_come_first(
    monkeypatch: pytest.MonkeyPatch, path: str, text: str, message: str, is_read: bool
) -> None:
    """A text is read as YAML only when its user may create TrainJobs in a namespace that it mentions."""
    clock, client = ManualClock(), ClusterClient()
    client.grant("create trainjobs", namespace="ours")
    read = []

    def noted(text: str, *, aliases: bool) -> Any:
        read.append(text)
        return parse(text, aliases=aliases)

    monkeypatch.setattr(submissions, "parse", noted)
    authenticator = ClusterAuthenticator(client, client, V2ALPHA1, clock=clock)
    dashboard = Dashboard(client, V2ALPHA1, DashboardOptions(), authenticator=authenticator, clock=clock, bundle=PAGE)
    async with running(dashboard, TOKEN) as visitor:
        status, answer = await visitor.json(path, "POST", json={"yaml": text})
    assert message in (answer.get("problem") or answer["error"])
    assert bool(read) is is_read
    forbidden = path == "/api/trainjobs" and "may not" in message
    assert status == (403 if forbidden else 200 if path == "/api/trials" else 422)


async def test_pages_of_quick_training() -> None:
    """Of sixty pages that are sent the same samples, one encodes a piece of them in each round of the event loop."""
    clock, parties = ManualClock(), Parties()
    number = 0
    made: list[int] = []

    def pieces() -> Iterator[object]:
        for _ in range(3):
            made.append(number)
            yield {}

    async def count() -> None:
        nonlocal number
        while True:
            await anyio.lowlevel.checkpoint()
            number += 1

    async def page() -> None:
        with parties.of(TENANT).streaming(lambda: None, logs=1) as slot:
            assert slot is not None
            response = web.StreamResponse()
            await response.prepare(make_mocked_request("GET", "/", writer=cast("Any", Reader())))
            await EventStream(response, clock, slot).send_each("metrics", pieces())

    async with anyio.create_task_group() as counting:
        counting.start_soon(count)
        async with anyio.create_task_group() as tasks:
            for _ in range(60):
                tasks.start_soon(page)
        counting.cancel_scope.cancel()
    assert len(made) == len(set(made)) == 180


@pytest.mark.parametrize(
    "path",
    [pytest.param("/api/trainjobs/{}/x", id="page"), pytest.param("/api/logs/{}?source=p/c", id="logs")],
)
async def test_questions_about_rights(path: str) -> None:
    """Whoever asks for streams that they have no right to has few questions about rights under way."""
    clock, client = ManualClock(), ClusterClient()
    client.users["tenant"] = {"username": TENANT, "groups": []}
    client.held = anyio.Event()
    authenticator = ClusterAuthenticator(client, client, V2ALPHA1, clock=clock)
    dashboard = Dashboard(client, V2ALPHA1, DashboardOptions(), authenticator=authenticator, clock=clock, bundle=PAGE)
    refused = 0
    others_are_refused = anyio.Event()

    async def attack(number: int) -> None:
        nonlocal refused
        async with visitor.ask(path.format(f"team-{number}"), token="tenant") as answer:
            refused += answer.status == 429
        if refused == 60 - REQUESTS_OF_ONE:
            others_are_refused.set()

    async with running(dashboard, TOKEN) as visitor, anyio.create_task_group() as tasks:
        for number in range(60):
            tasks.start_soon(attack, number)
        with anyio.fail_after(20):
            await others_are_refused.wait()
        client.held.set()
