"""The status of an autoscaler while a reconcile works on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer_devcluster.controllers.horizontal_pod_autoscaler.metrics import Proposal

ABLE_TO_SCALE, SCALING_ACTIVE, SCALING_LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"


class StatusDraft:
    """What the status will be.

    Args:
        autoscaler: whose status it is.
        now: the time, for what changes.
    """

    def __init__(self, autoscaler: Object, now: str) -> None:
        self._before: Object = autoscaler.get("status") or {}
        self._now = now
        self._fields: Object = {}
        self._conditions: Object = {entry["type"]: entry for entry in self._before.get("conditions") or []}

    def set_condition(self, kind: str, reason: str, message: str, *, holds: bool) -> None:
        """Say whether something holds, and why."""
        present, status = self._conditions.get(kind) or {}, "True" if holds else "False"
        since = present.get("lastTransitionTime") if present.get("status") == status else None
        self._conditions[kind] = {
            "type": kind,
            "status": status,
            "lastTransitionTime": since or self._now,
            "reason": reason,
            "message": message,
        }

    def set_sizes(self, current: int, desired: int, *, rescaled: bool) -> None:
        """Say how many replicas there are and shall be."""
        self._fields |= {"currentReplicas": current, "desiredReplicas": desired}
        if rescaled:
            self._fields["lastScaleTime"] = self._now

    def set_metrics(self, proposals: list[Proposal]) -> None:
        """Say what was measured."""
        self._fields["currentMetrics"] = [proposal.status for proposal in proposals] or None

    @property
    def status(self) -> Object:
        """The whole status."""
        merged = self._before | self._fields | {"conditions": list(self._conditions.values())}
        # What Kubernetes requires even of an autoscaler that has never got to know its target.
        filled = {"desiredReplicas": 0} | merged
        return {name: value for name, value in filled.items() if value is not None}

    @property
    def is_news(self) -> bool:
        """Whether it differs from what is stored."""
        return self.status != self._before
