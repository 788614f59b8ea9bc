"""The logs of containers, followed side by side in one stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager
from functools import partial
from typing import Final, NamedTuple

import anyio
import msgspec
from aiohttp import web

from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.errors import BadRequestError, KubeError, NotFoundError
from trainer.kube.objects import ObjectKey
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions, Interrupted, Interruption
from trainer.kube.podlogs.instant import Instant
from trainer.kube.podlogs.tail import Tail, last_lines
from trainer.kube.resource import PODS
from trainer.progress.lines.log_lines import LogLine, log_lines
from trainer.workloads.containers import has_ended
from trainer_dashboard.access.parties import OF_LOG, Stream
from trainer_dashboard.access.viewer import Viewer
from trainer_dashboard.live.event_stream import SIGN_IN_CHECK, Changes, EventStream, event_stream
from trainer_dashboard.live.namespace_informers import NamespaceCache, NamespaceInformers

SOURCES: Final = 16
"""Containers that one page may follow at once."""
LAST_LINES: Final = 2000
"""Lines with which a log begins, and lines of a container that wait for a slow reader; older ones are dropped."""
LONGEST_TEXT: Final = 4096
"""Characters of a line that are shown."""
WAITING_BYTES: Final = 1024 * 1024
"""Of the lines of a container that wait for a slow reader; older ones are dropped."""
_PAUSE = 0.1
"""Seconds between two reads of a log, and between two events: a log that is written without end takes its turns."""
_BYTES_AT_ONCE = 256 * 1024
"""Of the lines in one event."""
_OF_LINE = 64
"""Bytes that Python takes for a line besides its own."""
_LONGEST_LINE = OF_LOG
"""Bytes of a line that is read; a page shows a part of them."""


class LogSource(NamedTuple):
    """A container of a pod."""

    pod: str
    container: str


class LogStreams:
    """Streams of logs: events of a source by its number.

    `lines` have its lines; `state` the last line, which is written over and has not ended, until the next lines; `end`
    the reason for which it writes nothing more.
    """

    def __init__(self, namespaces: NamespaceInformers, clock: Clock) -> None:
        self._namespaces = namespaces
        self._clock = clock

    async def stream(
        self, request: web.BaseRequest, namespace: str, sources: tuple[LogSource, ...], viewer: Viewer, slot: Stream
    ) -> web.StreamResponse:
        """Push the last lines of each container and all that follow, while its viewer may read them.

        The API server asks for the right when a log is opened, and not again.
        """
        async with event_stream(request, self._clock, viewer, slot) as stream:
            with self._namespaces.of(namespace) as near:
                await near.pods.wait_for_sync()
                async with anyio.create_task_group() as watch:
                    watch.start_soon(self._end_with_right, watch.cancel_scope, namespace, sources, viewer)
                    changes = Changes()
                    followers = [
                        _Follower(viewer.client, self._clock, (namespace, source), near, changes) for source in sources
                    ]
                    with ExitStack() as counted:
                        async with anyio.create_task_group() as tasks:
                            for follower in followers:
                                counted.enter_context(follower.counted(slot))
                                tasks.start_soon(follower.run)
                            await self._send(stream, followers, changes)
                    watch.cancel_scope.cancel()
        return stream.response

    async def _send(self, stream: EventStream, followers: list[_Follower], changes: Changes) -> None:
        """Send what they have read, one after the other, until all have ended."""
        open_ones = dict(enumerate(followers))
        while open_ones:
            await changes.wait()
            while any(follower.has_news for follower in open_ones.values()):
                # A part of each: none waits for another one that writes as fast as it is read.
                for number, follower in open_ones.items():
                    if follower.has_lines:
                        await stream.turn()
                        lines, dropped = follower.take()
                        await stream.send("lines", {"source": number, "dropped": dropped, "lines": lines})
                    if state := follower.take_state():
                        await stream.turn()
                        await stream.send("state", {"source": number, "line": state})
            for number, follower in list(open_ones.items()):
                if follower.reason is not None and not follower.has_news:
                    del open_ones[number]
                    await stream.send("end", {"source": number, "reason": follower.reason})
            await self._clock.sleep(_PAUSE)

    async def _end_with_right(
        self, scope: anyio.CancelScope, namespace: str, sources: tuple[LogSource, ...], viewer: Viewer
    ) -> None:
        keys = {ObjectKey(namespace, source.pod) for source in sources}
        while all([await viewer.may("get", PODS, key, subresource="log") for key in keys]):
            await self._clock.sleep(SIGN_IN_CHECK)
        scope.cancel()


class _Follower:
    """One container's log on its way to one page: the lines that wait, encoded."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        place: tuple[str, LogSource],
        near: NamespaceCache,
        changes: Changes,
    ) -> None:
        self.reason: str | None = None
        """Why there will be no more lines; empty where the container has ended. None while there may be."""
        self._client = client
        self._clock = clock
        self._namespace, self._source = place
        self._near = near
        self._changes = changes
        self._waiting: deque[bytes] = deque()
        self._state = b""
        self._size = 0
        self._dropped = 0
        self._count: Callable[[int], None]

    @contextmanager
    def counted(self, slot: Stream) -> Iterator[None]:
        """Count the lines that wait, while the body runs, for the party of a stream."""
        with slot.party.holding(0, end=slot.end, shrink=self._drop_half) as holding:
            self._count = partial(slot.party.resize, holding)
            yield

    async def run(self) -> None:
        """Follow to the end of the container."""
        reason = ""
        try:
            tail = await self._tail()
            async with aclosing(self._log(since=tail.since).follow(self._is_finished)) as events:
                async for event in events:
                    if not isinstance(event, Interrupted):
                        if block := tail.of(event):
                            self._take(block)
                    elif event.reason is Interruption.REFUSED:
                        reason = event.problem
                        break
                    del event  # not kept while nothing comes
        except NotFoundError:
            reason = "the pod is gone"
        except KubeError as error:
            reason = str(error)
        self.reason = reason
        self._changes.notify()

    async def _tail(self) -> Tail:
        try:
            return await last_lines(lambda count: self._log(tail_lines=count), LAST_LINES)
        except BadRequestError:  # it has not started
            return Tail()

    def _log(self, *, since: Instant | None = None, tail_lines: int | None = None) -> ContainerLog:
        options = ContainerLogOptions(since=since, tail_lines=tail_lines, line_limit=_LONGEST_LINE, pace=_PAUSE)
        return ContainerLog(
            self._client, self._namespace, *self._source, clock=self._clock, options=options, on_state=self._take_state
        )

    def _is_finished(self) -> bool:
        pod = self._near.pods.lister.get(ObjectKey(self._namespace, self._source.pod))
        return pod is None or has_ended(pod, self._source.container)

    @property
    def has_news(self) -> bool:
        """Whether lines wait, or the state of one that has not ended."""
        return bool(self._waiting or self._state)

    @property
    def has_lines(self) -> bool:
        """Whether lines wait."""
        return bool(self._waiting)

    def take(self) -> tuple[list[msgspec.Raw], int]:
        """The oldest of the lines that wait, and how many were dropped before them."""
        lines, size = [], 0
        while self._waiting and size < _BYTES_AT_ONCE:
            line = self._pop()
            lines.append(msgspec.Raw(line))
            size += len(line)
        self._count(self._size)
        dropped, self._dropped = self._dropped, 0
        return lines, dropped

    def take_state(self) -> msgspec.Raw | None:
        """The line that is written over, if it has another state than before."""
        state, self._state = self._state, b""
        return msgspec.Raw(state) if state else None

    def _take_state(self, line: bytes) -> None:
        for found in log_lines(line, with_overwritten=True):
            self._state = _encoded(found)
        self._changes.notify()

    def _take(self, block: bytes) -> None:
        for line in log_lines(block, with_overwritten=True):
            encoded = _encoded(line)
            if line.is_overwritten:
                self._state = encoded
                continue
            self._state = b""
            self._waiting.append(encoded)
            self._size += len(encoded) + _OF_LINE
            while len(self._waiting) > LAST_LINES or self._size > WAITING_BYTES:
                self._pop()
                self._dropped += 1
        self._count(self._size)
        self._changes.notify()

    def _drop_half(self) -> None:
        for _ in range((len(self._waiting) + 1) // 2):
            self._pop()
            self._dropped += 1
        self._count(self._size)

    def _pop(self) -> bytes:
        line = self._waiting.popleft()
        self._size -= len(line) + _OF_LINE
        return line


def _encoded(line: LogLine) -> bytes:
    text = line.text if len(line.text) <= LONGEST_TEXT else f"{line.text[:LONGEST_TEXT]}..."
    return msgspec.json.encode((line.stamp, text))
