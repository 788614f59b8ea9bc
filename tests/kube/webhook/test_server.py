"""The webhook server, over TLS on the loopback interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import anyio
import anyio.lowlevel
import msgspec
import pytest
import structlog
from structlog.testing import capture_logs

from tests.kube.conftest import Background
from tests.kube.serving.peers import Peer
from tests.kube.webhook.serving import (
    AUTHORITY,
    NAME,
    OPTIONS,
    PATH,
    GivenCertificates,
    client_context,
    review_of,
    serving,
)
from trainer.kube import LeaderElectionOptions, Manager, ManagerOptions
from trainer.kube.errors import KubeError, TransportError
from trainer.kube.field_errors import invalid, required
from trainer.kube.resource import LEASES
from trainer.kube.serving.certificates import ServingCertificate
from trainer.kube.webhook import turns
from trainer.kube.webhook.admission import AdmissionHandler, AdmissionRequest, AdmissionResponse
from trainer.kube.webhook.server import WebhookServer
from trainer_kube_testing import FakeClient, ManualClock, eventually, no_stray_tasks, settle

LARGE = 100_000
"""Bytes of a body that waits for its turn among large ones."""


async def allow(request: AdmissionRequest) -> AdmissionResponse:
    return AdmissionResponse.allow()


@pytest.mark.parametrize(
    ("response", "code", "message"),
    [
        pytest.param(AdmissionResponse.allow(["careful"]), None, None, id="allow"),
        pytest.param(
            AdmissionResponse.deny([required("spec.a"), invalid("spec.b", 1, "must be 2")]),
            422,
            "[spec.a: Required value, spec.b: Invalid value: 1: must be 2]",
            id="deny",
        ),
        pytest.param(AdmissionResponse.fail(403, "Forbidden", "no"), 403, "no", id="forbid"),
    ],
)
async def test_handler_decides(response: AdmissionResponse, code: int | None, message: str | None) -> None:
    """Its answer is that of the server, with the uid of the request."""

    async def handler(request: AdmissionRequest) -> AdmissionResponse:
        assert (request.username, request.operation) == ("jane", "UPDATE")
        return response

    async with serving(handler) as webhook:
        answer = await webhook.review("UPDATE")
        assert (answer["uid"], answer["allowed"]) == ("705ab4f5", response.allowed)
        status = answer.get("status", {})
        assert (status.get("code"), status.get("message")) == (code, message)
        assert answer.get("warnings", []) == list(response.warnings)
        assert webhook.sample("requests_total", webhook=PATH, code="200") == 1


async def raise_mistake(request: AdmissionRequest) -> AdmissionResponse:
    structlog.get_logger().info("looking")
    raise KeyError("the secret")


async def raise_no_answer(request: AdmissionRequest) -> AdmissionResponse:
    raise TransportError("connection refused: nothing listens there")


async def cancel_itself(request: AdmissionRequest) -> AdmissionResponse:
    raise asyncio.CancelledError


async def answer_nonsense(request: AdmissionRequest) -> Any:
    return None


async def mutate_into_nonsense(request: AdmissionRequest) -> AdmissionResponse:
    return AdmissionResponse.mutate({"spec": object()})


@pytest.mark.parametrize(
    ("handler", "panics", "text"),
    [
        pytest.param(raise_mistake, 1, "its log has the reason under request_id 705ab4f5", id="mistake"),
        pytest.param(raise_no_answer, 0, "could not decide: connection refused", id="no-answer"),
        pytest.param(cancel_itself, 1, "its log has the reason", id="cancelled-from-within"),
        pytest.param(answer_nonsense, 1, "its log has the reason", id="no-response"),
        pytest.param(mutate_into_nonsense, 1, "its log has the reason", id="no-json"),
    ],
)
async def test_handler_that_fails_closes_the_door(handler: AdmissionHandler, panics: int, text: str) -> None:
    """The request is refused with 500 and a text without details of the code, and counted; the server goes on."""
    async with serving(handler) as webhook:
        for _ in range(2):
            answer = await webhook.review()
            assert not answer["allowed"]
            status = answer["status"]
            assert (status["code"], status["reason"]) == (500, "InternalError")
            assert text in status["message"]
            assert "the secret" not in str(answer)
            assert "Traceback" not in str(answer)
        assert webhook.sample("panics_total") == 2 * panics
        assert webhook.sample("requests_total", webhook=PATH, code="500") == 2


async def test_log_tells_which_request() -> None:
    """Events of a handler, those of its own code included, carry what identifies the request, and only those do."""
    captured = structlog.testing.LogCapture()
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, captured])
    async with serving(raise_mistake) as webhook:
        await webhook.review(subResource="scale")
    looking, failed = (entry for entry in captured.entries if entry["event"] in {"looking", "webhook failed"})
    for entry in (looking, failed):
        assert entry["webhook"] == NAME
        assert entry["request_id"] == "705ab4f5"
        assert (entry["namespace"], entry["name"], entry["user"]) == ("ns", "w", "jane")
        assert (entry["operation"], entry["resource"]) == ("CREATE", "widgets.example.com/scale")
    assert isinstance(failed["exc_info"], KeyError)
    assert all("request_id" not in entry for entry in captured.entries if entry not in (looking, failed))


async def test_slow_handler_is_refused_in_time(clock: ManualClock) -> None:
    """The answer comes half a second before the API server would give up, and the handler is cancelled."""
    cancelled = anyio.Event()

    async def handler(request: AdmissionRequest) -> AdmissionResponse:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        raise AssertionError

    async with serving(handler, clock=clock) as webhook:
        asking = asyncio.create_task(webhook.review(query="?timeout=5s"))
        await eventually(lambda: 4.5 in clock.sleeping, within=5)
        assert webhook.sample("requests_in_flight", webhook=PATH) == 1
        await clock.advance(4.4)
        assert not cancelled.is_set()
        await clock.advance(0.1)
        status = (await asking)["status"]
        assert (status["code"], status["reason"]) == (504, "Timeout")
        assert status["message"] == "webhook validate.example.com did not decide within 4.5 s"
        assert cancelled.is_set()
        assert webhook.sample("requests_total", webhook=PATH, code="504") == 1
        assert webhook.sample("requests_in_flight", webhook=PATH) == 0
        assert webhook.sample("latency_seconds_sum", webhook=PATH) == 4.5


@pytest.mark.parametrize(
    ("body", "options", "code", "message"),
    [
        pytest.param(b"", {}, 400, "the request has no body: send an AdmissionReview as JSON", id="empty"),
        pytest.param(review_of(), {"path": "/other"}, 404, "there is no webhook at /other", id="path"),
        pytest.param(review_of(), {"method": "PUT"}, 405, "webhooks answer POST, not PUT", id="method"),
        pytest.param(
            review_of(),
            {"Content-Type": "application/yaml"},
            415,
            "Content-Type is 'application/yaml': send an AdmissionReview as application/json",
            id="content-type",
        ),
        pytest.param(review_of(), {"Content-Encoding": "gzip"}, 415, "Content-Encoding is 'gzip': send", id="gzip"),
        pytest.param(b"x" * 70_000, {}, 413, "the body has more than 65536 bytes", id="large"),
    ],
)
async def test_nonsense_is_answered_with_the_reason(
    body: object, options: dict[str, str], code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An HTTP error with a Status that says what to fix; the next request is answered as ever."""
    monkeypatch.setattr(turns, "MAX_BODY_BYTES", 65536)
    async with serving(allow) as webhook:
        status, answer = await webhook.post(body, **options)
        assert (status, answer["code"], answer["kind"]) == (code, code, "Status")
        assert message in answer["message"]
        counted = webhook.sample("requests_total", webhook=PATH, code=str(code)) or 0
        assert counted == (0 if code in {404, 405} else 1)
        assert (await webhook.review())["allowed"]


