"""Forgets trainings that are over for long, or that take too much room."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog

from trainer.history.forgetting import forget_bytes, forget_older, give_back, measure

if TYPE_CHECKING:
    from trainer.history.persistence import Persistence
    from trainer.kube.clock import Clock

log = structlog.get_logger(__name__)

DAY = 86400.0
_PERIOD = 3600.0
"""Seconds between two looks."""
_AT_ONCE = 200
"""Trainings in one transaction, so that writers do not wait for long."""


@dataclass(frozen=True, slots=True)
class RetentionOptions:
    """What is forgotten, never of a training that is not over.

    Of a TrainJob that is still in the cluster the row stays until it is deleted: it would be recorded again.
    """

    seconds: float = 365 * DAY
    """Since the training ended, or was deleted before its end. Default: a year."""
    size: int = 10 * 1024**3
    """Bytes of all trainings of the cluster, above which those go that were over first. Default: 10 GiB."""


class Retention:
    """Looks each hour at the trainings of one cluster."""

    def __init__(self, persistence: Persistence, options: RetentionOptions, cluster: str, clock: Clock) -> None:
        self._persistence = persistence
        self._cluster = cluster
        self._options = options
        self._clock = clock

    async def run(self) -> None:
        """Forget until cancelled."""
        while True:
            await self.look()
            await self._clock.sleep(_PERIOD)

    async def look(self) -> None:
        """Forget what is to be forgotten now."""
        now = self._clock.now().timestamp()
        moment = now - self._options.seconds
        forgotten, cluster = 0, self._cluster
        forget = partial(forget_older, cluster=cluster, moment=moment, now=now, limit=_AT_ONCE)
        while number := await self._persistence.run(forget):
            forgotten += number
        excess = (await self._persistence.run(partial(measure, cluster=cluster)) or 0) - self._options.size
        while excess > 0:
            forget_some = partial(forget_bytes, cluster=cluster, excess=excess, now=now, limit=_AT_ONCE)
            answer = await self._persistence.run(forget_some)
            if answer is None or not answer[0]:
                log.warning(
                    "history is larger than it may be, and all that is left is not over, or in the cluster",
                    bytes=excess,
                )
                break
            forgotten += answer[0]
            excess -= answer[1]
        if forgotten:
            await self._persistence.run(give_back)
            log.info("forgot trainings", number=forgotten)
