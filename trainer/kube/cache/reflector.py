"""The list/watch state machine that keeps a copy of one resource up to date.

    Streaming --initial events end, same stream goes on--> Watching --ended or broke--> Watching, from the last version
       |  ^                                                   |
       |  +--- 404, 410, any other refusal of the version -----+
       +--not supported, or broke halfway--> Listing --list stored--> Watching
                                    (once not supported, Listing takes the place of Streaming for good)

`Reflector.step` takes one state, does its I/O through the `Client` protocol, tells the sink what it learned and returns
the next state. It never raises because of the API server: failures are logged, remembered in `last_error` and followed
by a pause. Sources: Kubernetes documentation, "API Concepts"; KEP-3157 (streaming lists); the intervals of client-go.

A dead connection is noticed by silence: the server sends a bookmark about once a minute, so nothing for `IDLE` seconds
ends the watch, which goes on from the last version at the cost of one request. TCP keepalive stands behind that.

A kind that the cluster may do without, whose CRD may come later or never, is optional: a 404 is no failure then, but
says that there is nothing of it, and the same request is made again at leisure. Other ways to learn of it are worse. A
watch on CRDs needs a permission that shows all schemas of the cluster, tells of a CRD before it is served, and nothing
of aggregated APIs. Discovery is a second request, whose answer may have changed when the first one is made, and hides a
lack of permission until the CRD comes. The 404 is reliable: while a server does not know its CRDs it answers 503.

Other than client-go: a failure that says nothing of the version, such as 500 or 403, never leads to a list, which would
not help; and nothing is logged each 10 s while the initial events have not ended, since readiness and the sync timeout
of the manager tell.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import anyio

from trainer.kube.backoff import Backoff
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.failures import CANNOT_STREAM, SilentWatchError, explain, is_unusable_version
from trainer.kube.cache.watch_handler import Sink, WatchHandler
from trainer.kube.client import Client, RawJson, WatchOptions
from trainer.kube.clock import Clock
from trainer.kube.errors import (
    ApiError,
    BadRequestError,
    GoneError,
    InvalidError,
    KubeError,
    NotFoundError,
    TransportError,
)
from trainer.kube.logger import get_logger
from trainer.kube.metrics.caches import CacheMetrics
from trainer.kube.objects import ObjectKey
from trainer.kube.pager import FilterFactory, collect
from trainer.kube.resource import Resource
from trainer.kube.selection import Selection

log = get_logger(__name__)

RETRY = Backoff(initial=0.8, maximum=30.0, jitter=1.0)
"""The backoff of client-go's reflector: at its maximum a client asks a failing server about once in 45 s."""

RETRY_RESET = 120.0
"""Seconds without a failure after which the next pause is the shortest again."""

LONGEST_WAIT_FOR_DEFINITION = 10.0
"""Seconds between attempts while the resource is not served, so that a CRD that is installed is noticed soon."""

WAIT_FOR_OPTIONAL = 30.0
"""Seconds, give or take a fifth, between attempts to find an optional kind, which a cluster may never have."""

WATCH_SECONDS = (300, 600)
"""The server ends each watch after a random time in this range, so that many clients do not reconnect together."""

IDLE = 90.0
"""Seconds of silence after which a watch is taken for dead: a bookmark is due each 60 s."""

SHORT_WATCH = 1.0
"""A watch that ends within so many seconds without an event counts as a failure: some proxies accept and drop it."""


