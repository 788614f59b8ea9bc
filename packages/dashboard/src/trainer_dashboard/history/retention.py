"""Forgets trainings that are over for long, or that take too much room."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from trainer.kube.clock import Clock
from trainer.kube.logger import get_logger
from trainer_dashboard.history.forgetting import forget_bytes, forget_older, give_back, measure
from trainer_dashboard.history.persistence import Persistence

log = get_logger(__name__)

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
    """Bytes of all trainings of the cluster, above which the namespaces that have most lose those that were over first.

    Default: 10 GiB.
    """


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
        forgotten = await self._forget_older() + await self._forget_bytes()
        if forgotten:
            await self._persistence.run(give_back)
            log.info("forgot trainings", number=forgotten)

    async def _forget_older(self) -> int:
        now, forgotten = self._clock.now().timestamp(), 0
        moment = now - self._options.seconds
        forget = partial(forget_older, cluster=self._cluster, moment=moment, now=now, limit=_AT_ONCE)
        while number := await self._persistence.run(forget):
            forgotten += number
        return forgotten

    async def _forget_bytes(self) -> int:
        """Bring each namespace to its share; one with too much that is not over takes nothing from the others."""
        sizes = await self._persistence.run(partial(measure, cluster=self._cluster)) or {}
        share, forgotten = share_of(sizes.values(), self._options.size), 0
        for namespace, size in sizes.items():
            excess = size - share
            while excess > 0:
                number, freed = await self._forget_some(namespace, excess)
                if not number:
                    log.warning(
                        "history is larger than it may be, and all that is left is not over, or in the cluster",
                        namespace=namespace,
                        bytes=excess,
                    )
                    break
                forgotten += number
                excess -= freed
        return forgotten

    async def _forget_some(self, namespace: str, excess: int) -> tuple[int, int]:
        now = self._clock.now().timestamp()
        forget = partial(
            forget_bytes, cluster=self._cluster, namespace=namespace, excess=excess, now=now, limit=_AT_ONCE
        )
        return await self._persistence.run(forget) or (0, 0)


def share_of(sizes: Iterable[int], total: int) -> int:
    """The most that each may have of a total, where those with less leave the rest of their share to the others."""
    share, ordered = total, sorted(sizes)
    for index, size in enumerate(ordered):
        share = total // (len(ordered) - index)
        if size > share:
            break
        total -= size
    return share
