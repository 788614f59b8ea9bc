"""What the cluster has declined, for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.deploying.rejected_changes import RETRY_AFTER, RejectedChanges
from trainer.kube.testing import ManualClock

if TYPE_CHECKING:
    from trainer.kube.objects import Object

CHANGE: Object = {"spec": {"size": 2}}


def existing(uid: str) -> Object:
    """An object of the cluster."""
    return {"metadata": {"uid": uid}}


async def test_the_same_change_has_the_same_answer() -> None:
    """Of the same object, for as long as the cluster need not be asked again."""
    clock = ManualClock()
    rejected = RejectedChanges(clock)
    assert rejected.answer(existing("a"), CHANGE) is None

    rejected.remember(existing("a"), CHANGE, "no")
    assert rejected.answer(existing("a"), {"spec": {"size": 2}}) == "no"
    assert rejected.answer(existing("a"), {"spec": {"size": 3}}) is None
    assert rejected.answer(existing("b"), CHANGE) is None

    await clock.advance(RETRY_AFTER)
    assert rejected.answer(existing("a"), CHANGE) is None


async def test_only_the_last_change_counts() -> None:
    """Who asks for something else and comes back may have had a reason to."""
    rejected = RejectedChanges(ManualClock())
    rejected.remember(existing("a"), CHANGE, "no")
    rejected.remember(existing("a"), {"spec": {"size": 3}}, "never")
    assert rejected.answer(existing("a"), CHANGE) is None
    assert rejected.answer(existing("a"), {"spec": {"size": 3}}) == "never"
