"""`ContainerLog`: one container's log, read on across broken connections."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from trainer.kube.backoff import Backoff
from trainer.kube.client import Client, LogOptions
from trainer.kube.clock import Clock
from trainer.kube.errors import (
    ApiError,
    BadRequestError,
    ConfigurationError,
    ForbiddenError,
    GoneError,
    KubeError,
    NotFoundError,
    TooManyRequestsError,
    TransportError,
    UnauthorizedError,
)
from trainer.kube.logger import get_logger
from trainer.kube.podlogs.instant import Instant
from trainer.kube.podlogs.line_blocks import LineBlocks
from trainer.kube.podlogs.position import Position

log = get_logger(__name__)

RETRY = Backoff(initial=0.5, maximum=15.0, jitter=1.0)
"""Pauses after interruptions, on top of what the server asks for: short for a reader at a terminal, and far enough
apart for an API server that comes back to a thousand readers."""


@dataclass(frozen=True, slots=True)
class ContainerLogOptions:
    """Options for reading a container's log."""

    since: Instant | None = None
    """Lines before the second of this instant are not asked for. Default: None, from the beginning of the log."""
    previous: bool = False
    """Read the run before the last restart of the container, which has ended. Default: false, the present run."""
    tail_lines: int | None = None
    """Ask for the last so many lines only. Default: None, for all. Not for following, which `last_lines` prepares: a
    log that is asked for again goes on by the number of lines that were read of a second."""
    line_limit: int | None = None
    """Bytes of a line, its timestamp included and its newline not; of longer ones nothing is kept, or the last state of
    one that is written over, such as a progress bar (see `UnfinishedLine`).

    Default: None, there is no limit; a container that writes without newlines and carriage returns then takes memory
    without end.
    """
    pace: float = 0
    """Seconds between two reads of the stream; see `LogOptions.pace`. Default: 0, lines come as they are written."""
    idle_timeout: float | None = 300.0
    """Seconds without a byte after which the log is asked for anew; None: never.

    Default: 300, since a silent container is nothing unusual, but a proxy may have dropped the connection without
    closing it.
    """
    refusal_pause: float = 5.0
    """Least seconds until a log is asked for again that the credentials do not allow to read. Default: 5, since rights
    and credentials change while somebody waits."""


LONGEST_REQUESTED_PAUSE = 60.0
"""Seconds; a server that asks for more is asked again earlier."""


class Interruption(StrEnum):
    """Why the reading of a log was interrupted; few enough values for a label of a metric."""

    ENDED = "ended"
    """The server ended the stream although the container is not known to have ended for good: it is about to be
    restarted, or its end has not become known yet, or an API server or proxy limits the time of connections."""
    BROKEN = "broken"
    """The connection broke, or could not be made."""
    SILENT = "silent"
    """The server sent nothing for the idle timeout."""
    WAITING = "waiting"
    """400: the container has not started."""
    REFUSED = "refused"
    """401 or 403, or there are no credentials at all: they are not accepted, or do not allow to read the log."""
    ABSENT = "absent"
    """404: there is no such pod, although it is not known to be gone."""
    GONE = "gone"
    """410."""
    THROTTLED = "throttled"
    """429."""
    FAILED = "failed"
    """5xx or another answer that is none of these, such as of a node that cannot be reached."""


class Interrupted(NamedTuple):
    """An event of a log that is followed: it is asked for again after a pause."""

    reason: Interruption
    pause: float
    """Seconds."""
    problem: str = ""
    """The error; empty where the stream merely ended."""


def interruption_of(error: KubeError, *, was_connected: bool) -> Interruption:
    """The kind of a failure."""
    match error:
        case TransportError():
            is_timeout = isinstance(error.__cause__, TimeoutError)
            return Interruption.SILENT if is_timeout and was_connected else Interruption.BROKEN
        case BadRequestError():
            return Interruption.WAITING
        case UnauthorizedError() | ForbiddenError() | ConfigurationError():
            return Interruption.REFUSED
        case NotFoundError():
            return Interruption.ABSENT
        case GoneError():
            return Interruption.GONE
        case TooManyRequestsError():
            return Interruption.THROTTLED
        case _:
            return Interruption.FAILED


