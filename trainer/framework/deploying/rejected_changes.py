"""Changes that the cluster has declined, so that it is not asked the same again at every look."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from trainer.kube.objects import metadata_of, uid_of

if TYPE_CHECKING:
    from trainer.kube.clock import Clock
    from trainer.kube.objects import Object

ASK_AGAIN = 300.0
"""Seconds after which the cluster is asked again to allow what it has declined: its administrator may have acted."""


class _Answer(NamedTuple):
    change: str
    text: str
    until: float


class DeclinedChanges:
    """What the cluster has answered to the last change of each object that it has declined, for `ASK_AGAIN` seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: dict[str, _Answer] = {}

    def answer(self, existing: Object, change: Object) -> str | None:
        """What the cluster has said to this very change of the object; None if it has not been asked lately."""
        answer = self._answers.get(uid_of(existing))
        if answer is None or self._clock.monotonic() >= answer.until or answer.change != _digest(change):
            return None
        return answer.text

    def remember(self, existing: Object, change: Object, text: str) -> None:
        """The cluster has declined this change of the object."""
        now = self._clock.monotonic()
        self._answers = {uid: answer for uid, answer in self._answers.items() if now < answer.until}
        self._answers[uid_of(existing)] = _Answer(_digest(change), text, now + ASK_AGAIN)


def _digest(change: Object) -> str:
    """Of the change alone: which state of the object it was made for does not matter."""
    metadata = {name: value for name, value in metadata_of(change).items() if name != "resourceVersion"}
    change = change | {"metadata": metadata}
    return hashlib.sha256(json.dumps(change, sort_keys=True).encode()).hexdigest()
