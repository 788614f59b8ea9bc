"""Events that a reconcile decides on and that are recorded once what they tell is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

EventType: TypeAlias = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class Announcement:
    """An event about the reconciled object."""

    type: EventType
    reason: str
    message: str
