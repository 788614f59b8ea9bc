"""The logs of containers, followed side by side in one stream."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from trainer.dashboard.event_stream import SIGN_IN_CHECK, Changes, event_stream
from trainer.kube.client import LogOptions
from trainer.kube.errors import BadRequestError, KubeError, NotFoundError
from trainer.kube.objects import ObjectKey
from trainer.kube.podlogs.container_log import ContainerLog, ContainerLogOptions
from trainer.kube.podlogs.position import instant_of
from trainer.kube.resource import PODS
from trainer.progress.log_lines import log_lines
from trainer.progress.primary_log import IDLE_SECONDS, LINE_LIMIT
from trainer.workloads.containers import has_ended

if TYPE_CHECKING:
    from aiohttp import web

    from trainer.dashboard.event_stream import EventStream
    from trainer.dashboard.neighbourhoods import Neighbourhood, Neighbourhoods
    from trainer.dashboard.viewer import Viewer
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock
    from trainer.kube.podlogs.instant import Instant

SOURCES: Final = 16
"""Containers that one page may follow at once."""
LAST_LINES: Final = 2000
"""Lines with which a log begins, and lines of a container that wait for a slow reader; older ones are dropped."""
LONGEST_TEXT: Final = 4096
"""Characters of a line that are shown."""
WAITING_CHARACTERS: Final = 1024 * 1024
"""Of the lines of a container that wait for a slow reader; older ones are dropped."""
_PAUSE = 0.1
_LINES_AT_ONCE = 500


class LogSource(NamedTuple):
    """A container of a pod."""

    pod: str
    container: str


class LogStreams:
    """Streams of logs: `lines` of a source by its number, and `end`, with the reason, when it writes nothing more."""

    def __init__(self, neighbourhoods: Neighbourhoods, clock: Clock) -> None:
        self._neighbourhoods = neighbourhoods
        self._clock = clock

    async def stream(
        self, request: web.BaseRequest, namespace: str, sources: tuple[LogSource, ...], viewer: Viewer
    ) -> web.StreamResponse:
        """Push the last lines of each container and all that follow, while its viewer may read them.

        The API server asks for the right when a log is opened, and not again.
        """
        async with event_stream(request, self._clock, viewer) as stream:
            with self._neighbourhoods.of(namespace) as near:
                await near.pods.wait_for_sync()
                async with anyio.create_task_group() as watch:
                    watch.start_soon(self._end_with_right, watch.cancel_scope, namespace, sources, viewer)
                    async with anyio.create_task_group() as tasks:
                        for number, source in enumerate(sources):
                            follower = _Follower(viewer.client, self._clock, namespace, source, near)
                            tasks.start_soon(follower.run, stream, number)
                    watch.cancel_scope.cancel()
        return stream.response

    async def _end_with_right(
        self, scope: anyio.CancelScope, namespace: str, sources: tuple[LogSource, ...], viewer: Viewer
    ) -> None:
        keys = {ObjectKey(namespace, source.pod) for source in sources}
        while all([await viewer.may("get", PODS, key, subresource="log") for key in keys]):
            await self._clock.sleep(SIGN_IN_CHECK)
        scope.cancel()


class _Follower:
    """One container's log on its way to one page."""

    def __init__(self, client: Client, clock: Clock, namespace: str, source: LogSource, near: Neighbourhood) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._source = source
        self._near = near
        self._changes = Changes()
        self._waiting: deque[tuple[str, str]] = deque()
        self._characters = 0
        self._dropped = 0
        self._is_over = False

    async def run(self, stream: EventStream, number: int) -> None:
        """Follow to the end of the container."""
        reason = ""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send_on, stream, number)
            try:
                since = await self._first_of_last_lines()
                options = ContainerLogOptions(since=since, line_limit=LINE_LIMIT, idle_timeout=IDLE_SECONDS)
                place = self._namespace, *self._source
                log = ContainerLog(self._client, *place, clock=self._clock, options=options)
                await log.follow(self._take, is_finished=self._is_finished)
            except NotFoundError:
                reason = "the pod is gone"
            except KubeError as error:
                reason = str(error)
            # Not cancelled: it may hold lines that wait for other sources to be sent.
            self._is_over = True
            self._changes.notify()
        await self._send(stream, number)
        await stream.send("end", {"source": number, "reason": reason})

    async def _first_of_last_lines(self) -> Instant | None:
        """When the first of the last lines was written; None where the whole log is wanted."""
        options = LogOptions(self._source.container, timestamps=True, tail_lines=LAST_LINES)
        head, lines = b"", 0
        try:
            async with self._client.logs(self._source.pod, self._namespace, options) as chunks:
                async for chunk in chunks:
                    head = head or chunk[:64]
                    lines += chunk.count(b"\n")
        except BadRequestError:  # it has not started
            return None
        return instant_of(head.partition(b"\n")[0]) if lines >= LAST_LINES else None

    def _is_finished(self) -> bool:
        pod = self._near.pods.lister.get(ObjectKey(self._namespace, self._source.pod))
        return pod is None or has_ended(pod, self._source.container)

    def _take(self, block: bytes) -> None:
        for line in log_lines(block):
            text = line.text if len(line.text) <= LONGEST_TEXT else f"{line.text[:LONGEST_TEXT]}..."
            self._waiting.append((line.stamp, text))
            self._characters += len(text)
            while len(self._waiting) > LAST_LINES or self._characters > WAITING_CHARACTERS:
                self._pop()
                self._dropped += 1
        self._changes.notify()

    def _pop(self) -> tuple[str, str]:
        line = self._waiting.popleft()
        self._characters -= len(line[1])
        return line

    async def _send_on(self, stream: EventStream, number: int) -> None:
        while not self._is_over:
            await self._changes.wait()
            await self._send(stream, number)
            await self._clock.sleep(_PAUSE)

    async def _send(self, stream: EventStream, number: int) -> None:
        while self._waiting:
            lines = [self._pop() for _ in range(min(_LINES_AT_ONCE, len(self._waiting)))]
            dropped, self._dropped = self._dropped, 0
            await stream.send("lines", {"source": number, "dropped": dropped, "lines": lines})