async def test_endless_body_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body whose size is not announced is read up to the limit and no further."""

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b"x" * 10_000

    monkeypatch.setattr(turns, "MAX_BODY_BYTES", 65536)
    async with serving(allow) as webhook:
        url = f"https://127.0.0.1:{webhook.port}{PATH}"
        headers = {"Content-Type": "application/json"}
        async with webhook.session.post(url, data=endless(), headers=headers) as answer:
            assert answer.status == 413
        assert (await webhook.review())["allowed"]


@pytest.mark.parametrize(
    ("expectation", "length", "statuses"),
    [
        pytest.param("100-Continue", 700, [100, 200], id="continue"),
        pytest.param("a-miracle", 700, [417], id="other"),
        pytest.param("100-continue", 4_000_000, [413], id="large"),
    ],
)
async def test_clients_that_ask_before_they_send(expectation: str, length: int, statuses: list[int]) -> None:
    """They are answered 100, if the head gives no reason to refuse."""
    async with serving(allow) as webhook, Peer.connected(webhook.port, tls=client_context()) as peer:
        await begin(peer, length, f"Expect: {expectation}\r\n", body=b"")
        for status in statuses:
            head = await peer.reader.readuntil(b"\r\n\r\n")
            assert head.startswith(f"HTTP/1.1 {status} ".encode())
            if status == 100:
                await peer.send(body_of(length))


@pytest.mark.parametrize(
    ("length", "headers"),
    [
        pytest.param(LARGE, "", id="large"),
        pytest.param(None, "Transfer-Encoding: chunked\r\n", id="of-unknown-size"),
    ],
)
async def test_large_bodies_that_wait(length: int | None, headers: str) -> None:
    """A ninth large body is not read before one of the eight has not come in time; small ones are answered."""
    clock = ManualClock()
    async with serving(allow, clock=clock) as webhook, AsyncExitStack() as stack:
        for _ in range(8):
            peer = await stack.enter_async_context(Peer.connected(webhook.port, tls=client_context()))
            await begin(peer, LARGE, path=f"{PATH}?timeout=30s")
        await eventually(lambda: webhook.sample("requests_in_flight", webhook=PATH) == 8, within=5)
        ninth = await stack.enter_async_context(Peer.connected(webhook.port, tls=client_context()))
        await begin(ninth, length, headers, body=body_of(LARGE) if length else b"1\r\n{\r\n")
        await eventually(lambda: webhook.sample("requests_in_flight", webhook=PATH) == 9, within=5)
        assert (await webhook.review())["allowed"]
        await clock.advance(2.1)
        if not length:
            await clock.advance(2.1)
        assert (await ninth.reader.readline()).startswith(b"HTTP/1.1 200 " if length else b"HTTP/1.1 408 ")


async def test_large_reviews_leave_the_turns_to_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are waiting, one is answered at a time, and they take no place of those that can be answered."""
    monkeypatch.setattr(turns, "SMALL_AT_ONCE", 1)
    go_on = asyncio.Event()
    at_once = most_at_once = 0

    async def answer(request: AdmissionRequest) -> AdmissionResponse:
        nonlocal at_once, most_at_once
        if request.name == "large":
            at_once += 1
            most_at_once = max(at_once, most_at_once)
            await go_on.wait()
            at_once -= 1
        return AdmissionResponse.allow()

    large = review_of(name="large", object={"spec": {"a": [[]] * 30_000}})
    async with serving(answer) as webhook, anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(webhook.post, large)
        await eventually(lambda: at_once == 1, within=5)
        await eventually(lambda: webhook.sample("requests_in_flight", webhook=PATH) == 10, within=5)
        assert (await webhook.review())["allowed"]
        go_on.set()
    assert webhook.sample("requests_total", webhook=PATH, code="200") == 11
    assert most_at_once == 1


