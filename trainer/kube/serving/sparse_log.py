"""Sparse log: warnings whose number peers decide, written at most once in a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from trainer.kube.clock import Clock

log = structlog.get_logger(__name__)

SPARSE = 10.0
"""Seconds between two lines."""
LONGEST = 200
"""Characters of a text, which may quote what was sent."""


class SparseLog:
    """Writes one kind of warning; a line says how many there have been since the line before, as `times`.

    Args:
        event: the text of the warning.
        clock: for the pauses between lines.
        fields: part of every line.
    """

    def __init__(self, event: str, *, clock: Clock, **fields: str) -> None:
        self._event = event
        self._clock = clock
        self._fields = fields
        self._untold = 0
        self._told = clock.monotonic() - SPARSE

    def warning(self, **fields: str | int) -> None:
        """Write a line with these fields, or count it for the next one."""
        self._untold += 1
        now = self._clock.monotonic()
        if now - self._told >= SPARSE:
            cut = {name: value[:LONGEST] if isinstance(value, str) else value for name, value in fields.items()}
            log.warning(self._event, **self._fields, **cut, times=self._untold)
            self._told, self._untold = now, 0
