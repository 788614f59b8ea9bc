"""How fast an autoscaler goes where metrics point (Kubernetes documentation, "Configurable scaling behavior")."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from trainer.kube.quantity import parse_quantity
from trainer_devcluster.controllers.horizontal_pod_autoscaler.replicas import Tolerance

if TYPE_CHECKING:
    from trainer.kube.objects import Object

_DOWN_WINDOW = 300
_PERCENT = {"type": "Percent", "value": 100, "periodSeconds": 15}
_DEFAULT_UP: Object = {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _PERCENT]}
_DEFAULT_DOWN: Object = {"policies": [_PERCENT]}
_LONGEST_WINDOW = 3600.0


class Verdict(NamedTuple):
    """A number of replicas, and what the conditions say about it."""

    replicas: int
    able_to_scale: tuple[str, str]
    """Reason and message of AbleToScale."""
    limited: tuple[str, str]
    """Reason and message of ScalingLimited."""
    is_limited: bool


class _Change(NamedTuple):
    at: float
    replicas: int


@dataclass(slots=True)
class History:
    """What an autoscaler remembers, as long as the process lives."""

    recommendations: list[_Change] = field(default_factory=list)
    changes: list[_Change] = field(default_factory=list)
    """How many replicas were added, or (negative) taken away."""

    def begin(self, current: int, now: float) -> None:
        """Take the size at the first look for a recommendation, so that nothing shrinks right away."""
        if not self.recommendations:
            self.recommendations.append(_Change(now, current))

    def scaled(self, before: int, after: int, now: float) -> None:
        """Take note of a change."""
        self.changes.append(_Change(now, after - before))

    def forget(self, now: float) -> None:
        """Drop what no window reaches back to; the latest recommendation stays."""
        self.recommendations = [each for each in self.recommendations if each.at > now - _LONGEST_WINDOW]
        self.changes = [each for each in self.changes if each.at > now - _LONGEST_WINDOW]


def tolerance_of(spec: Object) -> Tolerance:
    """`tolerance` of both directions of `spec.behavior`; 0.1 where it says nothing."""
    behavior, default = spec.get("behavior") or {}, Tolerance()
    up, down = ((behavior.get(name) or {}).get("tolerance") for name in ("scaleUp", "scaleDown"))
    return Tolerance(
        default.up if up is None else parse_quantity(up), default.down if down is None else parse_quantity(down)
    )


def settle(spec: Object, history: History, current: int, wanted: int, now: float) -> Verdict:
    """Where to go from `current` when metrics point to `wanted`.

    Args:
        spec: of the autoscaler.
        history: what has been recommended and done; the new recommendation is added.
        current: the present number of replicas.
        wanted: what metrics ask for.
        now: monotonic time in seconds.
    """
    pace = _Pace(spec, history, current, now)
    stable = pace.stabilize(wanted)
    if stable == wanted:
        able = ("ReadyForNewScale", "recommended size matches current size")
    elif wanted >= current:
        text = "recent recommendations were lower than current one, applying the lowest recent recommendation"
        able = ("ScaleUpStabilized", text)
    else:
        text = "recent recommendations were higher than current one, applying the highest recent recommendation"
        able = ("ScaleDownStabilized", text)
    history.recommendations.append(_Change(now, wanted))
    history.forget(now)
    replicas, reason = pace.limit(stable)
    return Verdict(replicas, able, (reason, _LIMITS[reason]), replicas != stable)


@dataclass(frozen=True, slots=True)
class _Pace:
    spec: Object
    history: History
    current: int
    now: float

    def stabilize(self, wanted: int) -> int:
        """The recent recommendation that changes least, up to the lowest or down to the highest of its window."""
        up, down = (rules.get("stabilizationWindowSeconds") for rules in (self._up, self._down))
        up_since, down_since = self.now - (up or 0), self.now - (_DOWN_WINDOW if down is None else down)
        recent = self.history.recommendations
        lowest = min([wanted, *(each.replicas for each in recent if each.at > up_since)])
        highest = max([wanted, *(each.replicas for each in recent if each.at > down_since)])
        return min(max(self.current, lowest), highest)

    def limit(self, wanted: int) -> tuple[int, str]:
        """What bounds and policies leave of it, and the reason."""
        most, least = self.spec["maxReplicas"], self.spec.get("minReplicas", 1)
        if wanted > self.current:
            rate = max(self.current, self._rate(self._up, upwards=True))
            if wanted > min(most, rate):
                return (rate, "ScaleUpLimit") if most > rate else (most, "TooManyReplicas")
        if wanted < self.current:
            rate = min(self.current, self._rate(self._down, upwards=False))
            if wanted < max(least, rate):
                return (rate, "ScaleDownLimit") if least < rate else (least, "TooFewReplicas")
        return wanted, "DesiredWithinRange"

    @property
    def _up(self) -> Object:
        return (self.spec.get("behavior") or {}).get("scaleUp") or _DEFAULT_UP

    @property
    def _down(self) -> Object:
        return (self.spec.get("behavior") or {}).get("scaleDown") or _DEFAULT_DOWN

    def _rate(self, rules: Object, *, upwards: bool) -> int:
        """How far the policies let it go now."""
        select = rules.get("selectPolicy") or "Max"
        if select == "Disabled":
            return self.current
        bounds = [self._bound(policy, upwards=upwards) for policy in rules.get("policies") or []]
        farthest = (select == "Max") == upwards
        return (max if farthest else min)(bounds, default=self.current)

    def _bound(self, policy: Object, *, upwards: bool) -> int:
        since = self.now - policy["periodSeconds"]
        start = self.current - sum(each.replicas for each in self.history.changes if each.at > since)
        if policy["type"] == "Pods":
            return int(start + policy["value"] if upwards else start - policy["value"])
        share = Decimal(policy["value"]) / 100
        return math.ceil(start * (1 + share)) if upwards else int(start * (1 - share))


_LIMITS = {
    "ScaleUpLimit": "the desired replica count is increasing faster than the maximum scale rate",
    "ScaleDownLimit": "the desired replica count is decreasing faster than the maximum scale rate",
    "TooManyReplicas": "the desired replica count is more than the maximum replica count",
    "TooFewReplicas": "the desired replica count is less than the minimum replica count",
    "DesiredWithinRange": "the desired count is within the acceptable range",
}
