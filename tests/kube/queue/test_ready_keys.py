"""Ready keys of a work queue."""

from __future__ import annotations

import pytest

from trainer.kube.queue.ready_keys import Ready, ReadyKeys


def test_key_that_moves_up_has_waited_since_it_came() -> None:
    """Its time in the queue is counted from the first time it was put there."""
    keys: ReadyKeys[str] = ReadyKeys()
    assert keys.put("a", 0, 1.0)
    assert not keys.put("a", 5, 2.0)
    assert not keys.put("a", 3, 3.0)
    assert keys.pop() == Ready("a", 5, 1.0)
    assert not keys
    with pytest.raises(IndexError):
        keys.pop()


def test_nothing_is_kept_of_priorities_without_keys() -> None:
    """However many priorities are used over time."""
    keys: ReadyKeys[str] = ReadyKeys()
    for priority in range(100):
        keys.put("a", priority, 0.0)
    assert keys.counts() == {99: 1}
    keys.clear()
    assert keys.counts() == {}
    assert "a" not in keys
