"""A TrainJob that is recorded, as the recorder knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object


@dataclass(slots=True)
class Entry:
    """What is there of a TrainJob now, and what of it the database has."""

    job: CachedObject
    jobset: CachedObject | None = None
    creator: str | None = None
    """None: it has to be asked for."""
    is_recorded: bool = False
    """Whether the database has it."""
    state: str = ""
    """The last recorded state. A TrainJob that is older than the newest recorded one starts with the state in which it
    was found, since nobody is notified of what happened before the cluster was recorded."""
    deleted: float | None = None
    written: Mapping[str, str] = field(default_factory=dict)
    related: Sequence[Object] = ()
    """What was rendered beside the JobSet, until it is written."""
    rendered: str = ""
    """The JobSet beside which `related` was rendered."""

    @property
    def size(self) -> int:
        """Bytes of what is written of it, without what is asked for."""
        return len(self.job.raw) + (len(self.jobset.raw) if self.jobset is not None else 0)
