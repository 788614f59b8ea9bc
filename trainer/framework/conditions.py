"""Conditions that remember since when they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from trainer.api.metadata import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable


class Conditions:
    """A list of conditions, one of each type; setting one keeps its transition time unless its status changes."""

    def __init__(self, conditions: Iterable[Condition], now: str) -> None:
        self._by_type = {condition.type: condition for condition in conditions}
        self._now = now

    def is_true(self, condition_type: str) -> bool:
        """Whether the condition is there and holds."""
        condition = self._by_type.get(condition_type)
        return condition is not None and condition.status == "True"

    def set(self, condition_type: str, *, holds: bool, reason: str, message: str) -> None:
        """Add the condition or change it in its place."""
        status: Literal["True", "False"] = "True" if holds else "False"
        previous = self._by_type.get(condition_type)
        since = previous.last_transition_time if previous and previous.status == status else self._now
        self._by_type[condition_type] = Condition(
            type=condition_type,
            status=status,
            reason=reason,
            message=message,
            last_transition_time=since,
        )

    def to_list(self) -> list[Condition]:
        """The conditions in the order in which they were first set."""
        return list(self._by_type.values())
