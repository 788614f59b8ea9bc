"""The milestones of TrainJobs that a replica records, leader or not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import train_job_object
from trainer.controllers.metrics.state_counts import Summary
from trainer.controllers.metrics.trainjobs import Life, Milestones
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import Object
from trainer_kube_testing import ManualClock


def at(seconds: int) -> str:
    """A timestamp of the manual clock."""
    return f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"


def conditions(**since: tuple[str, int]) -> list[Object]:
    """Conditions by type, with their status and since when."""
    return [
        {"type": name, "status": status, "lastTransitionTime": at(seconds)} for name, (status, seconds) in since.items()
    ]


class Replica:
    """Milestones that get the events of an informer."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.milestones = Milestones(self.clock)

    def see(self, *, created: int = 0, initial: bool | None = None, status: Object | None = None, **spec: Any) -> None:
        """A TrainJob comes if `initial` is given, or else has changed."""
        obj = train_job_object(status=status, **spec)
        cached = CachedObject.of(obj | {"metadata": obj["metadata"] | {"creationTimestamp": at(created)}})
        if initial is None:
            self.milestones.on_update(cached.uid, Summary.of(cached))
        else:
            self.milestones.on_add(cached, Summary.of(cached), initial=initial)

    @property
    def life(self) -> Life | None:
        return self.milestones.of("uid-of-demo")


@pytest.fixture
def replica() -> Replica:
    return Replica()


@pytest.mark.parametrize(
    ("initial", "now", "waits_since"),
    [
        pytest.param(False, 100.9, 100.9, id="seen-at-once"),
        pytest.param(False, 160, 100, id="missed-by-the-watch"),
        pytest.param(True, 90, 90, id="clocks-that-differ"),
    ],
)
async def test_since_when_it_waits(replica: Replica, initial: bool, now: float, waits_since: float) -> None:
    """A TrainJob whose creation is seen waits since that moment, and any other since the time that it bears."""
    await replica.clock.advance(now)
    replica.see(created=100, initial=initial)
    assert replica.life is not None
    assert (replica.life.created, replica.life.awaits_jobset_since) == (waits_since, waits_since)


@pytest.mark.parametrize(
    ("status", "running_since"),
    [
        pytest.param({"state": "Running", "conditions": conditions(Created=("True", 60))}, 60, id="runs"),
        pytest.param({"state": "Pending", "conditions": conditions(Created=("True", 60))}, None, id="never-ran"),
        pytest.param(
            {"state": "Running", "conditions": conditions(Created=("True", 60), Suspended=("False", 90))},
            90,
            id="runs-after-a-resumption",
        ),
        pytest.param({"state": "Blocked", "conditions": conditions(Created=("False", 60))}, None, id="blocked"),
        pytest.param(None, None, id="new"),
    ],
)
async def test_what_had_happened_before_is_estimated(
    replica: Replica, status: Object | None, running_since: float | None
) -> None:
    """Since when a TrainJob runs that a process finds when it starts; None: its first run is still to come."""
    await replica.clock.advance(600)
    replica.see(initial=True, status=status)
    assert replica.life is not None
    assert replica.life.running_since == running_since


@pytest.mark.parametrize("state", ["Complete", "Failed"])
async def test_what_has_ended_is_forgotten(replica: Replica, state: str) -> None:
    """A thousand finished TrainJobs cost nothing."""
    replica.see(initial=True, status={"state": state})
    assert replica.life is None
    replica.see(initial=False)
    replica.see(status={"state": state})
    assert replica.life is None


async def test_what_is_deleted_is_forgotten(replica: Replica) -> None:
    """So is one that was deleted while it ran."""
    replica.see(initial=False)
    replica.milestones.on_delete("uid-of-demo")
    assert replica.life is None


WAITS = {"type": "Pending", "status": "True", "reason": "Unschedulable", "message": "no node takes it"}


@pytest.mark.parametrize(
    ("obj", "runtime", "state"),
    [
        pytest.param(train_job_object(), "blueprint", "Unknown", id="new"),
        pytest.param(
            train_job_object(managedBy="kubeflow.org/trainjob-controller"), "blueprint", "Unknown", id="managed-here"
        ),
        pytest.param(train_job_object(runtimeRef="torch"), "", "Unknown", id="odd-runtime"),
    ],
)
def test_what_is_read_of_a_trainjob(obj: Object, runtime: str, state: str) -> None:
    """Runtime and state, also of objects that only an older schema accepts."""
    summary = Summary.of(CachedObject.of(obj))
    assert (summary.runtime, summary.state) == (runtime, state)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"state": "Pending", "conditions": [WAITS]}, "Unschedulable", id="waits"),
        pytest.param({"state": "Running", "conditions": [WAITS]}, "", id="runs"),
        pytest.param({"state": "Pending", "conditions": [WAITS | {"status": "False"}]}, "", id="no-longer"),
        pytest.param({"state": "Pending", "conditions": ["odd"]}, "", id="odd-conditions"),
    ],
)
def test_why_pods_wait(status: Object, expected: str) -> None:
    """The reason of the condition Pending, while that is the state."""
    assert Summary.of(CachedObject.of(train_job_object(status=status))).pending == expected
