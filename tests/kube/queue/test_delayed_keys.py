"""Delayed keys of a work queue."""

from __future__ import annotations

from trainer.kube.queue.delayed_keys import DelayedKeys


def test_keys_come_when_they_are_due() -> None:
    """The longest overdue first, each once, with the highest priority that was asked for."""
    keys: DelayedKeys[str] = DelayedKeys()
    keys.put("a", 10, 0)
    keys.put("b", 5, 1)
    keys.put("a", 3, -1)
    keys.put("b", 7, 2)
    keys.put("c", 20, 0)
    assert keys.first_due() == 3
    assert list(keys.take_due(10)) == [("a", 0), ("b", 2)]
    assert list(keys.take_due(10)) == []
    assert keys.first_due() == 20
    assert len(keys) == 1


def test_ended_delay_is_over() -> None:
    """It gives its priority, and the time of the next one counts."""
    keys: DelayedKeys[str] = DelayedKeys()
    keys.put("a", 1, 7)
    keys.put("b", 2, 0)
    assert keys.discard("a") == 7
    assert keys.discard("a") is None
    assert keys.first_due() == 2
    keys.put("a", 1, 0)
    assert list(keys.take_due(2)) == [("a", 0), ("b", 0)]


def test_keys_that_are_delayed_over_and_over_take_no_more_room() -> None:
    """A key that asks for a look in an hour and is changed each second leaves nothing behind."""
    keys: DelayedKeys[str] = DelayedKeys()
    for second in range(10_000):
        keys.put("a", second + 3600, 0)
        keys.discard("a")
    keys.put("a", 1, 0)
    assert keys.entries < 100
