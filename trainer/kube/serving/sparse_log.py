"""Sparse log: what peers do wrong, written at most once in a while, since they decide how often they do it."""

from __future__ import annotations

from trainer.kube.clock import Clock
from trainer.kube.logger import get_logger

log = get_logger(__name__)

SPARSE = 10.0
"""Seconds between two lines."""
LONGEST = 200
"""Characters of a text, which may quote what was sent."""


class SparseLog:
    """Writes one kind of warning; a line says how many there have been since the line before, as `times`.

    `fields` are part of every line.
    """

    def __init__(self, event: str, *, clock: Clock, **fields: str) -> None:
        self._event = event
        self._clock = clock
        self._fields = fields
        self._unwritten = 0
        self._written_at = clock.monotonic() - SPARSE

    def warning(self, **fields: str | int) -> None:
        """Write a line with these fields, or count it for the next one."""
        self._unwritten += 1
        now = self._clock.monotonic()
        if now - self._written_at >= SPARSE:
            cut = {name: value[:LONGEST] if isinstance(value, str) else value for name, value in fields.items()}
            log.warning(self._event, **self._fields, **cut, times=self._unwritten)
            self._written_at, self._unwritten = now, 0
