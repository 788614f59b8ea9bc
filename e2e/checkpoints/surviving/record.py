"""What a training of `test_survival.py` records of its steps, over all its pods, and how slowly it makes them.

The record lies beside the checkpoints, or in RECORD. The first SLOW_RUNS runs (default 1) of a training that may be
interrupted are slow, most of all from its step `THIRD` on, so that a test can interrupt it there.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

STEPS = 30
THIRD = 10
STARTED = "started"
"""The line with which a run begins; other lines are steps with their losses."""


class Record:
    """The record of one rank."""

    def __init__(self, rank: int) -> None:
        directory = os.environ.get("TRAINER_CHECKPOINT_DIR")
        self._file = Path(directory or os.environ["RECORD"]) / f"record-{rank}"
        runs = self._file.read_text().count(STARTED) if self._file.exists() else 0
        self.is_first = runs == 0
        self._is_slow = directory is not None and runs < int(os.environ.get("SLOW_RUNS", "1"))
        self._write(STARTED)

    def step(self, step: int, loss: float) -> None:
        """Take note of a completed step."""
        self._write(f"{step} {loss!r}")
        if self._is_slow:
            time.sleep(1 if step >= THIRD else 0.2)

    def _write(self, line: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{line}\n")
