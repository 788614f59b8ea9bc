"""Parties: whose requests count together, and what all requests of one party may take of the process.

Whoever may create ServiceAccounts in a namespace has any number of names there, so all of them are one party. Every
request passes here once, with its connection, its turns and the bytes of its answer; nothing behind bounds itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import anyio
from aiohttp import web

from trainer.kube.rest.fair_scheduler import FairScheduler
from trainer_dashboard.access.memory import Holding, Memory
from trainer_dashboard.access.turns import Turns

CONNECTIONS: Final = 1000
STREAMS: Final = 800
"""Open streams of all parties; the other connections are for short requests. When there are as many, the newest stream
of the party that has most gives way to one of a party that has fewer."""
STREAMS_OF_ONE: Final = 64
"""Open streams of one party."""
REQUESTS_OF_ONE: Final = 32
"""Short requests of one party that wait or are being answered."""
_AT_ONCE, _AT_ONCE_OF_ONE = 8, 2
"""Short requests that read objects at the same time, which take some ten times their size."""
_SNAPSHOTS: Final = 2
"""Requests at once, of two parties, for which all pods of a TrainJob are read."""
_THREADS: Final = 2
"""Threads that compute; more of them would only have the event loop wait longer for its turn."""
_QUESTIONS: Final = 4
"""Questions to the history at once."""
_OF_STREAM: Final = 64 * 1024
"""Bytes of an open stream: its tasks, and what the transport keeps of what was written."""
OF_LOG: Final = 128 * 1024
"""Bytes for each log that is followed: what has arrived of it, and a line that has not ended."""
_SMALL: Final = 16 * 1024
"""Bytes of an answer that the transport may keep without being counted."""
_SLICE: Final = 64 * 1024
"""Bytes that the transport gets at once, which copies what the socket does not take."""
_ACCOUNTS = "system:serviceaccount:"

_T = TypeVar("_T")


def party_of(user: str) -> str:
    """The party of a user: themselves, or for a ServiceAccount its namespace."""
    return user.rpartition(":")[0] + ":*" if user.startswith(_ACCOUNTS) else user


class _Slots:
    """Places for what is done at once, of which each party has a few."""

    def __init__(self, at_once: int, of_one: int) -> None:
        self._all = anyio.CapacityLimiter(at_once)
        self._of_one = of_one
        self._own: dict[str, anyio.CapacityLimiter] = {}
        self._users: Counter[str] = Counter()

    @asynccontextmanager
    async def of(self, party: str) -> AsyncIterator[None]:
        """Wait for a place of this party, and have it while the body runs."""
        own = self._own.setdefault(party, anyio.CapacityLimiter(self._of_one))
        self._users[party] += 1
        try:
            # First its own: whoever asks for much waits for themselves, and not before the places of all.
            async with own, self._all:
                yield
        finally:
            self._users[party] -= 1
            if not self._users[party]:
                del self._users[party], self._own[party]


async def _write(response: web.StreamResponse, block: bytes) -> None:
    for start in range(0, len(block), _SLICE):
        await response.write(block[start : start + _SLICE])


@dataclass(eq=False, slots=True)
class Stream:
    """An open stream, which may have to give way to others."""

    party: Party
    end: Callable[[], None]
    """Drops the connection."""

    async def write(self, response: web.StreamResponse, block: bytes) -> None:
        """Write a block, and count it until its reader has taken it."""
        with self.party.holding(len(block), end=self.end):
            await _write(response, block)


@dataclass(frozen=True, slots=True)
class Party:
    """What one party takes of the process."""

    name: str
    parties: Parties

    @contextmanager
    def holding(
        self, size: int, *, end: Callable[[], None], shrink: Callable[[], None] | None = None
    ) -> Iterator[Holding]:
        """Bytes that are held while the body runs, see `Memory.hold`."""
        memory = self.parties.memory
        holding = memory.hold(self.name, size, end=end, shrink=shrink)
        try:
            yield holding
        finally:
            memory.release(holding)

    def resize(self, holding: Holding, size: int) -> None:
        """One of these has another size now."""
        self.parties.memory.resize(holding, size)

    @contextmanager
    def streaming(self, end: Callable[[], None], *, logs: int = 0) -> Iterator[Stream | None]:
        """An open stream that follows so many logs, while the body runs; None where the party has too many."""
        stream = Stream(self, end)
        if not self.parties.admit(stream):
            yield None
            return
        try:
            with self.holding(_OF_STREAM + logs * OF_LOG, end=end):
                yield stream
        finally:
            self.parties.leave(stream)

    @contextmanager
    def asking(self) -> Iterator[bool]:
        """A short request, while the body runs; gives whether the party may send another one."""
        requests = self.parties.requests
        is_allowed = not self.name or requests[self.name] < REQUESTS_OF_ONE
        requests[self.name] += is_allowed
        try:
            yield is_allowed
        finally:
            requests[self.name] -= is_allowed
            if not requests[self.name]:
                del requests[self.name]

    async def turn(self) -> None:
        """Wait until it is the turn of a stream of this party to make what it sends.

        In each round of the event loop it is one of them: all of a party become ready at once, when what they show
        changes, and each takes milliseconds.
        """
        await self.parties.rounds[self.name].next_turn()

    async def send(
        self, request: web.BaseRequest, response: web.Response, end: Callable[[], None]
    ) -> web.StreamResponse:
        """Send an answer that is large, and count it until its reader has taken it; returns what is left to send."""
        body = response.body if isinstance(response.body, bytes) else b""
        if len(body) <= _SMALL:
            return response
        sent = web.StreamResponse(status=response.status, headers=response.headers)
        sent.content_length = len(body)
        with suppress(ConnectionError), self.holding(len(body), end=end):
            await sent.prepare(request)
            await _write(sent, body)
        return sent

    def reading(self) -> AbstractAsyncContextManager[None]:
        """A place for a request that reads objects."""
        return self.parties.readings.of(self.name)

    def snapshot(self) -> AbstractAsyncContextManager[None]:
        """A place for a request that reads all pods of a TrainJob."""
        return self.parties.snapshots.of(self.name)

    async def compute(self, function: Callable[..., _T], *arguments: object) -> _T:
        """The result of a function that takes a processor for a while."""
        return await self.parties.threads.call(self.name, partial(function, *arguments))

    async def ask_history(self, question: Callable[[], _T]) -> _T:
        """The answer of the history, which blocks."""
        return await self.parties.questions.call(self.name, question)


class Parties:
    """All parties, while `run` runs."""

    def __init__(self, memory: Memory | None = None) -> None:
        self.memory = memory or Memory()
        self.requests: Counter[str] = Counter()
        self.readings = _Slots(_AT_ONCE, _AT_ONCE_OF_ONE)
        self.snapshots = _Slots(_SNAPSHOTS, 1)
        self.threads, self.questions = Turns(_THREADS), Turns(_QUESTIONS)
        self.rounds: defaultdict[str, FairScheduler] = defaultdict(partial(FairScheduler, per_round=1))
        """By party, while it has streams."""
        self._streams: dict[str, list[Stream]] = {}

    def of(self, user: str) -> Party:
        """That of a user."""
        return Party(party_of(user), self)

    async def run(self) -> None:
        """Call functions in their turns until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.threads.run)
            tasks.start_soon(self.questions.run)

    def admit(self, stream: Stream) -> bool:
        """Count a stream; where there are too many, another one gives way, or this one is refused."""
        name = stream.party.name
        own = len(self._streams.get(name, ()))
        if name and own >= STREAMS_OF_ONE:
            return False
        if sum(map(len, self._streams.values())) >= STREAMS:
            most = max(self._streams.values(), key=len)
            if len(most) <= own + 1:
                return False
            most[-1].end()
            self.leave(most[-1])
        self._streams.setdefault(name, []).append(stream)
        return True

    def leave(self, stream: Stream) -> None:
        """Count a stream no more."""
        name = stream.party.name
        own = self._streams.get(name, [])
        if stream in own:
            own.remove(stream)
        if not own:
            self._streams.pop(name, None)
            self.rounds.pop(name, None)
