"""What a trial yields: named numbers with units, and what it takes to yield them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """How to read a number; only rates are better when they are higher."""

    BYTES = "bytes"
    SECONDS = "seconds"
    PER_SECOND = "per second"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number."""

    name: str
    value: float
    unit: Unit


class Feature(StrEnum):
    """What a trial asks of a library, beyond watching one resource."""

    PAGED_LIST = "paged list"
    STREAMED_LIST = "streamed list"
    WORK_QUEUE = "work queue"
    CONCURRENCY = "concurrency"
