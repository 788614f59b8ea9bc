"""How fast an autoscaler scales: at the default pace of Kubernetes ("Configurable scaling behavior")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from trainer.kube.objects import Object

_DOWN_WINDOW = 300.0
"""Seconds in which no recommendation may have been higher before an autoscaler scales down."""
_MOST_PODS = 4
"""It adds so many pods at a look, or as many as there were, whichever is more; it removes any number."""


class ScaleDecision(NamedTuple):
    """A number of replicas, and what the conditions say about it."""

    replicas: int
    able_to_scale: tuple[str, str]
    """Reason and message of AbleToScale."""
    limited: tuple[str, str]
    """Reason and message of ScalingLimited."""
    is_limited: bool


class _Recommendation(NamedTuple):
    at: float
    replicas: int


@dataclass(slots=True)
class Recommendations:
    """The past recommendations for an autoscaler, kept in memory only."""

    recommendations: list[_Recommendation] = field(default_factory=list)

    def begin(self, current: int, now: float) -> None:
        """Take the size at the first look for a recommendation, so that nothing shrinks right away."""
        if not self.recommendations:
            self.recommendations.append(_Recommendation(now, current))

    def forget(self, now: float) -> None:
        """Drop what no window reaches back to; the latest recommendation stays."""
        self.recommendations = [each for each in self.recommendations if each.at > now - _DOWN_WINDOW]


def settle(spec: Object, history: Recommendations, current: int, wanted: int, now: float) -> ScaleDecision:
    """Where to go from `current` when metrics point to `wanted`.

    Args:
        spec: of the autoscaler.
        history: what has been recommended; the new recommendation is added.
        current: the present number of replicas.
        wanted: what metrics ask for.
        now: monotonic time in seconds.
    """
    highest = max([wanted, *(each.replicas for each in history.recommendations if each.at > now - _DOWN_WINDOW)])
    stable = min(max(current, wanted), highest)
    able = ("ReadyForNewScale", "recommended size matches current size")
    if stable != wanted:
        text = "recent recommendations were higher than current one, applying the highest recent recommendation"
        able = ("ScaleDownStabilized", text)
    history.recommendations.append(_Recommendation(now, wanted))
    history.forget(now)
    replicas, reason = _limit(spec, current, stable)
    return ScaleDecision(replicas, able, (reason, _LIMITS[reason]), replicas != stable)


def _limit(spec: Object, current: int, wanted: int) -> tuple[int, str]:
    """What the bounds and the pace leave of it, and the reason."""
    most, least = spec["maxReplicas"], spec.get("minReplicas", 1)
    rate = max(current + _MOST_PODS, current * 2)
    if wanted > min(most, rate) and wanted > current:
        return (rate, "ScaleUpLimit") if most > rate else (most, "TooManyReplicas")
    if wanted < min(current, least):
        return least, "TooFewReplicas"
    return wanted, "DesiredWithinRange"


_LIMITS = {
    "ScaleUpLimit": "the desired replica count is increasing faster than the maximum scale rate",
    "TooManyReplicas": "the desired replica count is more than the maximum replica count",
    "TooFewReplicas": "the desired replica count is less than the minimum replica count",
    "DesiredWithinRange": "the desired count is within the acceptable range",
}
