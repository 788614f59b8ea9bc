"""Ready keys of a work queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@given(st.lists(st.one_of(st.none(), st.tuples(st.sampled_from("abcdef"), st.integers(-2, 2)))))
def test_keys_come_by_priority_and_then_in_order_of_arrival(script: list[tuple[str, int] | None]) -> None:
    """As if they were sorted anew each time; None takes one out."""
    keys: ReadyKeys[str] = ReadyKeys()
    model: dict[str, tuple[int, int]] = {}
    for moment, step in enumerate(script):
        if step is not None:
            key, priority = step
            keys.put(key, priority, 0.0)
            if key not in model or -model[key][0] < priority:
                model[key] = (-priority, moment)
        elif model:
            expected = min(model, key=model.__getitem__)
            del model[expected]
            assert keys.pop().key == expected
        assert len(keys) == len(model)
