"""Mishaps at random, for tests that look for what nobody thought of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.api_semantics import statuses
from trainer.kube.errors import TransportError
from trainer.kube.testing.requests import WRITES
from trainer.kube.testing.watches import Mishap

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable
    from random import Random

    from trainer.kube.errors import KubeError
    from trainer.kube.testing.requests import RecordedRequest

LOST_ANSWER = "lost answer"
COMPACTION = "compaction"

_FAILURES: tuple[Callable[[], KubeError], ...] = (
    statuses.too_many_requests,
    statuses.internal_error,
    statuses.unavailable,
    statuses.timeout,
    lambda: TransportError("connection reset"),
)


class Chaos:
    """Decides for each request and each watch event whether something happens to it, and what.

    Each draw comes from the given random numbers, in the order in which requests and events come: as long as only the
    test moves the time, the same seed gives the same run.
    """

    def __init__(self, random: Random, rate: float, injected: Counter[str], *, compact: Callable[[], None]) -> None:
        if not 0 <= rate <= 1:
            raise ValueError(f"rate is a probability, from 0 to 1, not {rate}")
        self._random = random
        self._rate = rate
        self._injected = injected
        self._compact = compact

    def failure(self, request: RecordedRequest) -> KubeError | None:
        """What a request is answered with instead of being carried out; now and then the history is compacted first."""
        if self._strikes():
            self._compact()
            self._injected[COMPACTION] += 1
        if not self._strikes():
            return None
        if request.verb == "list" and self._random.random() < 1 / len(_FAILURES):
            error: KubeError = statuses.expired()
        else:
            error = self._random.choice(_FAILURES)()
        self._injected[type(error).__name__] += 1
        return error

    def lost_answer(self, request: RecordedRequest) -> KubeError | None:
        """What the client gets instead of the answer to a write that was carried out."""
        if request.verb not in WRITES or not self._strikes():
            return None
        self._injected[LOST_ANSWER] += 1
        return TransportError("connection reset before the answer")

    def next_mishap(self) -> Mishap | None:
        """What happens to the next event of a watch."""
        if not self._strikes():
            return None
        mishap = self._random.choice(tuple(Mishap))
        self._injected[mishap] += 1
        return mishap

    def _strikes(self) -> bool:
        return self._random.random() < self._rate
