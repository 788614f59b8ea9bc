"""Transactions that are repeated until the database takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from anyio import CancelScope
from sqlalchemy import Connection

from trainer.kube.backoff import Backoff
from trainer.kube.barrier import Barrier
from trainer.kube.clock import Clock
from trainer.kube.logger import get_logger
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.errors import HistoryError, RecordingEndedError, RefusedError

_T = TypeVar("_T")
_Entry = TypeVar("_Entry")

log = get_logger(__name__)

_RETRY = Backoff(initial=1.0, maximum=60.0, jitter=0.5)


class Persistence:
    """Waits out failures of the database, such as its restart; what it refuses for good is logged and left out.

    Where another process records the cluster by now, or the file of the database is lost, every call raises
    `RecordingEndedError`, which ends the recorder.
    Whoever is cancelled in a call keeps what was to be written, and writes it later: each transaction may be repeated.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._barrier = Barrier("could not write history", passing=(RecordingEndedError,))

    async def run(self, transaction: Callable[[Connection], _T], *, shielded: bool = False) -> _T | None:
        """The answer of a transaction; None where the database refuses what is written.

        Args:
            transaction: called with a connection.
            shielded: whether cancellation ends pauses alone, and no attempt.
        """
        try:
            return await self._until_taken(transaction, shielded=shielded)
        except RefusedError:
            log.exception("could not write history")
            return None

    async def write_all(
        self,
        write: Callable[[Connection, Sequence[_Entry]], _T],
        entries: Sequence[_Entry],
        key: Callable[[_Entry], object],
    ) -> list[tuple[Sequence[_Entry], _T]]:
        """Write entries in one transaction, or in several of fewer where some of them cannot be written.

        Args:
            write: called with a connection.
            entries: what is to be written.
            key: what identifies an entry in the log, where it is left out.

        Returns:
            The entries of each transaction with its answer, without the entries that cannot be written by themselves.
        """
        if len(entries) < 2:
            for entry in entries:
                with self._barrier.around(key(entry)):
                    return [(entries, await self._until_taken(lambda connection: write(connection, entries)))]
            return []
        try:
            return [(entries, await self._until_taken(lambda connection: write(connection, entries)))]
        except RecordingEndedError:
            raise
        except Exception:  # noqa: S110 - which one it is, and why, shows when it is written alone
            pass
        middle = len(entries) // 2
        halves = entries[:middle], entries[middle:]
        return [done for half in halves for done in await self.write_all(write, half, key)]

    async def _until_taken(self, transaction: Callable[[Connection], _T], *, shielded: bool = False) -> _T:
        failures = 0
        while True:
            try:
                with CancelScope(shield=shielded):
                    answer = await self._database.run(transaction)
            except (RefusedError, RecordingEndedError):
                raise
            except HistoryError as error:
                pause = _RETRY.pause(failures)
                log.warning("could not write history, trying again", error=str(error), pause=round(pause, 1))
                await self._clock.sleep(pause)
                failures += 1
            else:
                if failures:
                    log.info("history is written again")
                return answer
