from __future__ import annotations

from datetime import UTC, datetime

import pytest

from trainer.kube.events.correlator import CountedEvent, EventSource, ObjectReference, Occurrence
from trainer.kube.events.fair_queue import FairQueue

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def event(name: str) -> CountedEvent:
    """An event about an object of the namespace that its name begins with."""
    about = ObjectReference("batch/v1", "Job", name[:1], name, "u", "1")
    return CountedEvent(name, NOW, NOW, Occurrence(EventSource("trainer", "", "t"), about, "Normal", "R", "m"))


def names(queue: FairQueue) -> list[str]:
    """Those of all events, in their order; empties the queue."""
    return [queue.take().name for _ in range(len(queue))]


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
    queue = FairQueue(6)
    for name in put:
        queue.put(event(name))
    assert names(queue) == expected
    assert len(queue) == 0


def test_what_is_dropped_is_named() -> None:
    """The queue says which event had to go, and does not hold it any more."""
    queue = FairQueue(2)
    first, second, other, third = map(event, ("a1", "a2", "b1", "a3"))
    assert [queue.put(each) for each in (first, second, other)] == [None, None, second]
    assert (first in queue, second in queue, other in queue) == (True, False, True)
    assert queue.put(third) is third


def test_turns_go_on_between_takes() -> None:
    """A namespace that has had its turn waits for the others, also for those that come later."""
    queue = FairQueue(10)
    for name in ("a1", "a2", "a3"):
        queue.put(event(name))
    assert queue.take().name == "a1"
    queue.put(event("b1"))
    assert names(queue) == ["a2", "b1", "a3"]
