"""The list/watch state machine that keeps a copy of one resource up to date.

    Listing --list stored--> Watching --watch ended or broke--> Watching, from the last resource version
       ^                         |
       +---- 410: too old -------+

`Reflector.step` takes one state, does its I/O through the `Client` protocol, tells the sink what it learned and returns
the next state. It never raises because of the API server: failures are logged, remembered in `last_error` and followed
by a pause. Facts of the protocol: Kubernetes documentation, "API Concepts", "Efficient detection of changes".
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import structlog

from trainer.kube.backoff import Backoff
from trainer.kube.client import EventType, Selection, WatchOptions
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import ApiError, GoneError, KubeError, ServerTimeoutError, TransportError
from trainer.kube.objects import Object, key_of, resource_version_of
from trainer.kube.pager import list_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import FilteringBoundLogger

    from trainer.kube.client import Client, ObjectList, WatchEvent
    from trainer.kube.resource import Resource

log = structlog.get_logger(__name__)

RETRY = Backoff(initial=0.8, maximum=30.0, jitter=1.0)
"""As client-go: at the ceiling one client asks a failing server about once in 45 s."""

WATCH_SECONDS = (300, 600)
"""The server ends each watch after a random time in this range, so that many clients do not reconnect together."""

WATCH_SLACK = 30.0
"""Seconds that the end of a watch may be late before the connection is taken for dead."""

SHORT_WATCH = 1.0
"""A watch that ends within so many seconds without an event counts as a failure: some proxies accept and drop it."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The next step lists everything; "0" accepts a cached list, "" insists on the newest."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class Watching:
    """The next step watches for changes after this resource version."""

    resource_version: str


State: TypeAlias = Listing | Watching

START = Listing("0")


class Sink(Protocol):
    """What a reflector tells: complete lists and single changes, in the order of the server."""

    def replace(self, objects: list[Object]) -> None:
        """These are all objects that exist now; whatever else was known is gone."""

    def put(self, obj: Object) -> None:
        """The object was created or changed."""

    def remove(self, obj: Object) -> None:
        """The object is gone; this is its last state."""


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
        transform: Callable[[Object], Object],
    ) -> None:
        self._client = client
        self._resource = resource
        self._selection = selection
        self._sink = sink
        self._clock = clock
        self._transform = transform
        self._failures = 0
        self._log = log.bind(resource=resource.qualified_name)
        self.last_error: KubeError | None = None
        """Why the latest step failed; None after a success."""

    async def run(self) -> None:
        """Step until cancelled."""
        state: State = START
        while True:
            state = await self.step(state)

    async def step(self, state: State) -> State:
        """Do what `state` says and return the state to go on with."""
        match state:
            case Listing(resource_version):
                return await self._list(resource_version)
            case Watching(resource_version):
                return await self._watch(resource_version)

    async def _list(self, resource_version: str) -> State:
        try:
            objects: ObjectList = await list_all(
                self._client,
                self._resource,
                self._selection,
                resource_version=resource_version,
                transform=self._transform,
            )
        except KubeError as error:
            if resource_version and _is_unusable_version(error):
                return Listing("")
            await self._pause("could not list", error)
            return Listing(resource_version)
        self._sink.replace(objects.items)
        self.last_error = None
        return Watching(objects.resource_version)

    async def _watch(self, resource_version: str) -> State:
        follower = _Follower(self._sink, self._transform, self._log, resource_version)
        seconds = random.randint(*WATCH_SECONDS)  # noqa: S311 - spreads load, hides nothing
        options = WatchOptions(resource_version=resource_version, timeout_seconds=seconds)
        started = self._clock.monotonic()
        try:
            async with (
                move_on_after(self._clock, seconds + WATCH_SLACK) as limit,
                self._client.watch(self._resource, self._selection, options) as events,
            ):
                async for event in events:
                    follower.accept(event)
                    self._succeeded()
            self._check_end(follower, limit_exceeded=limit.cancelled_caught, started=started)
        except GoneError as error:
            # Relisting is the remedy, so it waits only if it has already failed to be one.
            await self._pause("resource version is too old, listing again", error, skip_first=True)
            return Listing("")
        except KubeError as error:
            await self._pause("watch broke", error)
        else:
            self._succeeded()
        return Watching(follower.resource_version)

    def _check_end(self, follower: _Follower, *, limit_exceeded: bool, started: float) -> None:
        if limit_exceeded:
            raise TransportError(f"the watch did not end {WATCH_SLACK:.0f} s after its time: the connection is dead")
        if not follower.events and self._clock.monotonic() - started < SHORT_WATCH:
            raise TransportError(f"the watch ended within {SHORT_WATCH:.0f} s without an event")

    def _succeeded(self) -> None:
        self._failures = 0
        self.last_error = None

    async def _pause(self, what: str, error: KubeError, *, skip_first: bool = False) -> None:
        self.last_error = error
        seconds = 0.0 if skip_first and not self._failures else RETRY.pause(self._failures)
        if isinstance(error, ApiError):
            seconds = max(seconds, error.retry_after_seconds or 0.0)
        self._failures += 1
        self._log.warning(what, error=str(error), retry_in_seconds=round(seconds, 1))
        await self._clock.sleep(seconds)


class _Follower:
    """Hands the events of one watch to the sink and remembers how far it came."""

    def __init__(
        self, sink: Sink, transform: Callable[[Object], Object], logger: FilteringBoundLogger, version: str
    ) -> None:
        self._sink = sink
        self._transform = transform
        self._log = logger
        self.resource_version = version
        self.events = 0

    def accept(self, event: WatchEvent) -> None:
        self.events += 1
        version = resource_version_of(event.object)
        if not version:
            self._log.warning(
                "skipped watch event without resource version", type=event.type, key=str(key_of(event.object))
            )
            return
        match event.type:
            case EventType.ADDED | EventType.MODIFIED:
                self._sink.put(self._transform(event.object))
            case EventType.DELETED:
                self._sink.remove(self._transform(event.object))
            case EventType.BOOKMARK:
                pass
        self.resource_version = version


def _is_unusable_version(error: KubeError) -> bool:
    """Whether a quorum read would help: the version is compacted, or ahead of a server that was restored or lags."""
    if isinstance(error, GoneError):
        return True
    if not isinstance(error, ServerTimeoutError):
        return False
    return _has_cause(error, "ResourceVersionTooLarge") or "Too large resource version" in error.message


def _has_cause(error: ApiError, reason: str) -> bool:
    return any(cause.get("reason") == reason for cause in error.causes)
