"""Container logs as whole lines, each once."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest

from trainer.cli.log_stream import ContainerLog, Instant
from trainer.kube.client import DEFAULT_LOG, LogOptions
from trainer.kube.errors import BadRequestError, ForbiddenError, InternalError, NotFoundError, TransportError
from trainer.kube.testing import FakeClient, ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


Answer: TypeAlias = "list[bytes | Exception]"

T0 = "2026-01-01T00:00:00"


class ScriptedClient(FakeClient):
    """Answers each request for a log with the next answer: chunks, and errors where the stream breaks."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[LogOptions] = []

    @asynccontextmanager
    async def logs(
        self, pod: str, namespace: str, options: LogOptions = DEFAULT_LOG
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        self.asked.append(options)
        answer = self.answers.pop(0)

        async def chunks() -> AsyncIterator[bytes]:
            for part in answer:
                await anyio.lowlevel.checkpoint()
                if isinstance(part, Exception):
                    raise part
                yield part

        if answer and isinstance(answer[0], ApiFailure):
            raise answer[0]
        yield chunks()


ApiFailure = (BadRequestError, ForbiddenError, InternalError, NotFoundError)


async def follow(client: ScriptedClient, *, ended_after: int = 0) -> list[str]:
    """Follow a log whose container is known to have ended after so many requests; time passes on its own."""
    clock = ManualClock()
    lines: list[str] = []
    async with anyio.create_task_group() as tasks:

        async def pass_time() -> None:
            while True:
                await clock.wait_for_sleepers()
                await clock.advance(1)

        tasks.start_soon(pass_time)
        log = ContainerLog("default", "pod", "trainer")
        with anyio.fail_after(10):
            await log.follow(client, lines.append, is_finished=lambda: len(client.asked) >= ended_after, clock=clock)
        tasks.cancel_scope.cancel()
    return lines


@pytest.mark.parametrize(
    ("answers", "ended_after", "lines"),
    [
        pytest.param([[f"{T0}Z one\n{T0}Z two\n".encode()]], 0, ["one", "two"], id="ended before"),
        pytest.param([[f"{T0}Z o".encode(), b"ne\n", b""]], 0, ["one"], id="line over two chunks"),
        pytest.param([[f"{T0}Z one\n{T0}.5Z two".encode()]], 0, ["one", "two"], id="last line without an end"),
        pytest.param([[f"{T0}Z one\r\n{T0}Z \n{T0}Z   two\n".encode()]], 0, ["one", "", "  two"], id="white space"),
        pytest.param([[b"no time stamp\n"]], 0, ["no time stamp"], id="server without time stamps"),
        pytest.param([[]], 0, [], id="silent container"),
        pytest.param(
            [
                [f"{T0}.1Z one\n{T0}.2Z two\n{T0}.3Z thr".encode(), TransportError("reset")],
                [f"{T0}.1Z one\n{T0}.2Z two\n{T0}.3Z three\n".encode()],
            ],
            1,
            ["one", "two", "three"],
            id="broken connection",
        ),
        pytest.param(
            [
                [f"{T0}.1Z same\n{T0}.1Z same\n".encode(), TransportError("reset")],
                [f"{T0}.1Z same\n{T0}.1Z same\n{T0}.1Z same\n".encode()],
            ],
            1,
            ["same", "same", "same"],
            id="equal lines at the same instant",
        ),
        pytest.param(
            [[f"{T0}.1Z one\n".encode()], [f"{T0}.1Z one\n{T0}.9Z two\n".encode()], [f"{T0}.9Z two\n".encode()]],
            2,
            ["one", "two"],
            id="stream that ends early",
        ),
        pytest.param(
            [[BadRequestError(400, "waiting to start")], [f"{T0}Z one\n".encode()]], 1, ["one"], id="not started yet"
        ),
        pytest.param([[BadRequestError(400, "never started")]], 0, [], id="never started"),
        pytest.param([[InternalError(500, "no")], [f"{T0}Z one\n".encode()]], 1, ["one"], id="server failure"),
        pytest.param([[NotFoundError(404, "gone")]], 9, [], id="pod is gone"),
    ],
)
async def test_every_line_once(answers: list[Answer], ended_after: int, lines: list[str]) -> None:
    """Whatever happens to the connection, every line of the log arrives whole, once and in order."""
    client = ScriptedClient(*answers)

    assert await follow(client, ended_after=ended_after) == lines
    assert not client.answers


async def test_continues_at_the_last_line() -> None:
    """After a break only the log since the second of the last line is asked for; at the end it is not followed."""
    client = ScriptedClient([f"{T0}.7Z one\n".encode(), TransportError("reset")], [f"{T0}.7Z one\n".encode()])

    assert await follow(client, ended_after=1) == ["one"]
    assert [(options.since_time, options.follow) for options in client.asked] == [(None, True), (f"{T0}Z", False)]


async def test_forbidden_is_told() -> None:
    """A log that may not be read is not asked for again."""
    client = ScriptedClient([ForbiddenError(403, "no")])
    log = ContainerLog("default", "pod", "trainer")

    with pytest.raises(ForbiddenError):
        await log.follow(client, print, is_finished=lambda: False, clock=ManualClock())


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        pytest.param("2026-01-01T00:00:01Z", Instant(1767225601, 0), id="seconds"),
        pytest.param("2026-01-01T00:00:01.5Z", Instant(1767225601, 500_000_000), id="fraction"),
        pytest.param("2026-01-01T01:00:01.000000007+01:00", Instant(1767225601, 7), id="nanoseconds in another zone"),
        pytest.param("2026-01-01", None, id="not a time stamp"),
        pytest.param("epoch", None, id="a word"),
    ],
)
def test_instant(text: str, instant: Instant | None) -> None:
    """Time stamps compare by what they mean, to the nanosecond."""
    assert Instant.parse(text) == instant
