"""How long a finished object stays (`spec.ttlSecondsAfterFinished` of Jobs and JobSets)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.clock import parse_timestamp
from trainer.kube.objects import find_condition, is_condition_true

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trainer.kube.objects import Object


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
