"""Delayed keys of a work queue."""

from __future__ import annotations

from trainer.kube.queue.delayed_keys import DelayedKeys


def test_keys_that_are_delayed_over_and_over_take_no_more_room() -> None:
    """A key that asks for a look in an hour and is changed each second leaves nothing behind."""
    keys: DelayedKeys[str] = DelayedKeys()
    for second in range(10_000):
        keys.put("a", second + 3600, 0)
        keys.discard("a")
    keys.put("a", 1, 0)
    assert keys.entries < 100
