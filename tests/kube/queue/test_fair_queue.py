"""Items of namespaces that take turns."""

from __future__ import annotations

import pytest

from trainer.kube.queue.fair_queue import FairQueue


def namespace_of(item: str) -> str:
    return item[:1]


def rest(queue: FairQueue[str]) -> list[str]:
    """All items, in their order; empties the queue."""
    return queue.take_some(len(queue))


@pytest.mark.parametrize(
    ("put", "expected"),
    [
        pytest.param(["a1", "a2", "a3"], ["a1", "a2", "a3"], id="in-order"),
        pytest.param(["a1", "a2", "a3", "b1", "c1", "b2"], ["a1", "b1", "c1", "a2", "b2", "a3"], id="in-turns"),
        pytest.param(["a1", "a2", "a3", "a4", "a5", "a6", "a7"], ["a1", "a2", "a3", "a4", "a5", "a6"], id="full"),
        pytest.param(
            ["a1", "a2", "a3", "a4", "a5", "a6", "b1"], ["a1", "b1", "a2", "a3", "a4", "a5"], id="the-longest-loses"
        ),
        pytest.param(
            ["a1", "a2", "a3", "b1", "b2", "b3", "c1"], ["a1", "b1", "c1", "a2", "b2", "b3"], id="one-of-the-longest"
        ),
    ],
)
def test_order(put: list[str], expected: list[str]) -> None:
    """Namespaces take turns; a full queue of six loses the latest of the namespace with most."""
    queue = FairQueue(namespace_of, 6)
    for item in put:
        queue.put(item)
    assert rest(queue) == expected
    assert len(queue) == 0


def test_what_is_dropped_is_named() -> None:
    """The queue says which event had to go, and does not hold it any more."""
    queue = FairQueue(namespace_of, 2)
    assert [queue.put(each) for each in ("a1", "a2", "b1")] == [None, None, "a2"]
    assert ("a1" in queue, "a2" in queue, "b1" in queue) == (True, False, True)
    assert queue.put("a3") == "a3"


def test_oldest() -> None:
    """Where the latest are worth most, the oldest of the namespace with most goes, and nothing waits twice."""
    queue = FairQueue(namespace_of, 3, drops_oldest=True)
    dropped = [queue.put(each) for each in ("b1", "a1", "a2", "a2", "b1", "a3", "a4")]
    assert dropped == [None, None, None, None, None, "a1", "a2"]
    assert queue.take_some(2) == ["b1", "a3"]
    assert queue.take_some(2) == ["a4"]


def test_turns_go_on_between_takes() -> None:
    """A namespace that has had its turn waits for the others, also for those that come later."""
    queue = FairQueue(namespace_of)
    for item in ("a1", "a2", "a3"):
        queue.put(item)
    assert queue.take() == "a1"
    queue.put("b1")
    assert rest(queue) == ["a2", "b1", "a3"]
