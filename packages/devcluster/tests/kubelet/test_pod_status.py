"""Bringing statuses to the server."""

from __future__ import annotations

import anyio
import pytest

from packages.devcluster.tests.kubelet.fakes import FakePodApi, make_pod
from trainer.kube.errors import TransportError
from trainer.workloads.containers import RestartPolicy
from trainer_devcluster.kubelet.container_record import ContainerRecord, Running, State, Terminated, Waiting
from trainer_devcluster.kubelet.pod_status import PodRecord, StatusBuilder, StatusWriter
from trainer_kube_testing import ManualClock

NEW = Waiting("ContainerCreating")
LOOP = Waiting("CrashLoopBackOff")
RUNNING = Running("t")
OK = Terminated(0, "Completed", "t")
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


@pytest.mark.parametrize(
    ("policy", "init", "states", "phase"),
    [
        pytest.param("Never", (), (NEW,), "Pending", id="new"),
        pytest.param("Never", (), (RUNNING, NEW), "Pending", id="one not started"),
        pytest.param("Never", (), (RUNNING, OK), "Running", id="one done"),
        pytest.param("Never", (), (OK, OK), "Succeeded", id="all done"),
        pytest.param("Never", (), (OK, BAD), "Failed", id="one failed"),
        pytest.param("Never", (), (RUNNING, BAD), "Running", id="one failed, one runs"),
        pytest.param("OnFailure", (), (BAD,), "Running", id="will be restarted"),
        pytest.param("OnFailure", (), (LOOP,), "Running", id="waits for restart"),
        pytest.param("OnFailure", (), (OK, LOOP), "Running", id="one waits for restart"),
        pytest.param("OnFailure", (), (OK,), "Succeeded", id="needs no restart"),
        pytest.param("Always", (), (OK,), "Running", id="always restarted"),
        pytest.param("Never", (RUNNING,), (NEW,), "Pending", id="init runs"),
        pytest.param("Never", (BAD,), (NEW,), "Failed", id="init failed"),
        pytest.param("Always", (BAD,), (NEW,), "Pending", id="init will be restarted"),
        pytest.param("Never", (OK,), (RUNNING,), "Running", id="init done"),
    ],
)
def test_phase(policy: str, init: tuple[State, ...], states: tuple[State, ...], phase: str) -> None:
    """The phase follows from the containers' states and the restart policy."""
    init_policy = "OnFailure" if policy == "Always" else policy
    record = PodRecord(records(*init, policy=init_policy), records(*states, policy=policy), "t", pod_ip="a")
    assert record.phase() == phase


@pytest.mark.parametrize(
    ("beside", "states", "phase"),
    [
        pytest.param(sidecar(RUNNING, passes_startup=False), (NEW,), "Pending", id="it has not started"),
        pytest.param(sidecar(RUNNING), (NEW,), "Pending", id="it has started, the others have not"),
        pytest.param(sidecar(RUNNING), (RUNNING,), "Running", id="both run"),
        pytest.param(sidecar(LOOP), (RUNNING,), "Running", id="it crashes later"),
        pytest.param(sidecar(RUNNING), (OK,), "Running", id="it still runs when the others are done"),
        pytest.param(sidecar(BAD), (OK,), "Succeeded", id="its own end does not matter"),
        pytest.param(sidecar(OK), (BAD,), "Failed", id="its success does not matter"),
    ],
)
def test_phase_with_a_sidecar(beside: ContainerRecord, states: tuple[State, ...], phase: str) -> None:
    """A pod waits for the start and the end of its sidecars, but how they end does not matter."""
    assert PodRecord([beside], records(*states, policy="Never"), "t", pod_ip="a").phase() == phase


def test_conditions_with_a_sidecar() -> None:
    """A pod is initialized when its sidecars have started, and ready only as long as they are."""
    record = PodRecord([sidecar(RUNNING, passes_startup=False)], records(NEW), "t", pod_ip="a")
    pod, builder = make_pod("pod", {"name": "c0"}), StatusBuilder()

    def found() -> dict[str, tuple[str, str]]:
        conditions = builder.build(pod, record, "now")["conditions"]
        return {entry["type"]: (entry["status"], entry.get("message", "")) for entry in conditions}

    assert found()["Initialized"] == ("False", "containers with incomplete status: [side]")
    record.init[0].passes_startup, record.containers[0].state = True, RUNNING
    assert (found()["Initialized"], found()["Ready"]) == (("True", ""), ("True", ""))
    record.init[0].passes_probe = False
    assert found()["Initialized"] == ("True", "")
    assert found()["Ready"] == ("False", "containers with unready status: [side]")


