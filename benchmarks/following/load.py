"""What is put on the manager."""

from __future__ import annotations

import time
from enum import StrEnum

import msgspec

from trainer.progress.controller import ProgressOptions

MESSAGE_TOTAL = 2**31 - 1
"""`totalSteps` of every message; its `currentStep` is when the line was due, in milliseconds since the load's epoch."""


class Mode(StrEnum):
    """How lines travel."""

    LINES = "lines"
    """Each is a chunk of HTTP and a record of TLS, as an API server passes on what a kubelet writes line by line."""
    BATCHES = "batches"
    """What was written within 50 ms comes together, as from containers that flush now and then."""
    FLOOD = "flood"
    """As fast as the manager takes it, in batches; for what one core can do at most."""


class Load(msgspec.Struct, frozen=True):
    """What is put on the manager."""

    jobs: int = 1_000
    lines_per_second: float = 100.0
    """Of each log, except in a flood."""
    lines_per_message: int = 100
    """Every so manieth line tells of the progress."""
    mode: Mode = Mode.LINES
    throttle: float = 5.0
    """Seconds between two writes of one status."""
    pace: float = ProgressOptions().read_interval
    """Seconds between two reads of one log."""
    epoch: float = 0.0
    """Unix time at which the load was made."""

    def milliseconds(self) -> int:
        """The present moment, as in messages."""
        return int((time.time() - self.epoch) * 1000)
