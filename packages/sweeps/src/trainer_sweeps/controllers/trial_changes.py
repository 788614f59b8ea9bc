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

_owners = owner_key(OPTIMIZATION_JOBS)


class TrialChanges:
    """A predicate of TrainJobs: whether the sweep has to look at the change.

    Args:
        sweeps: tells which of them prune; only to these another point of a curve matters.
    """

    def __init__(self, sweeps: Lister) -> None:
        self._sweeps = sweeps

    def __call__(self, old: CachedObject | None, new: CachedObject | None) -> bool:
        """Whether it is new, gone, changed, or has ended, or its curve has changed and counts."""
        if old is None or new is None:
            return True
        owners = _owners(new)
        if not owners:
            return bool(_owners(old))
        if (old.generation, old.meta.deletion_timestamp) != (new.generation, new.meta.deletion_timestamp):
            return True
        if _has_ended(old) != _has_ended(new):
            return True
        before, after = old.annotations, new.annotations
        if before == after:
            return False
        if before.get(CURVE) == after.get(CURVE) or _without_curve(before) != _without_curve(after):
            return True
        return shows_final_curve(after, new.uid) or any(self._prunes(owner) for owner in owners)

    def _prunes(self, key: ObjectKey) -> bool:
        sweep = self._sweeps.peek(key)
        return sweep is not None and _PRUNES in sweep.raw


def _has_ended(train_job: CachedObject) -> bool:
    if not any(each in train_job.raw for each in _ENDS_IN_JSON):
        return False  # as nearly always, without decoding anything
    return any(is_condition_true(train_job, each) for each in _ENDS)


def _without_curve(annotations: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in annotations.items() if name != CURVE}
