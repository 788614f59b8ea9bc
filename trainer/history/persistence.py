"""Transactions that are repeated until the database takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import structlog

from trainer.history.errors import HistoryError, RefusedError
from trainer.kube.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from trainer.history.database import Database
    from trainer.kube.clock import Clock

_T = TypeVar("_T")

log = structlog.get_logger(__name__)

_RETRY = Backoff(initial=1.0, maximum=60.0, jitter=0.5)


class Persistence:
    """Waits out failures of the database, such as its restart; what it refuses for good is logged and left out."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def run(self, transaction: Callable[[Connection], _T]) -> _T | None:
        """The answer of a transaction; None where the database refuses what is written."""
        failures = 0
        while True:
            try:
                answer = await self._database.run(transaction)
            except RefusedError:
                log.exception("could not write history")
                return None
            except HistoryError as error:
                pause = _RETRY.pause(failures)
                log.warning("could not write history, trying again", error=str(error), pause=round(pause, 1))
                await self._clock.sleep(pause)
                failures += 1
            else:
                if failures:
                    log.info("history is written again")
                return answer
