"""Which changes of a TrainJob matter to its sweep.

The progress of each trial is written every few seconds, and there may be a hundred of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trainer.api.metric_curve import CURVE, shows_final_curve
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.api.trainjob_status import ConditionType
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.store import Lister
from trainer.kube.controller.handlers import owner_key
from trainer.kube.objects import ObjectKey, is_condition_true

_ENDS: Final = (ConditionType.COMPLETE, ConditionType.FAILED)
_ENDS_IN_JSON: Final = tuple(f'"{each}"'.encode() for each in _ENDS)
_PRUNES: Final = b'"pruneAlgorithm"'

owners_of: Final = owner_key(OPTIMIZATION_JOBS)


def matters(old: CachedObject | None, new: CachedObject | None) -> bool:
    """Whether a trial is new, gone, changed, or has ended, or its curve is complete."""
    if old is None or new is None:
        return True
    if not owners_of(new):
        return bool(owners_of(old))
    if (old.generation, old.meta.deletion_timestamp) != (new.generation, new.meta.deletion_timestamp):
        return True
    if _has_ended(old) != _has_ended(new):
        return True
    before, after = old.annotations, new.annotations
    if before == after:
        return False
    return _without_curve(before) != _without_curve(after) or shows_final_curve(after, new.uid)


class AnotherPoint:
    """A predicate of TrainJobs: whether the curve of a trial has changed, and its sweep prunes.

    Args:
        sweeps: tells which of them prune.
    """

    def __init__(self, sweeps: Lister) -> None:
        self._sweeps = sweeps

    def __call__(self, old: CachedObject | None, new: CachedObject | None) -> bool:
        """Whether the sweep has to look at the curve again."""
        if old is None or new is None or not any(self._prunes(owner) for owner in owners_of(new)):
            return False
        return old.annotations.get(CURVE) != new.annotations.get(CURVE)

    def _prunes(self, key: ObjectKey) -> bool:
        sweep = self._sweeps.peek(key)
        return sweep is not None and _PRUNES in sweep.raw


def _has_ended(train_job: CachedObject) -> bool:
    if not any(each in train_job.raw for each in _ENDS_IN_JSON):
        return False  # as nearly always, without decoding anything
    return any(is_condition_true(train_job, each) for each in _ENDS)


def _without_curve(annotations: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in annotations.items() if name != CURVE}
