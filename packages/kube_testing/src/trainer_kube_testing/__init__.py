"""What tests of controllers need: a clock that tests move, an API server that can misbehave, and ways to wait.

    clock = ManualClock()
    client = FakeClient(pod, clock=clock)
    client.faults.fail(statuses.too_many_requests(retry_after=20), verb="list")
    ...
    await eventually(lambda: client.find(PODS, "p", "ns") is None, clock=clock, within=60)

`FakeClient` is the server in the process of the test, without sockets or real time.
"""

from __future__ import annotations

from trainer_kube_testing.api_semantics import statuses
from trainer_kube_testing.client import FakeClient
from trainer_kube_testing.clock import ManualClock, settle
from trainer_kube_testing.container_logs import FakeLog
from trainer_kube_testing.faults import Fault, Faults, Hold
from trainer_kube_testing.recorded import WRITES, RecordedEvents, RecordedRequest
from trainer_kube_testing.waiting import eventually, no_stray_tasks
from trainer_kube_testing.watches import StreamingLists

__version__ = "0.2.0"

__all__ = [
    "WRITES",
    "FakeClient",
    "FakeLog",
    "Fault",
    "Faults",
    "Hold",
    "ManualClock",
    "RecordedEvents",
    "RecordedRequest",
    "StreamingLists",
    "eventually",
    "no_stray_tasks",
    "settle",
    "statuses",
]