class _Pauses:
    """How long to wait before a log is asked for again: longer each time, until reading works again."""

    __slots__ = ("_failures", "_last")

    def __init__(self) -> None:
        self._failures = 0
        self._last = 0.0

    def after(self, error: KubeError | None, healthy_for: float) -> float:
        """Seconds to wait after an interruption; `error` is None when the stream merely ended.

        If reading worked for longer than the last pause, it was no failure in a row.
        """
        if healthy_for > self._last:
            self._failures = 0
        pause = RETRY.pause(self._failures)
        if isinstance(error, ApiError) and (requested := error.retry_after_seconds) is not None:
            pause += min(requested, LONGEST_REQUESTED_PAUSE)
        self._failures += 1
        self._last = pause
        return pause


class LogObserver:
    """Counts what happens to the reading of logs, such as for metrics; one may observe many logs."""

    def connected(self) -> None:
        """A stream was opened."""

    def disconnected(self) -> None:
        """The stream was closed, by either side."""

    def lines(self, count: int) -> None:
        """So many new lines were read; called for each block, not for each line."""

    def skipped(self) -> None:
        """A line was longer than the limit."""


_DEFAULT = ContainerLogOptions()
_UNOBSERVED = LogObserver()


class ContainerLog:
    """Reads one container's log: whole lines, each once, across broken connections and restarts of the API server.

    Lines come in blocks of one or more, as the server sends them: `<RFC 3339 timestamp> <text>` and a newline. Bytes
    are passed on as they are, whatever their encoding. A line that the server sends without a timestamp (an error text
    of a kubelet, a proxy that drops query parameters) comes without.

    What cannot be had: lines that the node deleted before they were read (it rotates logs at 10 MiB by default), the
    end of a run whose stream broke when its container was restarted before the next attempt (see
    `ContainerLogOptions.previous`), and what the node's clock dates before lines that were read, should it be set back
    while the connection is broken.

    `clock` is for the pauses. A `position` that has read before goes on behind what it has read, and moves on.
    `on_state` gets, of a line that is written over and has not ended, the timestamp and the last state, each time that
    there is another; a container runtime writes such a line about every 16 KiB.
    """

    __slots__ = (
        "_client", "_clock", "_container", "_namespace", "_observer", "_on_state", "_options", "_pod", "_position"
    )  # fmt: skip

    def __init__(
        self,
        client: Client,
        namespace: str,
        pod: str,
        container: str,
        *,
        clock: Clock,
        options: ContainerLogOptions = _DEFAULT,
        observer: LogObserver | None = None,
        position: Position | None = None,
        on_state: Callable[[bytes], None] | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._pod = pod
        self._container = container
        self._clock = clock
        self._options = options
        self._observer = observer or _UNOBSERVED
        self._position = position or Position()
        self._on_state = on_state

    @property
    def position(self) -> Instant | None:
        """The timestamp of the last line that was handed on or skipped; None before the first one."""
        return self._position.instant

    def read(self) -> AsyncGenerator[bytes, None]:
        """What there is now and was not read before, in blocks.

        Raises:
            NotFoundError: there is no such pod.
            BadRequestError: there is no such container, or it has not started.
            ApiError: the server refused otherwise.
            TransportError: the connection broke; another call goes on where this one ended.
        """
        return self._stream(self._reading(), follow=False)

    async def follow(self, is_finished: Callable[[], bool]) -> AsyncGenerator[bytes | Interrupted, None]:
        """The log in blocks until its container has ended for good and all is read, or its pod is gone.

        Failures are waited out, longer each time, and are events between the blocks. It may be left or
        cancelled at any time, and a later call goes on where this one ended; who may leave it early closes it, as
        `aclosing` does.

        Args:
            is_finished: whether the container has ended and will not be restarted, or is gone, if known. Asked before
                each attempt and at the end of each stream, so it may be a look into a cache.
        """
        pauses = _Pauses()
        while True:
            # The stream may have been cut just before the end: only a read that began after the end is the last one.
            finished = is_finished()
            reading = self._reading()
            try:
                async with aclosing(self._stream(reading, follow=not finished)) as blocks:
                    async for block in blocks:
                        yield block
                        del block  # not kept while nothing comes
            except (TransportError, ApiError, ConfigurationError) as error:
                # It is gone, or ended without ever having started.
                if finished and isinstance(error, (NotFoundError, BadRequestError)):
                    return
                reason = interruption_of(error, was_connected=reading.was_connected)
                pause = pauses.after(error, reading.healthy_for)
                if reason is Interruption.REFUSED:
                    pause = max(pause, self._options.refusal_pause)
                interrupted = Interrupted(reason, pause, str(error))
            else:
                if finished:
                    return
                if is_finished():
                    continue
                interrupted = Interrupted(Interruption.ENDED, pauses.after(None, reading.healthy_for))
            reason, pause, problem = interrupted
            log.debug(
                "reading of log interrupted", **self._place, reason=str(reason), error=problem or None, pause=pause
            )
            yield interrupted
            await self._clock.sleep(pause)

    def _reading(self) -> _Reading:
        return _Reading(self._position, self._observer, self._clock)

    async def _stream(self, reading: _Reading, *, follow: bool) -> AsyncGenerator[bytes, None]:
        options = self._options
        since = max(filter(None, (options.since, reading.since)), default=None)
        wanted = LogOptions(
            self._container,
            follow=follow,
            previous=options.previous,
            timestamps=True,
            since_time=since.second if since is not None else None,
            tail_lines=options.tail_lines,
            pace=options.pace,
            idle_timeout=options.idle_timeout,
        )
        blocks = LineBlocks(reading.skip, limit=options.line_limit)
        async with self._client.logs(self._pod, self._namespace, wanted) as chunks:
            reading.begin()
            try:
                async for chunk in chunks:
                    for block in reading.new(blocks.of(chunk)):
                        yield block
                        del block
                    if self._on_state is not None and reading.is_at_news and (state := blocks.take_state()):
                        self._on_state(state)
                    del chunk
            finally:
                self._observer.disconnected()
        if not follow:  # otherwise what is left may be half a line, and the next stream begins with it
            for block in reading.new(blocks.rest()):
                yield block

    @property
    def _place(self) -> dict[str, str]:
        return {"namespace": self._namespace, "pod": self._pod, "container": self._container}


class _Reading:
    """One stream of a log."""

    __slots__ = ("_clock", "_connected_at", "_has_news", "_observer", "_position", "_repeats", "since")

    def __init__(self, position: Position, observer: LogObserver, clock: Clock) -> None:
        self._position = position
        self._observer = observer
        self._clock = clock
        self.since, self._repeats = position.resume()
        self._connected_at: float | None = None
        self._has_news = False

    def begin(self) -> None:
        self._connected_at = self._clock.monotonic()
        self._observer.connected()

    @property
    def was_connected(self) -> bool:
        return self._connected_at is not None

    @property
    def healthy_for(self) -> float:
        """Seconds for which the log was readable; infinite once a new line was read."""
        if self._has_news:
            return math.inf
        return 0.0 if self._connected_at is None else self._clock.monotonic() - self._connected_at

    @property
    def is_at_news(self) -> bool:
        """Whether all that follows was not read before."""
        return self._repeats.are_over

    def new(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """The blocks without what was read before."""
        for block in blocks:
            new = block if self._repeats.are_over else self._repeats.without(block)
            if new:
                self._has_news = True
                self._observer.lines(self._position.advance(new))
                yield new

    def skip(self, head: bytes) -> None:
        if self._repeats.include(head):
            return
        self._has_news = True
        self._position.advance(head + b"\n")
        self._observer.skipped()
