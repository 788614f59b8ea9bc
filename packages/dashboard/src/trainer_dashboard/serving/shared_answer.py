"""An answer that costs much and is shared by all who ask for it within some seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
import msgspec

from trainer.kube.clock import Clock
from trainer.kube.objects import Object


@dataclass(slots=True)
class SharedAnswer:
    """The last answer of one question, as JSON, which takes a third of its memory; failures are shared with nobody."""

    clock: Clock
    seconds: float
    """How long an answer is good for."""
    _lock: anyio.Lock = field(default_factory=anyio.Lock, init=False)
    _answer: msgspec.Raw | None = field(default=None, init=False)
    _until: float = field(default=0.0, init=False)

    async def get(self, ask: Callable[[], Awaitable[Object]]) -> msgspec.Raw:
        """The last answer, or a new one; who needs it meanwhile waits for it.

        Raises:
            KubeError: of the question.
        """
        async with self._lock:
            self.forget_if_old()
            answer = self._answer
            if answer is None:
                answer = self._answer = msgspec.Raw(msgspec.json.encode(await ask()))
                self._until = self.clock.monotonic() + self.seconds
            return answer

    def forget_if_old(self) -> None:
        """Keep nothing that will not be given any more."""
        if self.clock.monotonic() >= self._until:
            self._answer = None
