"""Bringing statuses to the server."""

from __future__ import annotations

import anyio

from packages.devcluster.tests.kubelet.fakes import FakePodApi, make_pod
from trainer.workloads.containers import RestartPolicy
from trainer_devcluster.kubelet.container_record import ContainerRecord, Running, State, Terminated, Waiting
from trainer_devcluster.kubelet.pod_status import StatusWriter
from trainer_kube_testing import ManualClock

RUNNING = Running("t")
BAD = Terminated(1, "Error", "t")


def records(*states: State, policy: str = "Always") -> list[ContainerRecord]:
    """Containers in these states; one that crashes in a loop has failed before."""
    return [
        ContainerRecord(
            f"c{index}",
            "i",
            state,
            BAD if isinstance(state, Waiting) and state.reason == "CrashLoopBackOff" else None,
            policy=RestartPolicy(policy),
        )
        for index, state in enumerate(states)
    ]


def sidecar(state: State, *, passes_startup: bool = True) -> ContainerRecord:
    """A sidecar in this state."""
    return ContainerRecord("side", "i", state, sidecar=True, passes_startup=passes_startup)


POD = make_pod("pod", {"name": "main"})


async def test_unchanged() -> None:
    """A status that is on the server already is not written again."""
    api = FakePodApi()
    writer = StatusWriter(api, ManualClock())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        for _ in range(2):
            writer.publish(POD, {"phase": "Running"})
            await writer.flush()
        tasks.cancel_scope.cancel()
    assert api.statuses["pod"] == [{"phase": "Running"}]
