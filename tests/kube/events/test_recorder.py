"""Event recorder."""

from __future__ import annotations

import socket

import pytest
from structlog.testing import capture_logs

from tests.kube.objects import job
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.events.recorder import EventRecorder, EventSender
from trainer.kube.resource import EVENTS
from trainer_kube_testing import FakeClient, ManualClock
from trainer_kube_testing.recorded import RecordedEvents

JOB = job("a", uid="u", resourceVersion="7")


async def flush(sender: EventSender) -> None:
    """Have everything written that was recorded."""
    sender.stop()
    await sender.run()


async def test_event_has_what_kubectl_and_the_sdk_show(clock: ManualClock) -> None:
    """The event names object, component, reason, message, times and count; only the sender writes it."""
    client = FakeClient(clock=clock)
    sender = EventSender(client, clock=clock)
    EventRecorder(sender, "trainer").record(JOB, type="Normal", reason="Created", message="created JobSet a")
    assert client.requests == []
    await flush(sender)
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
        "reportingInstance": f"trainer-{socket.gethostname()}"[:128],
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
    }
    assert event.items() >= expected.items()


async def test_events_of_cluster_scoped_objects_are_in_default(clock: ManualClock) -> None:
    """Events are namespaced even where their objects are not."""
    client = FakeClient(clock=clock)
    sender = EventSender(client, clock=clock)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "laptop"}}
    EventRecorder(sender, "trainer").record(node, type="Warning", reason="NotReady", message="m")
    await flush(sender)
    [event] = client.objects(EVENTS)
    assert event["metadata"]["namespace"] == "default"
    assert event["involvedObject"]["namespace"] == ""


def test_host_is_reported_where_it_matters() -> None:
    """A component of one node says on which one it runs."""
    events = RecordedEvents()
    EventRecorder(events, "kubelet", host="laptop").record(JOB, type="Normal", reason="Started", message="m")
    source = events.occurrences[0].source
    assert (source.component, source.host, source.instance) == ("kubelet", "laptop", "laptop")


def test_cached_objects_can_be_reported_about() -> None:
    """What predicates and map functions receive need not be decoded for an event."""
    events = RecordedEvents()
    EventRecorder(events, "trainer").record(CachedObject.of(JOB), type="Normal", reason="Created", message="m")
    assert (events.occurrences[0].regarding.kind, events.occurrences[0].regarding.uid) == ("Job", "u")


@pytest.mark.parametrize("missing", ["apiVersion", "kind"])
def test_object_without_a_type_is_logged(missing: str) -> None:
    """A mistake of the controller does not fail its reconcile."""
    events = RecordedEvents()
    obj = {name: value for name, value in JOB.items() if name != missing}
    with capture_logs() as logs:
        EventRecorder(events, "trainer").record(obj, type="Normal", reason="Created", message="m")
    assert events.reasons == []
    assert logs == [
        {
            "event": "cannot record event",
            "log_level": "error",
            "reason": "Created",
            "error": "the object must carry apiVersion and kind",
        }
    ]
