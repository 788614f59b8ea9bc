"""What the cluster has declined, for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.deploying.rejected_changes import ASK_AGAIN, DeclinedChanges
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
    declined = DeclinedChanges(clock)
    assert declined.answer(existing("a"), CHANGE) is None

    declined.remember(existing("a"), CHANGE, "no")
    assert declined.answer(existing("a"), {"spec": {"size": 2}}) == "no"
    assert declined.answer(existing("a"), {"spec": {"size": 3}}) is None
    assert declined.answer(existing("b"), CHANGE) is None

    await clock.advance(ASK_AGAIN)
    assert declined.answer(existing("a"), CHANGE) is None


async def test_only_the_last_change_counts() -> None:
    """Who asks for something else and comes back may have had a reason to."""
    declined = DeclinedChanges(ManualClock())
    declined.remember(existing("a"), CHANGE, "no")
    declined.remember(existing("a"), {"spec": {"size": 3}}, "never")
    assert declined.answer(existing("a"), CHANGE) is None
    assert declined.answer(existing("a"), {"spec": {"size": 3}}) == "never"
