"""Aggregation, counting and limits of events."""

from __future__ import annotations

import pytest

from trainer.kube.events.correlator import (
    REMEMBERED,
    CountedEvent,
    EventCorrelator,
    EventKind,
    EventSource,
    ObjectReference,
    Occurrence,
    cut_message,
)
from trainer_kube_testing import ManualClock

SOURCE = EventSource("trainer", "", "trainer-laptop")


def about(name: str = "a", uid: str = "u", resource_version: str = "1", namespace: str = "ns") -> ObjectReference:
    return ObjectReference("batch/v1", "Job", namespace, name, uid, resource_version)


def occurrence(
    message: str = "m",
    regarding: ObjectReference | None = None,
    *,
    kind: EventKind = "Warning",
    reason: str = "Failed",
    source: EventSource = SOURCE,
) -> Occurrence:
    return Occurrence(source, regarding or about(), kind, reason, message)


@pytest.fixture
def correlator(clock: ManualClock) -> EventCorrelator:
    return EventCorrelator(clock)


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        pytest.param(occurrence(), True, id="equal"),
        pytest.param(occurrence(regarding=about(resource_version="2")), True, id="changed-object"),
        pytest.param(occurrence(regarding=about("b")), False, id="other-name"),
        pytest.param(occurrence(regarding=about(uid="v")), False, id="recreated-object"),
        pytest.param(occurrence(reason="Broken"), False, id="other-reason"),
        pytest.param(occurrence(kind="Normal"), False, id="other-type"),
        pytest.param(occurrence("n"), False, id="other-message"),
        pytest.param(occurrence(source=EventSource("job", "", "job-laptop")), False, id="other-component"),
    ],
)
def test_only_equal_occurrences_are_counted_together(
    correlator: EventCorrelator, other: Occurrence, is_same: bool
) -> None:
    """What is equal in source, object, type, reason and message is a repeat; nothing else is."""
    first = correlator.observe(occurrence())
    second = correlator.observe(other)
    assert (first is second, second.count) == ((True, 2) if is_same else (False, 1))


async def test_repeat_keeps_the_first_time(correlator: EventCorrelator, clock: ManualClock) -> None:
    """Name and first time are those of the first occurrence, the last time and version those of the last."""
    name = correlator.observe(occurrence()).name
    await clock.advance(60)
    body = correlator.observe(occurrence(regarding=about(resource_version="2"))).body()
    assert body["metadata"]["name"] == name
    assert body["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert body["lastTimestamp"] == "2026-01-01T00:01:00Z"
    assert body["involvedObject"]["resourceVersion"] == "2"


def test_many_messages_become_one_event(correlator: EventCorrelator) -> None:
    """From the tenth message on, new ones are combined and known ones still counted by themselves."""
    events = [correlator.observe(occurrence(f"m{number}")) for number in range(12)]
    assert [event.message for event in events[:9]] == [f"m{number}" for number in range(9)]
    assert events[9] is events[10] is events[11]
    assert (events[11].message, events[11].count) == ("(combined from similar events): m11", 3)
    assert correlator.observe(occurrence("m8")) is events[8]
    assert correlator.observe(occurrence("m8", about("b"))).message == "m8"


@pytest.mark.parametrize(
    ("pause", "message"),
    [
        pytest.param(600, "(combined from similar events): new", id="within-window"),
        pytest.param(601, "new", id="after-window"),
    ],
)
async def test_aggregation_ends_after_a_pause(
    correlator: EventCorrelator, clock: ManualClock, pause: float, message: str
) -> None:
    """Ten minutes of silence about an object make room for single events again."""
    for number in range(10):
        correlator.observe(occurrence(f"m{number}"))
    await clock.advance(pause)
    assert correlator.observe(occurrence("new")).message == message


async def test_bursts_are_limited_by_source_and_object(correlator: EventCorrelator, clock: ManualClock) -> None:
    """25 writes at once, one more every 300 s up to 25 again; other objects and sources are not affected."""
    event = correlator.observe(occurrence())

    def writes(event: CountedEvent) -> int:
        return sum(correlator.may_write(event) for _ in range(100))

    assert writes(event) == 25
    assert writes(correlator.observe(occurrence(reason="Broken"))) == 0
    assert writes(correlator.observe(occurrence(regarding=about("b")))) == 25
    assert writes(correlator.observe(occurrence(source=EventSource("job", "", "job-laptop")))) == 25
    await clock.advance(299)
    assert writes(event) == 0
    await clock.advance(1)
    assert writes(event) == 1
    await clock.advance(100 * 300)
    assert writes(event) == 25


def test_memory_is_bounded(correlator: EventCorrelator) -> None:
    """The least recently used event is forgotten: its repeat is a new event."""
    first, second, *_ = (correlator.observe(occurrence(regarding=about(f"{each}"))) for each in range(REMEMBERED))
    assert correlator.observe(occurrence(regarding=about("0"))) is first
    correlator.observe(occurrence(regarding=about("one-more")))
    assert correlator.observe(occurrence(regarding=about("0"))) is first
    again = correlator.observe(occurrence(regarding=about("1")))
    assert again is not second
    assert again.count == 1


def test_a_flood_in_a_namespace_makes_no_other_forget(correlator: EventCorrelator) -> None:
    """Repeats in a quiet namespace are still counted together, and its limits still hold."""
    quiet = correlator.observe(occurrence(regarding=about(namespace="quiet")))
    while correlator.may_write(quiet):
        pass
    for number in range(REMEMBERED + 1):
        correlator.may_write(correlator.observe(occurrence(regarding=about(f"flood-{number}"))))
    again = correlator.observe(occurrence(regarding=about(namespace="quiet")))
    assert again is quiet
    assert not correlator.may_write(again)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("x" * 1024, "x" * 1024, id="fits"),
        pytest.param("x" * 1025, "x" * 1021 + "...", id="too-long"),
        pytest.param("é" * 600, "é" * 510 + "...", id="between-the-bytes-of-a-character"),
        pytest.param("a\ud800b", "a?b", id="not-encodable"),
    ],
)
def test_message_is_cut(message: str, expected: str) -> None:
    """A message has at most 1024 bytes of valid UTF-8."""
    assert cut_message(message) == expected


def test_combined_message_is_cut(correlator: EventCorrelator) -> None:
    """What is put before a combined message counts as well."""
    for number in range(10):
        event = correlator.observe(occurrence(f"{number}" * 1024))
    assert event.message == "(combined from similar events): " + "9" * 989 + "..."


@pytest.mark.parametrize(
    ("name", "has_prefix"),
    [
        pytest.param("job-1.example", True, id="usual"),
        pytest.param("x" * 236, True, id="just-fits"),
        pytest.param("x" * 237, False, id="too-long"),
        pytest.param("system:node", False, id="rbac-name"),
    ],
)
def test_event_name_is_valid(correlator: EventCorrelator, name: str, has_prefix: bool) -> None:
    """It begins with the name of the object where that makes a valid name of an event."""
    event_name = correlator.observe(occurrence(regarding=about(name))).name
    assert event_name.startswith(f"{name}.") is has_prefix
    assert len(event_name) <= 253
    assert ":" not in event_name
