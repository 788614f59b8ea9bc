"""What a test makes go wrong between one client and the server."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from random import Random
from typing import TypedDict, Unpack

import anyio

from trainer.kube.errors import KubeError, TransportError
from trainer.kube.resource import Resource
from trainer_kube_testing.api_semantics import statuses
from trainer_kube_testing.container_logs import Cut, LogDelivery, LogStream
from trainer_kube_testing.recorded import WRITES, RecordedRequest
from trainer_kube_testing.storage import FakeStorage
from trainer_kube_testing.watches import Delivery, End, FakeWatch, Mishap, StreamingLists, bookmark

LOST_ANSWER = "lost answer"
COMPACTION = "compaction"

_FAILURES: tuple[Callable[[], KubeError], ...] = (
    statuses.too_many_requests,
    statuses.internal_error,
    statuses.unavailable,
    statuses.timeout,
    lambda: TransportError("connection reset"),
)


class Match(TypedDict, total=False):
    """Which requests are meant: those that agree with all that is given."""

    verb: str | AbstractSet[str]
    """A verb of `RecordedRequest`, or several, such as `WRITES`."""
    resource: Resource
    namespace: str
    name: str
    subresource: str


class Fault:
    """An instruction about requests to come; `Faults` makes them."""

    def __init__(self, match: Match, error: Exception | None, *, answers: bool, times: int | None, skip: int) -> None:
        self._match = match
        self._error = error
        self._left = times
        self._skip = skip
        self.answers = answers
        """Whether the request is carried out first, so that only its answer is concerned."""
        self.hits = 0
        """How many requests it has met."""

    @property
    def is_over(self) -> bool:
        """Whether it concerns no request any more."""
        return self._left == 0

    def end(self) -> None:
        """Let all further requests pass."""
        self._left = 0

    def takes(self, request: RecordedRequest) -> bool:
        """Whether the request is concerned; counts it."""
        if self.is_over or not _is_meant(self._match, request):
            return False
        if self._skip:
            self._skip -= 1
            return False
        self.hits += 1
        if self._left is not None:
            self._left -= 1
        return True

    async def apply(self) -> None:
        """Do to a request what the test wants."""
        if self._error is not None:
            # The same error may be raised many times: without this, its traceback would grow.
            raise self._error.with_traceback(None)


class Hold(Fault):
    """An instruction to make requests wait until the test releases them."""

    def __init__(self, match: Match, *, answers: bool) -> None:
        super().__init__(match, None, answers=answers, times=None, skip=0)
        self._waiting: deque[anyio.Event] = deque()

    @property
    def waiting(self) -> int:
        """How many requests are held."""
        return len(self._waiting)

    def release(self, count: int | None = None) -> None:
        """Let the longest waiting requests go on; by default all, those to come included."""
        if count is None:
            self.end()
        for _ in range(self.waiting if count is None else min(count, self.waiting)):
            self._waiting.popleft().set()

    async def apply(self) -> None:
        """Wait for the release."""
        event = anyio.Event()
        self._waiting.append(event)
        try:
            await event.wait()
        finally:
            if event in self._waiting:
                self._waiting.remove(event)


def _is_meant(match: Match, request: RecordedRequest) -> bool:
    return all(
        getattr(request, name) in wanted if isinstance(wanted, AbstractSet) else getattr(request, name) == wanted
        for name, wanted in match.items()
    )


class Faults:
    """A script of failures for one client of a fake; nothing goes wrong until a method says so.

    Everything is deterministic: faults meet requests in the order in which they arrive, and nothing depends on time.

        client.faults.fail(statuses.too_many_requests(), verb="list", times=3)
        client.faults.hold_watches()
        await reconcile(key)                      # the cache does not yet show what this wrote
        client.faults.release_watches(1)
    """

    def __init__(self, storage: FakeStorage, *, compact: Callable[[], None]) -> None:
        self.streaming_lists = StreamingLists.SERVED
        """How the server treats WatchList requests from now on. Default: as a server of today."""
        self.injected: Counter[str] = Counter()
        """What `chaos` has done so far: how often, by name."""
        self._storage = storage
        self._compact = compact
        self._script: list[Fault] = []
        self._streams: dict[FakeWatch | LogStream, None] = {}
        self.delivery = Delivery(self._next_mishap)
        """How events come through at present."""
        self.log_delivery = LogDelivery()
        """How logs come through at present."""
        self._random: Random | None = None
        self._rate = 0.0
        self._refuses = False
        self._partition: anyio.Event | None = None

    def fail(self, error: Exception, *, times: int | None = 1, skip: int = 0, **match: Unpack[Match]) -> Fault:
        """Answer matching requests with an error instead of carrying them out.

        Args:
            error: from `statuses` or `trainer.kube.errors`; a `TransportError` means that there is no answer.
            times: how many requests; None for all until `Fault.end`.
            skip: let so many pass first.
            match: which requests; default: all.
        """
        return self._add(Fault(match, error, answers=False, times=times, skip=skip))

    def lose_answer(self, *, times: int | None = 1, skip: int = 0, **match: Unpack[Match]) -> Fault:
        """Carry out matching requests, but break the connection before the answer; see `fail`."""
        error = TransportError("the server closed the connection before it answered")
        return self._add(Fault(match, error, answers=True, times=times, skip=skip))

    def hold(self, *, answers: bool = False, **match: Unpack[Match]) -> Hold:
        """Make matching requests wait for `Hold.release`: before they are carried out, or their answers after it."""
        hold = Hold(match, answers=answers)
        self._script.append(hold)
        return hold

    def refuse_connections(self) -> None:
        """Be down: break all watches and logs and answer no request until `accept_connections`."""
        self._refuses = True
        self.drop_watches(TransportError("connection reset"))
        self.drop_logs(TransportError("connection reset"))

    def accept_connections(self) -> None:
        """Be up again."""
        self._refuses = False

    def partition(self) -> None:
        """Be out of reach without a word: no answers until `heal`, and open watches and logs never say more."""
        if self._partition is None:
            self._partition = anyio.Event()
        for stream in self._streams:
            stream.silence()

    def heal(self) -> None:
        """End the partition; the requests that still wait are carried out now, as delayed packets are."""
        if self._partition is not None:
            self._partition.set()
            self._partition = None

    def drop_watches(self, error: KubeError | None = None) -> int:
        """End the open watches after the events that are due; returns how many.

        An `ApiError` comes as an ERROR event, a `TransportError` as a broken connection; by default it is a clean end,
        as after the timeout of a watch.
        """
        for watch in self._watches:
            watch.order(End(error))
        return len(self._watches)

    def silence_watches(self) -> None:
        """Let the open watches send nothing any more, not even their end."""
        for watch in self._watches:
            watch.silence()

    def send_bookmarks(self) -> None:
        """Send a bookmark to the open watches after the events that are due."""
        for watch in self._watches:
            version = self.delivery.horizons.get(watch.collection, self._storage.version)
            watch.order(bookmark(watch.collection.resource, version))

    def hold_watches(self, resource: Resource | None = None) -> None:
        """Keep all changes from now on from the watches, of one resource or of all; lists still show everything."""
        collections = self._storage.collections if resource is None else [self._storage.collection(resource)]
        for collection in collections:
            self.delivery.horizons.setdefault(collection, self._storage.version)

    def release_watches(self, count: int | None = None) -> int:
        """Let the next held changes reach the watches, in the order of the server.

        Args:
            count: so many of the changes that an open watch is about; the rest stays held. Default: all,
                and stop holding.

        Returns:
            How many such changes are still held.
        """
        horizons = self.delivery.horizons
        held = sorted({version for watch in self._watches for version in watch.held()})
        if count is None:
            horizons.clear()
            held.clear()
        elif count > 0 and held:
            reached = held[min(count, len(held)) - 1]
            for collection in horizons:
                horizons[collection] = max(reached, horizons[collection])
            del held[:count]
        for watch in self._watches:
            watch.wake()
        return len(held)

    def drop_logs(self, error: TransportError | None = None, *, torn: bool = False) -> int:
        """End the open streams of logs after the text that is due; returns how many.

        By default it is a clean end, as when an API server stops; `torn` breaks the connections in the middle of the
        text that comes next instead.
        """
        for stream in self._logs:
            stream.drop(error, torn=torn)
        return len(self._logs)

    def cut_logs(self, *after: int, error: TransportError | None = None) -> None:
        """End each of the next streams of logs to be opened after so many bytes, in the middle of whatever is there.

        Timestamps count; 0 ends a stream before it says anything. An `error` breaks the connections.
        """
        self.log_delivery.cuts.extend(Cut(size, error) for size in after)

    def silence_logs(self) -> None:
        """Let the open streams of logs say nothing any more, not even their end."""
        for stream in self._logs:
            stream.silence()

    def fragment_logs(self, random: Random | None) -> None:
        """Send logs in chunks of random sizes that end anywhere, also in the middle of a character.

        None: in chunks as they were written again.
        """
        self.log_delivery.fragmenting = random

    def chaos(self, random: Random, rate: float = 0.05) -> None:
        """Let requests and watch events go wrong at random until `calm`; `injected` counts what happened.

        Requests fail with 429, 500, 503, 504, 410 (lists) or a broken connection, writes also after they were carried
        out; watches end, break, expire, fall silent or repeat an event; the history is compacted. A silent
        watch stays silent, so something must move the clock for its client to notice.

        `random` is a generator of the test's own, made with a seed that a failure can be repeated with; `rate` is the
        probability for each request and each event.
        """
        self._random, self._rate = random, rate

    def calm(self) -> None:
        """End the chaos; watches that fell silent stay so."""
        self._random = None

    def release(self) -> None:
        """Let everything go that is held: requests, answers and watches."""
        for fault in self._script:
            if isinstance(fault, Hold):
                fault.release()
        self.release_watches()

    def clear(self) -> None:
        """Take back everything that still applies."""
        self.release()
        self._script.clear()
        self.heal()
        self.accept_connections()
        self.calm()
        self.fragment_logs(None)
        self.log_delivery.cuts.clear()
        self.streaming_lists = StreamingLists.SERVED

    async def before_request(self, request: RecordedRequest) -> None:
        """Let a request through, in time, or raise what it fails with."""
        if self._partition is not None:
            await self._partition.wait()
        if self._refuses:
            raise TransportError("connection refused: nothing listens there")
        await self._apply_faults(request, answers=False)
        if self._is_chaotic():
            self._compact()
            self.injected[COMPACTION] += 1
        if self._is_chaotic():
            error = self._draw_failure(request)
            self.injected[type(error).__name__] += 1
            raise error

    async def after_request(self, request: RecordedRequest) -> None:
        """Let the answer to a request through, in time, or raise what the client gets instead."""
        await self._apply_faults(request, answers=True)
        if request.verb in WRITES and self._is_chaotic():
            self.injected[LOST_ANSWER] += 1
            raise TransportError("connection reset before the answer")

    @contextmanager
    def reaching(self, stream: FakeWatch | LogStream) -> Iterator[None]:
        """Have a watch or the stream of a log within reach of the script while it is open."""
        self._streams[stream] = stream.wakers[stream.wake] = None
        try:
            yield
        finally:
            del self._streams[stream], stream.wakers[stream.wake]

    @property
    def _watches(self) -> list[FakeWatch]:
        return [stream for stream in self._streams if isinstance(stream, FakeWatch)]

    @property
    def _logs(self) -> list[LogStream]:
        return [stream for stream in self._streams if isinstance(stream, LogStream)]

    async def _apply_faults(self, request: RecordedRequest, *, answers: bool) -> None:
        self._script = [fault for fault in self._script if not fault.is_over]
        for fault in tuple(self._script):
            if fault.answers == answers and fault.takes(request):
                await fault.apply()

    def _add(self, fault: Fault) -> Fault:
        self._script.append(fault)
        return fault

    def _draw_failure(self, request: RecordedRequest) -> KubeError:
        assert self._random is not None
        if request.verb == "list" and self._random.random() < 1 / len(_FAILURES):
            return statuses.expired()
        return self._random.choice(_FAILURES)()

    def _next_mishap(self) -> Mishap | None:
        if self._random is None or not self._is_chaotic():
            return None
        mishap = self._random.choice(tuple(Mishap))
        self.injected[mishap] += 1
        return mishap

    def _is_chaotic(self) -> bool:
        return self._random is not None and self._random.random() < self._rate
