"""Event recorder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from tests.kube.objects import job
from trainer.kube.errors import ForbiddenError, NotFoundError
from trainer.kube.events import EventRecorder
from trainer.kube.resource import EVENTS
from trainer.kube.testing import FakeClient, ManualClock

if TYPE_CHECKING:
    from trainer.kube.objects import Object


@pytest.fixture
def client(clock: ManualClock) -> FakeClient:
    return FakeClient(clock=clock)


@pytest.fixture
def recorder(client: FakeClient, clock: ManualClock) -> EventRecorder:
    return EventRecorder(client, "trainer", clock)


JOB = job("a", uid="u", resourceVersion="7")


async def test_event_has_what_kubectl_shows(recorder: EventRecorder, client: FakeClient) -> None:
    """The event names object, component, reason, message and time."""
    await recorder.record(JOB, type="Normal", reason="Created", message="created JobSet a")
    [event] = client.objects(EVENTS)
    assert event["metadata"]["namespace"] == "ns"
    assert event["metadata"]["name"].startswith("a.")
    expected = {
        "involvedObject": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": "a",
            "namespace": "ns",
            "uid": "u",
            "resourceVersion": "7",
        },
        "type": "Normal",
        "reason": "Created",
        "message": "created JobSet a",
        "source": {"component": "trainer"},
        "reportingComponent": "trainer",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
    }
    assert event.items() >= expected.items()


async def test_events_of_cluster_scoped_objects_are_in_default(recorder: EventRecorder, client: FakeClient) -> None:
    """Events are namespaced even where their objects are not."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "laptop"}}
    await recorder.record(node, type="Warning", reason="NotReady", message="m")
    assert client.objects(EVENTS)[0]["metadata"]["namespace"] == "default"


async def test_repeats_are_counted(recorder: EventRecorder, client: FakeClient, clock: ManualClock) -> None:
    """The same event again raises the count and the time of the first one."""
    await recorder.record(JOB, type="Warning", reason="Failed", message="m")
    await clock.advance(60)
    await recorder.record(JOB, type="Warning", reason="Failed", message="m")
    await recorder.record(JOB, type="Warning", reason="Failed", message="m")
    [event] = client.objects(EVENTS)
    assert event["count"] == 3
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["lastTimestamp"] == "2026-01-01T00:01:00Z"


@pytest.mark.parametrize(
    ("obj", "reason", "message"),
    [
        pytest.param(job("b", uid="u"), "Failed", "m", id="other-name"),
        pytest.param(job("a", uid="v"), "Failed", "m", id="recreated-object"),
        pytest.param(JOB, "Broken", "m", id="other-reason"),
        pytest.param(JOB, "Failed", "n", id="other-message"),
    ],
)
async def test_different_events_are_not_counted_together(
    recorder: EventRecorder, client: FakeClient, obj: Object, reason: str, message: str
) -> None:
    """Only what is equal in object, type, reason and message is a repeat."""
    await recorder.record(JOB, type="Warning", reason="Failed", message="m")
    await recorder.record(obj, type="Warning", reason=reason, message=message)
    assert [event["count"] for event in client.objects(EVENTS)] == [1, 1]


async def test_expired_event_is_written_anew(recorder: EventRecorder, client: FakeClient) -> None:
    """The API server deletes events after an hour; a repeat then starts at one."""
    await recorder.record(JOB, type="Warning", reason="Failed", message="m")
    client.fail_next(NotFoundError(404, "gone"), verb="patch")
    await recorder.record(JOB, type="Warning", reason="Failed", message="m")
    assert [event["count"] for event in client.objects(EVENTS)] == [1, 1]
    await recorder.record(JOB, type="Warning", reason="Failed", message="m")
    assert sorted(event["count"] for event in client.objects(EVENTS)) == [1, 2]


async def test_failure_to_write_is_logged(recorder: EventRecorder, client: FakeClient) -> None:
    """An event is never worth a failed reconcile."""
    client.fail_next(ForbiddenError(403, "events is forbidden"))
    with capture_logs() as logs:
        await recorder.record(JOB, type="Normal", reason="Created", message="m")
    assert logs == [
        {
            "event": "could not record event",
            "log_level": "warning",
            "reason": "Created",
            "about": "a",
            "error": "events is forbidden",
        }
    ]


async def test_long_message_is_cut(recorder: EventRecorder, client: FakeClient) -> None:
    """The API server refuses more than 1024 characters."""
    await recorder.record(JOB, type="Normal", reason="Created", message="x" * 2000)
    [event] = client.objects(EVENTS)
    assert len(event["message"]) == 1024
    assert event["message"].endswith("x...")
