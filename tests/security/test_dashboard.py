"""A tenant takes neither memory nor turns from the others who use the dashboard of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.dashboard.conftest import UserClient, train_job, visiting
from trainer.kube.events.compact import MESSAGE_LIMIT

if TYPE_CHECKING:
    from trainer.kube.objects import Object

EVENTS = 100


def large_event(number: int) -> Object:
    """An event about the TrainJob as large as the API server stores it."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"large-{number}", "namespace": "default", "annotations": {"a": "x" * 500_000}},
        "involvedObject": {"kind": "Job", "name": "demo-node-0", "namespace": "default"},
        "reason": "Large",
        "message": "x" * 500_000,
        "count": 3,
        "type": "Normal",
        "lastTimestamp": "2026-01-01T00:00:05Z",
    }


async def test_large_events() -> None:
    """A page with a hundred events of a megabyte has a kilobyte of each, and what it shows of them."""
    client = UserClient(train_job(), *map(large_event, range(EVENTS)))
    async with visiting(client) as visitor, visitor.stream("/api/trainjobs/default/demo") as events:
        shown = await events.next("events")
        while len(shown) < EVENTS:
            shown = await events.next("events")
        assert {(len(event["message"]), event["count"]) for event in shown} == {(MESSAGE_LIMIT, 3)}
