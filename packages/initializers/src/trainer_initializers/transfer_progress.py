"""How far a transfer is, written as lines of the progress protocol (docs/progress.md)."""

from __future__ import annotations

import threading
import time

from trainer.progress.report import report

_UNIT = 1 << 20
"""Steps are MiB: bytes of a model do not fit into the 31 bits of a step."""


class TransferProgress:
    """Counts bytes and reports them; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = self._done = 0
        self._is_known = True
        self._started = time.monotonic()

    def start(self, total: int, *, is_known: bool = True) -> None:
        """Set the number of bytes to transfer; `is_known` is False where the server does not tell all sizes."""
        with self._lock:
            self._total, self._done, self._is_known, self._started = total, 0, is_known, time.monotonic()
            self._report()

    def add(self, count: int) -> None:
        """Add to the number of transferred bytes."""
        with self._lock:
            self._done += count
            self._report()

    def _report(self) -> None:
        seconds = time.monotonic() - self._started
        speed = {"mebibytes_per_second": round(self._done / _UNIT / seconds, 1)} if seconds >= 1 else None
        total = -(-self._total // _UNIT) if self._is_known else 0
        done = self._done // _UNIT if self._done < self._total or not total else total
        report(current_step=done, total_steps=total or None, train_metrics=speed)