@dataclass(frozen=True, slots=True)
class Streaming:
    """The next step reads everything as a stream (WatchList) not older than this version, and watches on."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The next step lists everything; "0" accepts a cached list, "" insists on the newest."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class Watching:
    """The next step watches for changes after this resource version."""

    resource_version: str


State: TypeAlias = Streaming | Listing | Watching

START = Streaming("")


class Reflector:
    """Mirrors the selected objects of one resource into a sink."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        selection: Selection,
        sink: Sink,
        *,
        clock: Clock,
        convert: Callable[[RawJson], CachedObject],
        metrics: CacheMetrics,
        optional: bool = False,
        new_filter: FilterFactory[CachedObject] | None = None,
    ) -> None:
        self.optional = optional
        """Whether the API server may do without the kind."""
        self._client = client
        self._resource = resource
        self._selection = selection
        self._sink = sink
        self._clock = clock
        self._convert = convert
        self._new_filter = new_filter
        self._metrics = metrics
        self._streams = True
        self._always_pages = False
        self._failures = 0
        self._failed_at = clock.monotonic()
        self._gone_at = -math.inf
        self._is_served: bool | None = None
        self._log = log.bind(resource=resource.qualified_name)
        self.last_error: KubeError | None = None
        """Why the latest step failed; None after a success."""
        self.last_heard = clock.monotonic()
        """When the server last sent something, by the clock's monotonic time."""

    async def run(self) -> None:
        """Step until cancelled."""
        state: State = START
        while True:
            state = await self.step(state)

    async def step(self, state: State) -> State:
        """Do what `state` says and return the state to go on with."""
        match state:
            case Streaming(resource_version):
                return await self._stream(resource_version)
            case Listing(resource_version):
                return await self._list(resource_version)
            case Watching(resource_version):
                return await self._watch(resource_version)

    async def _stream(self, resource_version: str) -> State:
        if not self._streams:
            return Listing(resource_version or "0")
        handler = self._handler(initial={})
        try:
            await self._receive(handler, resource_version)
        except CANNOT_STREAM as error:
            if handler.resource_version:
                return await self._after_failed_watch(handler.resource_version, error)
            self._log.info("cannot stream the initial list, listing in pages", reason=str(error))
            self._streams = False
            return Listing("0")
        except KubeError as error:
            if handler.resource_version:
                return await self._after_failed_watch(handler.resource_version, error)
            if resource_version and is_unusable_version(error):
                return Streaming("")
            if self._may_be_missing(error):
                return await self._wait_for_kind(error)
            if isinstance(error, SilentWatchError):
                # Servers that do not know streaming lists ignore the parameter and never mark the end.
                self._streams = False
            await self._pause("could not stream the initial list", error)
            # What breaks a long answer, such as a proxy's time limit, may let pages pass.
            return Listing(resource_version or "0") if handler.events else Streaming(resource_version)
        if handler.resource_version:
            return Watching(handler.resource_version)
        await self._pause("could not stream the initial list", TransportError("it ended before its end was marked"))
        return Listing(resource_version or "0")

    async def _list(self, resource_version: str) -> State:
        try:
            collected = await collect(
                self._client,
                self._resource,
                self._selection,
                self._convert,
                resource_version=resource_version,
                always_in_pages=self._always_pages,
                new_filter=self._new_filter,
            )
        except KubeError as error:
            if resource_version and is_unusable_version(error):
                return Listing("")
            if self._may_be_missing(error):
                return await self._wait_for_kind(error)
            await self._pause("could not list", error)
            return Listing(resource_version)
        except ValueError as error:
            await self._pause("could not read the list", TransportError(str(error)))
            return Listing(resource_version)
        # A server that pages a list of any version has no watch cache, so that it pages one of this version as well.
        self._always_pages |= resource_version == "0" and collected.pages > 1
        await self._replaced(collected.items, collected.resource_version)
        return Watching(collected.resource_version)

    async def _watch(self, resource_version: str) -> State:
        handler = self._handler(version=resource_version)
        try:
            await self._receive(handler, resource_version)
        except KubeError as error:
            return await self._after_failed_watch(handler.resource_version, error)
        return Watching(handler.resource_version)

    async def _after_failed_watch(self, resource_version: str, error: KubeError) -> State:
        if isinstance(error, SilentWatchError):
            self._log.info("watch went silent, watching anew", seconds=IDLE)
            self._metrics.restarts["silent"].inc()
            return Watching(resource_version)
        if isinstance(error, GoneError):
            self._metrics.restarts["gone"].inc()
            # Relisting is the remedy, so it waits only if it has just failed to be one.
            now = self._clock.monotonic()
            is_first, self._gone_at = now - self._gone_at > RETRY_RESET, now
            await self._pause("resource version is too old, listing again", error, at_once=is_first)
            return Streaming(resource_version)
        self._metrics.restarts["error"].inc()
        if self._may_be_missing(error):
            # Its definition is gone, or about to be replaced: what comes next tells.
            await self._clock.sleep(RETRY.pause(0))
            return START
        await self._pause("watch broke", error)
        if isinstance(error, NotFoundError | BadRequestError | InvalidError) or is_unusable_version(error):
            # The definition was deleted, and all objects with it, which no watch event will tell; or it is made anew,
            # or the server restored from a backup, so that the version means nothing to it.
            return Streaming("")
        return Watching(resource_version)

    def _may_be_missing(self, error: KubeError) -> bool:
        """Whether this is no failure: the kind is not served, and need not be."""
        return self.optional and isinstance(error, NotFoundError)

    async def _wait_for_kind(self, error: KubeError) -> State:
        self.last_heard = self._clock.monotonic()
        self.last_error, self._failures = None, 0
        if self._is_served is not False:
            what = "waits for kind" if self._is_served is None else "kind is no longer served, waits for it"
            self._log.info(what, remedy=explain(self._resource, error), asks_again_in_seconds=WAIT_FOR_OPTIONAL)
            self._is_served = False
            await self._sink.unserved()
        await self._clock.sleep(WAIT_FOR_OPTIONAL * random.uniform(0.8, 1.2))  # noqa: S311 - spreads load
        return START

    async def _receive(self, handler: WatchHandler, resource_version: str) -> None:
        """Read one watch to its end; raises what broke it."""
        options = WatchOptions(
            resource_version=resource_version,
            timeout_seconds=random.randint(*WATCH_SECONDS),  # noqa: S311 - spreads load, hides nothing
            idle_timeout=IDLE + SHORT_WATCH,
            send_initial_events=handler.expects_initial_events,
        )
        started = handler.heard_at = self._clock.monotonic()
        silent = False

        async def end_when_silent(scope: anyio.CancelScope) -> None:
            nonlocal silent
            while (left := handler.heard_at + IDLE - self._clock.monotonic()) > 0:
                await self._clock.sleep(left)
            silent = True
            scope.cancel()

        failure: KubeError | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end_when_silent, tasks.cancel_scope)
            try:
                async with self._client.watch(self._resource, self._selection, options) as events:
                    self._heard(handler)
                    async for event in events:
                        self._heard(handler)
                        await handler.accept(event)
            except KubeError as error:
                failure = error
            tasks.cancel_scope.cancel()
        if silent:
            raise SilentWatchError(f"nothing was heard for {IDLE:.0f} s")
        if failure is not None:
            raise failure
        if not handler.events and self._clock.monotonic() - started < SHORT_WATCH:
            raise TransportError(f"the watch ended within {SHORT_WATCH:.0f} s without an event")
        self._metrics.restarts["closed"].inc()

    def _heard(self, handler: WatchHandler) -> None:
        """The server has accepted the watch or sent an event."""
        self.last_heard = handler.heard_at = self._clock.monotonic()
        # Until the initial events have ended there is nothing that one could rely on.
        if self.last_error is not None and handler.resource_version:
            self._succeeded()

    def _handler(self, *, version: str = "", initial: dict[ObjectKey, CachedObject] | None = None) -> WatchHandler:
        return WatchHandler(
            self._sink,
            self._convert,
            replaced=self._replaced,
            logger=self._log,
            metrics=self._metrics,
            version=version,
            initial=initial,
            keeps=None if self._new_filter is None else self._new_filter(),
        )

    async def _replaced(self, objects: list[CachedObject], resource_version: str) -> None:
        self._metrics.lists.inc()
        await self._sink.replace(objects, resource_version)
        self.last_heard = self._clock.monotonic()
        if self._is_served is False:
            self._log.info("kind is served", objects=len(objects))
        self._is_served = True
        self._succeeded()

    def _succeeded(self) -> None:
        if self.last_error is not None:
            self._log.info("listing and watching again")
        self.last_error = None

    async def _pause(self, what: str, error: KubeError, *, at_once: bool = False) -> None:
        now = self._clock.monotonic()
        if now - self._failed_at > RETRY_RESET:
            self._failures = 0
        is_repeated = self.last_error is not None and str(self.last_error) == str(error)
        self.last_error = error
        seconds = 0.0 if at_once else RETRY.pause(self._failures)
        if isinstance(error, NotFoundError):
            seconds = min(seconds, LONGEST_WAIT_FOR_DEFINITION)
        if isinstance(error, ApiError):
            seconds = max(seconds, error.retry_after_seconds or 0.0)
        self._failures += 1
        self._failed_at = now + seconds
        # A problem is logged once, not with every attempt.
        write = self._log.debug if is_repeated else self._log.warning
        write(what, error=explain(self._resource, error), retry_in_seconds=round(seconds, 1))
        await self._clock.sleep(seconds)
