"""Conditions of a v1 job, kept as the Training Operator keeps them: the one that changed last comes last.

`kubectl get` shows the type of the last one as the state of the job, and the SDK takes the types that are True.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainer_v1_jobs.api.status import ConditionType, JobCondition

_ENDS: tuple[ConditionType, ...] = ("Succeeded", "Failed")
_RIVALS: dict[ConditionType, ConditionType] = {"Running": "Restarting", "Restarting": "Running"}
"""Conditions that take each other's place."""


class JobConditions:
    """The conditions of one job; `now` is the time of changes, as RFC 3339."""

    def __init__(self, present: Iterable[JobCondition], now: str) -> None:
        self._conditions = list(present)
        self._now = now

    def set(self, type_: ConditionType, reason: str, message: str, *, holds: bool = True) -> None:
        """Put a condition at the end, unless it has this status and reason already.

        Running and Restarting take each other's place, and an end makes Running False.
        """
        status = "True" if holds else "False"
        present = self.get(type_)
        if present is not None and (present.status, present.reason) == (status, reason):
            return
        is_same = present is not None and present.status == status
        since = present.last_transition_time if present is not None and is_same else self._now
        self.remove(type_)
        if (rival := _RIVALS.get(type_)) is not None:
            self.remove(rival)
        if type_ in _ENDS and holds:
            self._conditions = [self._ended(each) for each in self._conditions]
        self._conditions.append(
            JobCondition(
                type=type_,
                status="True" if holds else "False",
                reason=reason,
                message=message,
                last_update_time=self._now,
                last_transition_time=since,
            )
        )

    def remove(self, type_: ConditionType) -> None:
        """Drop a condition if it is there."""
        self._conditions = [each for each in self._conditions if each.type != type_]

    def get(self, type_: ConditionType) -> JobCondition | None:
        """The condition of a type."""
        return next((each for each in self._conditions if each.type == type_), None)

    def is_true(self, type_: ConditionType) -> bool:
        """Whether a condition holds."""
        found = self.get(type_)
        return found is not None and found.status == "True"

    def all(self) -> list[JobCondition]:
        """The conditions in their order."""
        return list(self._conditions)

    def _ended(self, condition: JobCondition) -> JobCondition:
        if condition.type != "Running" or condition.status == "False":
            return condition
        times = {"last_update_time": self._now, "last_transition_time": self._now}
        return condition.model_copy(update={"status": "False", **times})
