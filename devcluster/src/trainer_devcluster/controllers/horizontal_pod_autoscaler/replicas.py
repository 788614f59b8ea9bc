"""How many replicas a metric asks for (Kubernetes documentation, "Algorithm details")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

_ONE = Decimal(1)
_TOLERANCE = Decimal("0.1")
"""By how much a metric may miss its target without consequences, as a part of one."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A metric of pods."""

    used: Mapping[str, Decimal]
    """By name of the pods that are up and tell it."""
    requested: Mapping[str, Decimal]
    """What of each pod the target is a part of: its request, or one for a target that is an amount."""
    unready: AbstractSet[str] = frozenset()
    """Pods that are not up yet."""
    missing: AbstractSet[str] = frozenset()
    """Pods that are up and do not tell the metric."""

    def ratio(self, target: Decimal) -> Decimal:
        """How many times the target it is."""
        return sum(self.used.values(), Decimal()) / (
            sum((self.requested[pod] for pod in self.used), Decimal()) * target
        )


def replicas_for(measured: Measured, target: Decimal, current: int) -> int:
    """The number of replicas that brings the average to the target.

    Pods that are not up yet are taken to use nothing, and those of which nothing is known to speak against the change,
    so that it is made with caution.

    Args:
        measured: the metric; at least one pod tells it.
        target: for each pod, as a part of what is `requested`.
        current: the present number.
    """
    ratio = measured.ratio(target)
    if not measured.missing and not (measured.unready and ratio > _ONE):
        return current if _is_close(ratio) else math.ceil(ratio * len(measured.used))
    used = dict(measured.used)
    if ratio < _ONE:
        used |= {pod: measured.requested[pod] * max(_ONE, target) for pod in measured.missing}
    else:
        used |= dict.fromkeys(measured.missing, Decimal())
        used |= dict.fromkeys(measured.unready, Decimal())
    cautious = Measured(used, measured.requested).ratio(target)
    if _is_close(cautious) or (ratio < _ONE) != (cautious < _ONE):
        return current
    wanted = math.ceil(cautious * len(used))
    return current if (cautious < _ONE) == (wanted > current) else wanted


def replicas_for_total(usage: Decimal, target: Decimal, current: int, ready: int) -> int:
    """The number of replicas for a metric that is not one of pods, with a target for all of them."""
    ratio = usage / target
    if _is_close(ratio):
        return current
    return math.ceil(ratio * ready)


def replicas_for_share(usage: Decimal, target: Decimal, current: int) -> int:
    """The number of replicas for a metric that is not one of pods, with a target for each of them."""
    if current and _is_close(usage / (target * current)):
        return current
    return math.ceil(usage / target)


def _is_close(ratio: Decimal) -> bool:
    return _ONE - _TOLERANCE <= ratio <= _ONE + _TOLERANCE
