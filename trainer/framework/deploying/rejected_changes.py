"""Changes that the cluster has rejected, so that the same request is not sent at every reconcile."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from trainer.kube.objects import metadata_of, uid_of

if TYPE_CHECKING:
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object

RETRY_AFTER = 300.0
"""Seconds after which a rejected change is tried again, since the administrator of the cluster may have acted."""


class _Rejection(NamedTuple):
    change: str
    answer: str
    until: float


class RejectedChanges:
    """The answer to the last rejected change of each object, kept for `RETRY_AFTER` seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rejections: dict[str, _Rejection] = {}

    def answer(self, existing: Object, change: Object) -> str | None:
        """The answer to this very change of the object; None if it was not rejected lately."""
        found = self._rejections.get(uid_of(existing))
        if found is None or self._clock.monotonic() >= found.until or found.change != _digest(change):
            return None
        return found.answer

    def remember(self, existing: Object, change: Object, answer: str) -> None:
        """The cluster has rejected this change of the object."""
        now = self._clock.monotonic()
        self._rejections = {uid: found for uid, found in self._rejections.items() if now < found.until}
        self._rejections[uid_of(existing)] = _Rejection(_digest(change), answer, now + RETRY_AFTER)


def _digest(change: Object) -> str:
    """Of the change alone, whatever state of the object it was made for."""
    metadata = {name: value for name, value in metadata_of(change).items() if name != "resourceVersion"}
    change = change | {"metadata": metadata}
    return hashlib.sha256(json.dumps(change, sort_keys=True).encode()).hexdigest()