@pytest.mark.parametrize(
    ("seconds", "pause"), [pytest.param(0.25, 0.75, id="three-quarters"), pytest.param(2.0, 1.0, id="at-most-a-second")]
)
async def test_large_reviews_pause(clock: ManualClock, seconds: float, pause: float) -> None:
    """The next one begins when others have had three times as long as it took, and at most a second."""

    async def answer(request: AdmissionRequest) -> AdmissionResponse:
        await clock.sleep(seconds)
        return AdmissionResponse.allow()

    large = review_of(object={"spec": {"a": "x" * LARGE}})
    async with serving(answer, clock=clock) as webhook, anyio.create_task_group() as tasks:
        for lengths in ([seconds], [pause, seconds]):
            tasks.start_soon(webhook.post, large)
            for length in lengths:
                await eventually(lambda length=length: length in clock.sleeping, within=5)  # type: ignore[misc]
                await clock.advance(length)


async def test_refusals_do_not_fill_the_log(clock: ManualClock) -> None:
    """They are written once in a while, with how many there have been, and counted in the series each."""
    with capture_logs() as logs:
        async with serving(allow, clock=clock) as webhook:
            for _ in range(20):
                code, _answer = await webhook.post(b"nonsense")
                assert code == 400
            await clock.advance(10)
            await webhook.post(b"nonsense")
            assert webhook.sample("requests_total", webhook=PATH, code="400") == 21
    reported = [entry for entry in logs if entry["event"] == "refused webhook request"]
    assert [(entry["webhook"], entry["code"], entry["times"]) for entry in reported] == [
        (NAME, 400, 1),
        (NAME, 400, 20),
    ]


def body_of(size: int) -> bytes:
    """A review of so many bytes."""
    body = msgspec.json.encode(review_of())
    return body + b" " * (size - len(body))


