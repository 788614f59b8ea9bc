"""Conditions that remember since when they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from trainer.api.metadata import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable

MESSAGE_LIMIT = 32768
"""Characters of a condition's message (Kubernetes `metav1.Condition`)."""

_STATUSES: dict[bool | None, Literal["True", "False", "Unknown"]] = {True: "True", False: "False", None: "Unknown"}


class Conditions:
    """A list of conditions, one of each type; setting one keeps its transition time unless its status changes.

    Args:
        conditions: those that there are.
        now: transition time of those whose status changes.
        generation: `metadata.generation` of what the new ones are derived from; None when it has none.
    """

    def __init__(self, conditions: Iterable[Condition], now: str, generation: int | None = None) -> None:
        self._by_type = {condition.type: condition for condition in conditions}
        self._now = now
        self._generation = generation

    def get(self, condition_type: str) -> Condition | None:
        """The condition of this type."""
        return self._by_type.get(condition_type)

    def is_true(self, condition_type: str) -> bool:
        """Whether the condition is there and holds."""
        condition = self._by_type.get(condition_type)
        return condition is not None and condition.status == "True"

    def is_false(self, condition_type: str) -> bool:
        """Whether the condition is there and does not hold."""
        condition = self._by_type.get(condition_type)
        return condition is not None and condition.status == "False"

    def set(self, condition_type: str, *, holds: bool | None, reason: str, message: str) -> None:
        """Add the condition or change it in its place; `holds` is None when that is not known."""
        status = _STATUSES[holds]
        previous = self._by_type.get(condition_type)
        since = previous.last_transition_time if previous and previous.status == status else self._now
        self._by_type[condition_type] = Condition(
            type=condition_type,
            status=status,
            reason=reason,
            message=message[:MESSAGE_LIMIT],
            last_transition_time=since,
            observed_generation=self._generation,
        )

    def to_list(self) -> list[Condition]:
        """The conditions in the order in which they were first set."""
        return list(self._by_type.values())
