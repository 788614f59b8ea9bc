"""What a cache keeps of an event."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.events.compact import MESSAGE_LIMIT, compact_event, last_seen

EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "ns", "uid": "u", "resourceVersion": "7"},
    "involvedObject": {"kind": "Pod", "name": "p", "uid": "v"},
    "reason": "FailedMount",
    "type": "Warning",
    "lastTimestamp": "2026-01-01T00:00:00Z",
    "message": "m",
}


def test_what_is_read_stays() -> None:
    """What an event is about, what it says, when and how often; its identity, without which no cache takes it."""
    assert compact_event(EVENT | {"source": {"component": "kubelet"}, "count": 3}) == EVENT | {"count": 3}
    assert compact_event(EVENT | {"count": "x" * 100_000}) == EVENT


@pytest.mark.parametrize("size", [2_000, 20_000, 200_000])
def test_size_is_bounded(size: int) -> None:
    """An event is at most a few KiB, however long its parts are."""
    long = "x" * size
    event: dict[str, Any] = {
        **EVENT,
        "metadata": {**EVENT["metadata"], "annotations": {"a": long}, "labels": {f"l{n}": "v" for n in range(size)}},  # type: ignore[dict-item]
        "involvedObject": {"kind": long, "name": long, "uid": long, "fieldPath": long},
        "message": long,
        "reason": long,
        "related": {"name": long},
        "series": {"lastObservedTime": long},
    }
    assert len(CachedObject.of(compact_event(event)).raw) < 4 * MESSAGE_LIMIT


def test_an_event_without_anything() -> None:
    """Absent and null fields are no error."""
    odd: dict[str, Any] = {"metadata": {"name": "e"}, "involvedObject": None, "series": None, "message": None}
    assert compact_event(odd)["message"] == ""
    assert last_seen(odd) == ""


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        pytest.param({"lastTimestamp": "2026-01-01T00:00:05Z"}, "2026-01-01T00:00:05", id="v1"),
        pytest.param({"eventTime": "2026-01-01T00:00:05.5Z"}, "2026-01-01T00:00:05", id="new-api"),
        pytest.param(
            {"eventTime": "2026-01-01T00:00:05.5Z", "series": {"lastObservedTime": "2026-01-01T00:01:00.1Z"}},
            "2026-01-01T00:01:00",
            id="repeated",
        ),
        pytest.param({"metadata": {"creationTimestamp": "2026-01-01T00:00:07Z"}}, "2026-01-01T00:00:07", id="says-not"),
    ],
)
def test_last_seen(fields: dict[str, Any], seen: str) -> None:
    """The latest of what the APIs of events have for it."""
    assert last_seen(fields) == seen
