"""One instruction of a test about requests to come: fail, or wait."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypedDict

import anyio

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from trainer.kube.resource import Resource
    from trainer.kube.testing.recorded import RecordedRequest


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

    async def strike(self) -> None:
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

    async def strike(self) -> None:
        """Wait for the release."""
        event = anyio.Event()
        self._waiting.append(event)
        try:
            await event.wait()
        finally:
            if event in self._waiting:
                self._waiting.remove(event)


def _is_meant(match: Match, request: RecordedRequest) -> bool:
    verb = match.get("verb", request.verb)
    return (request.verb == verb if isinstance(verb, str) else request.verb in verb) and (
        match.get("resource", request.resource) == request.resource
        and match.get("namespace", request.namespace) == request.namespace
        and match.get("name", request.name) == request.name
        and match.get("subresource", request.subresource) == request.subresource
    )
