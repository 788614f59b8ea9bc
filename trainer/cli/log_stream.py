"""A container's log as whole lines, each once, across broken connections."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from trainer.kube.client import LogOptions
from trainer.kube.clock import timestamp
from trainer.kube.errors import (
    ApiError,
    BadRequestError,
    ForbiddenError,
    NotFoundError,
    TransportError,
    UnauthorizedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.kube.client import Client
    from trainer.kube.clock import Clock

_RETRY_SECONDS = 0.5
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)")


class Instant(NamedTuple):
    """A point in time with the nanoseconds that `datetime` lacks."""

    seconds: int
    nanoseconds: int

    @classmethod
    def parse(cls, text: str) -> Instant | None:
        """The instant that an RFC 3339 timestamp names; None when the text is something else."""
        match = _STAMP.fullmatch(text)
        if match is None:
            return None
        date_time, fraction, zone = match.groups()
        moment = datetime.fromisoformat(date_time + zone)
        return cls(int(moment.timestamp()), int((fraction or "")[:9].ljust(9, "0")))


@dataclass(slots=True)
class _Position:
    """How far a log has been read: the instant of the last line, and how many lines in a row carry it."""

    instant: Instant | None = None
    count: int = 0

    @property
    def since_time(self) -> str | None:
        if self.instant is None:
            return None
        return timestamp(datetime.fromtimestamp(self.instant.seconds, UTC))

    def advance(self, instant: Instant | None) -> None:
        if instant is None:
            return
        self.count = self.count + 1 if instant == self.instant else 1
        self.instant = instant


@dataclass(slots=True)
class _Repeats:
    """Recognises the lines that a reconnected stream sends again; `sinceTime` is precise to the second only."""

    until: Instant | None
    count: int
    _over: bool = field(default=False, init=False)

    def includes(self, instant: Instant | None) -> bool:
        if self._over or self.until is None or instant is None or instant > self.until:
            self._over = True
            return False
        if instant < self.until:
            return True
        self.count -= 1
        self._over = self.count < 0
        return not self._over


@dataclass(frozen=True, slots=True)
class ContainerLog:
    """The log of one container, over all its restarts."""

    namespace: str
    pod: str
    container: str

    async def follow(
        self, client: Client, emit: Callable[[str], None], *, is_finished: Callable[[], bool], clock: Clock
    ) -> None:
        """Pass every line to `emit` until the container has ended for good and its log is read, or its pod is gone.

        `is_finished` says whether the container has ended and will not be restarted, as far as known.

        Raises:
            ApiError: reading the log is not allowed.
        """
        position = _Position()
        while True:
            # The stream may have been cut just before the end: only a read that began after the end is the last one.
            finished = is_finished()
            try:
                await self._read(client, position, emit, finished=finished)
            except NotFoundError:
                return
            except (UnauthorizedError, ForbiddenError):
                raise
            except (TransportError, ApiError) as error:
                if finished and isinstance(error, BadRequestError):  # it ended without ever having started
                    return
                await clock.sleep(_RETRY_SECONDS)
            else:
                if finished:
                    return
                if not is_finished():
                    await clock.sleep(_RETRY_SECONDS)

    async def _read(self, client: Client, position: _Position, emit: Callable[[str], None], *, finished: bool) -> None:
        options = LogOptions(self.container, follow=not finished, timestamps=True, since_time=position.since_time)
        repeats = _Repeats(position.instant, position.count)

        def handle(raw: bytes) -> None:
            line = raw.decode(errors="replace").rstrip("\r")
            stamp, _, text = line.partition(" ")
            instant = Instant.parse(stamp)
            if repeats.includes(instant):
                return
            position.advance(instant)
            emit(text if instant else line)

        rest = b""
        async with client.logs(self.pod, self.namespace, options) as chunks:
            async for chunk in chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    handle(line)
        if rest and finished:  # otherwise it is half a line, and the next read begins with it
            handle(rest)
