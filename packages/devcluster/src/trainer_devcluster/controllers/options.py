"""What the controllers share: their options, the events that they emit, and when finished objects are deleted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import Object, find_condition, is_condition_true
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates

EventType: TypeAlias = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """Options of the controllers."""

    pod_backoff_base: float = 10.0
    """Seconds before a Job first replaces a failed pod, doubled with each further failure; 10 as in Kubernetes."""
    pod_backoff_cap: float = 600.0
    """Longest pause between two replacements, in seconds; 10 minutes as in Kubernetes."""
    pod_batch: float = 1.0
    """Seconds for which a Job with a pod failure policy waits, once too many pods have failed, for others that fail at
    the same time and that a rule matches; 1 as in Kubernetes, whose Job controller gathers the changes of pods."""
    workers: int = 4
    """Concurrent reconciles of each controller; a laptop has few cores."""
    namespace_poll: float = 0.2
    """Seconds between two looks at a namespace that is being emptied; pods need their grace period."""
    feature_gates: FeatureGates = DEFAULT_FEATURE_GATES
    """What the controllers do beyond the usual. Default: what the gates themselves have as default."""


@dataclass(frozen=True, slots=True)
class ReconcileEvent:
    """An event about the reconciled object."""

    type: EventType
    reason: str
    message: str


def time_to_live(obj: Object, terminal_conditions: Iterable[str], now: datetime) -> float | None:
    """Seconds until the object is to be deleted, zero or less when it is due; None while it stays.

    The time counts from the transition of the terminal condition.
    """
    ttl = obj["spec"].get("ttlSecondsAfterFinished")
    finished = next((kind for kind in terminal_conditions if is_condition_true(obj, kind)), None)
    if ttl is None or finished is None:
        return None
    condition = find_condition(obj, finished)
    assert condition is not None
    return float(ttl) - (now - parse_timestamp(condition["lastTransitionTime"])).total_seconds()
