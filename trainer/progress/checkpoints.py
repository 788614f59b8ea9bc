"""The last complete checkpoint in `trainerStatus`: it is of the TrainJob, while all else there is of one run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from trainer.api.trainjob_status import LONGEST_CHECKPOINT_PATH, Checkpoint
from trainer.kube.objects import Object
from trainer.kube.podlogs.instant import Instant

_FIELD: Final = "checkpoint"


def path_problem(path: str) -> str | None:
    """The rule that the path of a checkpoint breaks; None if it leads from the directory of all to one of them."""
    if len(path) > LONGEST_CHECKPOINT_PATH:
        return f"must be no more than {LONGEST_CHECKPOINT_PATH} characters"
    if not path.isprintable():
        return "must consist of printable characters"
    if not path or path.startswith("/") or ".." in path.split("/"):
        return "must be a path within the directory of all checkpoints"
    return None


def is_checkpoint_alone(progress: Mapping[str, Any]) -> bool:
    """Whether a trainerStatus, as JSON, has a checkpoint, and the training has reported no progress."""
    return _FIELD in progress and progress.keys() <= {_FIELD, "lastUpdatedTime"}


def with_checkpoint(progress: Object, shown: Mapping[str, Any], own: Checkpoint | None, now: datetime) -> Object:
    """The progress of a run with the later one of two checkpoints, whichever run has saved it.

    Args:
        progress: a trainerStatus, as JSON; its checkpoint does not count.
        shown: that of the TrainJob, which another process may have written.
        own: the last one that this process knows; it counts where both are of one second.
        now: no checkpoint is later; a node whose clock is ahead must not keep away all others.
    """
    before = shown.get(_FIELD)
    found = before if own is None or _is_later(before, own, now) else own.to_object()
    rest = {name: value for name, value in progress.items() if name != _FIELD}
    if not found:
        return rest
    return {"lastUpdatedTime": found["time"], **rest, _FIELD: found}


def _is_later(shown: Object | None, own: Checkpoint, now: datetime) -> bool:
    before, after = Instant.parse(str((shown or {}).get("time") or "")), Instant.parse(own.time)
    return before is not None and after is not None and after < before <= Instant.of(now)