def test_conditions_of_a_failed_initialization() -> None:
    """A pod whose init container has failed was never initialized."""
    record = PodRecord(records(BAD, policy="Never"), records(NEW), "t", pod_ip="a")
    status = StatusBuilder().build(make_pod("pod", {"name": "c0"}), record, "now")
    reasons = {entry["type"]: entry.get("reason") for entry in status["conditions"]}
    assert status["phase"] == "Failed"
    assert (reasons["Initialized"], reasons["Ready"]) == ("ContainersNotInitialized", "PodFailed")


@pytest.mark.parametrize(
    ("init", "states", "phase"),
    [
        pytest.param((), (OK,), "Succeeded", id="done"),
        pytest.param((), (BAD,), "Failed", id="failed"),
        pytest.param((), (OK, NEW), "Failed", id="not started"),
        pytest.param((), (LOOP,), "Failed", id="between restarts"),
        pytest.param((RUNNING,), (NEW,), "Failed", id="during init"),
    ],
)
def test_phase_at_the_end(init: tuple[State, ...], states: tuple[State, ...], phase: str) -> None:
    """A pod that has been ended is done or failed, whatever its restart policy."""
    record = PodRecord(records(*init), records(*states), "t", pod_ip="a")
    record.end("t", "lost")
    assert record.phase() == phase


def test_end_keeps_the_last_outcome() -> None:
    """A container between restarts ends as it ended last, one that never ran counts as lost."""
    record = PodRecord([], records(LOOP, NEW), "t", pod_ip="a")
    record.end("now", "lost")
    assert record.containers[0].state == BAD
    assert record.containers[1].state == Terminated(137, "ContainerStatusUnknown", "now", message="lost")


def test_transition_times() -> None:
    """A condition keeps its time as long as its status does."""
    builder, pod = StatusBuilder(), make_pod("pod", {"name": "c0"})
    record = PodRecord([], records(NEW), "t", pod_ip="a")
    builder.build(pod, record, "one")
    record.containers[0].state = RUNNING
    conditions = {entry["type"]: entry for entry in builder.build(pod, record, "two")["conditions"]}
    assert conditions["Ready"]["lastTransitionTime"] == "two"
    assert conditions["Initialized"]["lastTransitionTime"] == "one"


def test_unready_message() -> None:
    """A pod that is not ready says which containers are not."""
    record = PodRecord([], records(RUNNING, LOOP), "t", pod_ip="a")
    status = StatusBuilder().build(make_pod("pod", {"name": "c0"}, {"name": "c1"}), record, "now")
    ready = next(entry for entry in status["conditions"] if entry["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ContainersNotReady")
    assert ready["message"] == "containers with unready status: [c1]"


POD = make_pod("pod", {"name": "main"})


async def test_retries_and_skips() -> None:
    """A failed write is repeated with what is wanted by then, and what was overtaken is never written."""
    api, clock = FakePodApi(), ManualClock()
    writer = StatusWriter(api, clock)
    api.failures = [TransportError("refused"), TransportError("refused")]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        writer.publish(POD, {"phase": "Pending"})
        await clock.wait_for_sleepers()
        writer.publish(POD, {"phase": "Running"})
        writer.publish(POD, {"phase": "Succeeded"})
        await clock.advance(60)
        await writer.flush()
        tasks.cancel_scope.cancel()
    assert api.statuses["pod"] == [{"phase": "Succeeded"}]


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


@pytest.mark.parametrize("published", [False, True], ids=["nothing to write", "pod is gone"])
async def test_flush(published: bool) -> None:
    """Waiting for the last write ends if there is none, or the pod is gone."""
    api = FakePodApi()
    api.deleted.append(POD["metadata"]["uid"])
    writer = StatusWriter(api, ManualClock())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        if published:
            writer.publish(POD, {"phase": "Failed"})
        with anyio.fail_after(10):
            await writer.flush()
        tasks.cancel_scope.cancel()
    assert api.statuses == {}
