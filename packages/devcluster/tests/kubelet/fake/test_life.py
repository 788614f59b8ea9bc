"""What the status of a pod without processes says next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainer.kube.objects import Object, find_condition
from trainer_devcluster.kubelet.fake.life import EXITS_WITH, RUNS_FOR, next_status

START = datetime(2026, 1, 1, tzinfo=UTC)


def make_pod(policy: str = "Never", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    """A pod that has just been bound."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "annotations": annotations or {}},
        "spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "i"}], **spec},
        "status": {"phase": "Pending", "conditions": [scheduled], "qosClass": "BestEffort"},
    }


class Life:
    """A pod that is taken from one step to the next."""

    def __init__(self, pod: Object) -> None:
        self.pod = pod
        self.now = START

    def step(self, seconds: float = 0) -> float | None:
        """Take the next step after some time; returns when the one after that is due."""
        self.now += timedelta(seconds=seconds)
        status, pause = next_status(self.pod, self.now, "10.0.0.2")
        self.pod["status"] |= status or {}
        return pause

    @property
    def status(self) -> Object:
        """What it says."""
        status: Object = self.pod["status"]
        return status

    def condition(self, name: str) -> tuple[str, str]:
        """Status and reason of a condition."""
        found = find_condition(self.pod, name) or {}
        return found.get("status", ""), found.get("reason", "")


def test_restarts() -> None:
    """A container that has to be started again is, after a pause that grows."""
    life = Life(make_pod("OnFailure", {EXITS_WITH: "1"}))
    life.step()
    assert life.step() == 10
    (container,) = life.status["containerStatuses"]
    assert (life.status["phase"], life.condition("Ready")) == ("Running", ("False", "ContainersNotReady"))
    assert container["state"]["waiting"] == {
        "reason": "CrashLoopBackOff",
        "message": "back-off 10s restarting failed container=c pod=p_ns(u)",
    }
    assert life.step(9) == 1
    assert life.step(1) == 0
    (container,) = life.status["containerStatuses"]
    assert (container["restartCount"], container["lastState"]["terminated"]["exitCode"]) == (1, 1)
    assert life.step() == 20


def test_init_containers() -> None:
    """Init containers are done when the others run, and sidecars run with them and end after them."""
    init = [{"name": "init", "image": "i"}, {"name": "sidecar", "image": "i", "restartPolicy": "Always"}]
    life = Life(make_pod(annotations={RUNS_FOR: "1s"}, initContainers=init))
    life.step()
    first, sidecar = life.status["initContainerStatuses"]
    assert (list(first["state"]), first["ready"], list(sidecar["state"])) == (["terminated"], True, ["running"])
    life.step(1)
    assert [list(entry["state"]) for entry in life.status["initContainerStatuses"]] == [["terminated"], ["terminated"]]
    assert life.status["phase"] == "Succeeded"


@pytest.mark.parametrize("policy", ["Never", "Always"])
def test_deletion(policy: str) -> None:
    """A pod that is deleted ends with the code of SIGTERM, whatever its restart policy."""
    life = Life(make_pod(policy, {RUNS_FOR: "1h"}))
    life.step()
    life.pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:10Z"
    assert life.step(1) is None
    assert life.status["phase"] == "Failed"
    assert life.status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143


def test_nonsense() -> None:
    """A pod whose annotations make no sense fails, with the reason."""
    life = Life(make_pod(annotations={RUNS_FOR: "soon"}))
    life.step()
    assert (life.status["phase"], life.status["reason"]) == ("Failed", "InvalidAnnotation")
    assert "'soon' is not a duration" in life.status["message"]
