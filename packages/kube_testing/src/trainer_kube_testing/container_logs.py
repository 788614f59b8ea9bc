"""Logs of containers in a fake: what a container writes, and what the streams of a client make of it."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from random import Random

import anyio

from trainer.kube.client import LogOptions
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import TransportError
from trainer.kube.podlogs.instant import Instant
from trainer_kube_testing.api_semantics import statuses


@dataclass(slots=True)
class _Line:
    instant: Instant | None
    """None: it gets no timestamp."""
    text: bytearray

    @property
    def is_whole(self) -> bool:
        return self.text.endswith(b"\n")

    @property
    def stamp(self) -> bytes:
        """The timestamp as a kubelet writes it, always with nine digits."""
        if self.instant is None:
            return b""
        return f"{self.instant.second[:-1]}.{self.instant.nanoseconds:09}Z ".encode()


@dataclass(eq=False, slots=True)
class _Run:
    """One run of a container."""

    lines: list[_Line] = field(default_factory=list)
    first: int = 0
    """Index of the oldest line that is still there."""
    is_over: bool = False
    wakers: dict[Callable[[], None], None] = field(default_factory=dict)

    def wake(self) -> None:
        for waker in self.wakers:
            waker()


class FakeLog:
    r"""What one container writes, over all its runs; `FakeClient.log` makes one.

        log = client.log("pod", "ns", "trainer")
        log.write(b"step 1\nstep 2\n")
        log.end()                                 # the container has terminated

    Streams are served as by a kubelet: timestamps have nine digits, `sinceTime` counts whole seconds, and a stream that
    follows ends with the run of the container. Unlike there, the beginning of a line is sent before its end is written.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._runs = [_Run()]

    def write(self, text: bytes, time: Instant | None = None, *, stamped: bool = True) -> None:
        """Add text, which may end within a line; the next call goes on there.

        Args:
            text: any bytes.
            time: timestamp of the lines that begin in the text. Default: the time of the clock.
            stamped: whether they get a timestamp. Default: True; some runtimes write lines without.

        Raises:
            ValueError: the container has ended.
        """
        run = self._run
        if run.is_over:
            raise ValueError("the container has ended: call restart() before it writes again")
        instant = (time or Instant.of(self._clock.now())) if stamped else None
        for line in _split(text):
            if run.lines and not run.lines[-1].is_whole:
                run.lines[-1].text += line
            else:
                run.lines.append(_Line(instant, bytearray(line)))
        run.wake()

    def end(self) -> None:
        """The container terminates: streams that follow end after what was written."""
        self._run.is_over = True
        self._run.wake()

    def restart(self) -> None:
        """The container is started again: its log begins anew, and the one so far is the previous one."""
        self.end()
        self._runs.append(_Run())

    def rotate(self) -> None:
        """Forget what was written so far; streams that are open still send it."""
        self._run.first = len(self._run.lines)

    def open(self, options: LogOptions, delivery: LogDelivery, name: str) -> LogStream:
        """A new stream of it.

        Raises:
            BadRequestError: it asks for a run that there was not, or since a time that is none.
        """
        run = self._run
        if options.previous:
            if len(self._runs) == 1:
                raise statuses.bad_request(
                    f'previous terminated container "{options.container}" in pod "{name}" not found'
                )
            run = self._runs[-2]
        since = None
        if options.since_time:
            since = Instant.parse(options.since_time)
            if since is None:
                raise statuses.bad_request(f"sinceTime: {options.since_time!r} is not a time of RFC 3339")
        return LogStream(run, options, since, delivery, self._clock)

    @property
    def _run(self) -> _Run:
        return self._runs[-1]


@dataclass(frozen=True, slots=True)
class Cut:
    """Ends a stream after so many bytes: cleanly, or with an error."""

    after: int
    error: TransportError | None


@dataclass(eq=False)
class LogDelivery:
    """How the logs of one client come through."""

    cuts: deque[Cut] = field(default_factory=deque)
    """Where the next streams end, in the order in which they are opened."""
    fragmenting: Random | None = None

    def fragments(self, text: bytes) -> Iterator[bytes]:
        """The chunks as which a text comes."""
        while self.fragmenting is not None and len(text) > 1:
            size = self.fragmenting.randint(1, min(len(text), self.fragmenting.choice((2, 16, 4096))))
            yield text[:size]
            text = text[size:]
        if text:
            yield text


class LogStream:
    """One open stream of a log."""

    def __init__(
        self, run: _Run, options: LogOptions, since: Instant | None, delivery: LogDelivery, clock: Clock
    ) -> None:
        self._run = run
        self.wakers = run.wakers
        """What is called when something may be due."""
        self._options = options
        self._since = Instant(since.seconds) if since is not None else None
        self._delivery = delivery
        self._clock = clock
        self._index = run.first
        if options.tail_lines is not None:
            self._index = max(run.first, len(run.lines) - options.tail_lines)
        self._offset = 0
        self._cut = delivery.cuts.popleft() if delivery.cuts else None
        self._sent = 0
        self._is_torn = False
        self._is_silent = False
        self._woken = anyio.Event()

    def drop(self, error: TransportError | None, *, torn: bool) -> None:
        """End after what is due, or in the middle of what is due next."""
        if torn:
            self._is_torn = True
        else:
            self._cut = Cut(self._sent + len(self._due(look=True)), error)
        self.wake()

    def silence(self) -> None:
        """Send nothing from now on, like a connection whose other end is lost."""
        self._is_silent = True

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The text as it is written, until the run or the stream ends.

        Raises:
            TransportError: the connection was made to break, or nothing came for the idle timeout.
        """
        while True:
            while self._is_silent:
                await self._wait()
            is_last = self._run.is_over or not self._options.follow
            due = self._due()
            if due and self._is_torn:
                self._cut = Cut(self._sent + (len(due) + 1) // 2, TransportError("connection reset"))
            for chunk in self._delivery.fragments(due[: self._left]):
                self._sent += len(chunk)
                yield chunk
                if not is_last:
                    await self._clock.sleep(self._options.pace)
            if self._cut is not None and not self._left:
                if self._cut.error is not None:
                    raise self._cut.error.with_traceback(None)
                return
            if is_last:
                return
            if not due:
                await self._wait()

    @property
    def _left(self) -> int | None:
        """Bytes that may still be sent; None: all."""
        return max(0, self._cut.after - self._sent) if self._cut is not None else None

    def _due(self, *, look: bool = False) -> bytes:
        """What has been written since the last call, unless it only looks."""
        index, offset = self._index, self._offset
        parts: list[bytes] = []
        while index < len(self._run.lines):
            line = self._run.lines[index]
            if self._since is None or line.instant is None or line.instant >= self._since:
                if not offset and self._options.timestamps:
                    parts.append(line.stamp)
                parts.append(bytes(line.text[offset:]))
            offset = len(line.text)
            if not line.is_whole:
                break
            index, offset = index + 1, 0
        if not look:
            self._index, self._offset = index, offset
        return b"".join(parts)

    async def _wait(self) -> None:
        async with move_on_after(self._clock, self._options.idle_timeout) as scope:
            await self._woken.wait()
            self._woken = anyio.Event()
        if scope.cancelled_caught:
            raise TransportError("timed out: the server sent nothing for too long") from TimeoutError()

    def wake(self) -> None:
        """Send what has become due."""
        if not self._is_silent:
            self._woken.set()


def _split(text: bytes) -> list[bytes]:
    """Lines with their ends; other than `splitlines`, a carriage return ends none."""
    return [line + b"\n" for line in text.split(b"\n")[:-1]] + [line for line in text.split(b"\n")[-1:] if line]
