"""The status of a JobSet while a reconcile works on it."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime

from trainer.kube.clock import timestamp
from trainer.kube.objects import Object, find_condition
from trainer_devcluster.controllers.options import EventType, ReconcileEvent

_EXCLUSIVE = {"StartupPolicyInProgress": "StartupPolicyCompleted", "StartupPolicyCompleted": "StartupPolicyInProgress"}
"""Conditions of which at most one is true."""


class StatusDraft:
    """A copy of the stored status, and the events that are due once it is stored."""

    def __init__(self, jobset: Object, now: datetime) -> None:
        self.status: Object = deepcopy(jobset.get("status") or {})
        # Written even when zero: the field is always serialised.
        self.status.setdefault("restarts", 0)
        self.events: list[ReconcileEvent] = []
        self._now = timestamp(now)

    def set_true(self, kind: str, reason: str, message: str, event_type: EventType = "Normal") -> None:
        """Make a condition true, its opposite false, and announce it; nothing happens when it says so already."""
        condition = self._find(kind)
        opposite = self._find(_EXCLUSIVE.get(kind, ""))
        if opposite is not None and opposite["status"] == "True":
            opposite |= {"status": "False", "lastTransitionTime": self._now}
        if condition is None:
            condition = {"type": kind}
            self.status.setdefault("conditions", []).append(condition)
        self._write(condition, "True", reason, message, event_type)

    def set_false(self, kind: str, reason: str, message: str) -> None:
        """Make a condition false and announce it; a condition that was never true is not added."""
        condition = self._find(kind)
        if condition is not None:
            self._write(condition, "False", reason, message, "Normal")

    def announce(self, event_type: EventType, reason: str, message: str) -> None:
        """Have an event recorded once the status is stored."""
        self.events.append(ReconcileEvent(event_type, reason, message))

    def _find(self, kind: str) -> Object | None:
        return find_condition({"status": self.status}, kind)

    def _write(self, condition: Object, value: str, reason: str, message: str, event_type: EventType) -> None:
        wanted = {"status": value, "reason": reason, "message": message}
        if wanted.items() <= condition.items():
            return
        if condition.get("status") != value:
            condition["lastTransitionTime"] = self._now
        condition |= wanted
        self.announce(event_type, reason, message)