async def test_bodies_that_do_not_come_take_nobody_s_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that are complete are answered, however many others have only begun."""
    monkeypatch.setattr(turns, "SMALL_AT_ONCE", 2)
    async with serving(allow) as webhook, AsyncExitStack() as stack:
        for _ in range(10):
            peer = await stack.enter_async_context(Peer.connected(webhook.port, tls=client_context()))
            await begin(peer, 1000)
        await eventually(lambda: webhook.sample("requests_in_flight", webhook=PATH) == 10, within=5)
        assert (await webhook.review())["allowed"]


async def begin(peer: Peer, length: int | None, headers: str = "", *, path: str = PATH, body: bytes = b"{") -> None:
    """Send the head of a request and a part of its body."""
    head = f"POST {path} HTTP/1.1\r\nHost: w\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {length}\r\n" if length is not None else ""
    await peer.send(f"{head}{headers}\r\n".encode() + body)


async def test_slow_body_is_given_up(clock: ManualClock) -> None:
    """A peer that does not send what it has announced gets that as an answer in the time of a review."""
    async with serving(allow, clock=clock) as webhook, Peer.connected(webhook.port, tls=client_context()) as peer:
        await begin(peer, 1000)
        await eventually(lambda: 9.5 in clock.sleeping, within=5)
        await clock.advance(9.5)
        assert (await peer.reader.readline()).startswith(b"HTTP/1.1 504 ")
        assert await peer.reader.readuntil(b"within 9.5 s the body did not arrive")
        assert (await webhook.review())["allowed"]


async def test_requests_wait_for_their_turn(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than a hundred are answered at a time, here two; who waits for too long gets the reason."""
    monkeypatch.setattr(turns, "SMALL_AT_ONCE", 2)
    go_on = anyio.Event()
    entered = 0

    async def handler(request: AdmissionRequest) -> AdmissionResponse:
        nonlocal entered
        entered += 1
        await go_on.wait()
        return AdmissionResponse.allow()

    async with serving(handler, clock=clock) as webhook:
        first = [asyncio.create_task(webhook.review(query="?timeout=30s")) for _ in range(2)]
        await eventually(lambda: entered == 2, within=5)
        impatient = asyncio.create_task(webhook.post(review_of(), query="?timeout=1s"))
        patient = asyncio.create_task(webhook.review(query="?timeout=30s"))
        await eventually(lambda: webhook.sample("requests_in_flight", webhook=PATH) == 4, within=5)
        await clock.advance(1)
        code, answer = await impatient
        assert code == 504
        assert answer["message"].endswith("too many others were being answered")
        go_on.set()
        assert all(response["allowed"] for response in [*await asyncio.gather(*first), await patient])


async def test_hurried_stop_ends_requests() -> None:
    """What does not finish within the grace period of the manager is broken off."""
    asked = anyio.Event()

    async def handler(request: AdmissionRequest) -> AdmissionResponse:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with no_stray_tasks(), serving(handler) as webhook:
        asking = asyncio.create_task(webhook.review())
        await asked.wait()
        webhook.manager.stop()
        webhook.manager.stop()
        with pytest.raises(aiohttp.ClientError):
            await asking


async def test_ready_while_it_listens_with_a_valid_certificate(background: Background) -> None:
    """Before there is a certificate the check tells why, and when it expires as well; nobody leads meanwhile."""
    clock = ManualClock(datetime.now(UTC))
    lease = LeaderElectionOptions(name="l", namespace="ns")
    client = FakeClient(clock=clock)
    client.faults.fail(TransportError("down"), times=None, resource=LEASES)
    manager = Manager(client, clock=clock, options=ManagerOptions(leader_election=lease))
    certificates = GivenCertificates()
    server = WebhookServer(manager, certificates=certificates, options=OPTIONS)
    running = background(manager.run())
    await settle()
    with pytest.raises(KubeError, match="has not started yet: nobody has made a certificate"):
        await server.check()
    pair = AUTHORITY.issue("w", "127.0.0.1", lifetime=timedelta(seconds=60))
    assert certificates.use is not None
    await certificates.use(ServingCertificate(pair.chain, pair.key))
    await server.wait_for_start()
    await server.check()
    assert not manager.is_leader
    await clock.advance(90)
    with pytest.raises(KubeError, match=r"certificate has expired on .* nobody has made a certificate"):
        await server.check()
    server.stop()
    with pytest.raises(KubeError, match="is stopping"):
        await server.check()
    manager.stop()
    await running


async def test_stop_while_waiting_for_a_certificate(clock: ManualClock, background: Background) -> None:
    """A server that never had a certificate stops like any other."""
    manager = Manager(FakeClient(), clock=clock)
    WebhookServer(manager, certificates=GivenCertificates(), options=OPTIONS)
    running = background(manager.run())
    await settle()
    manager.stop()
    await running


@pytest.mark.parametrize(
    ("path", "message"),
    [
        pytest.param("validate", "begins with /", id="relative"),
        pytest.param("/validate?x=1", "has no query", id="query"),
        pytest.param(PATH, "there are two webhooks at '/validate'", id="taken"),
    ],
)
async def test_paths_are_checked(path: str, message: str) -> None:
    """At registration, and not when somebody asks."""
    async with serving(allow) as webhook:
        with pytest.raises(ValueError, match=message):
            webhook.server.register(path, "w", allow)


async def test_webhook_may_come_later() -> None:
    """Registered while the server runs, it is answered."""
    async with serving(allow) as webhook:
        webhook.server.register("/later", "later", allow)
        code, _ = await webhook.post(review_of(), path="/later")
        assert code == 200
