"""The states of a TrainJob, as its pods start, fail and end."""

from __future__ import annotations

import pytest

from tests.controllers.conftest import Cluster
from tests.controllers.test_trainjob import COMPLETED, FAILED
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from tests.plugins.test_jobset_pod_problems import (
    CULPRIT,
    JOB,
    READY,
    RESTARTING,
    SAID,
    before,
    going,
    lost,
    pod,
    waiting,
)
from trainer.api.trainjob import TRAIN_JOBS
from trainer.kube.objects import Object
from trainer.kube.resource import PODS
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

SECRET = 'secret "token" not found'


def reported(cluster: Cluster) -> list[tuple[str, str]]:
    """Reason and message of the Warning events."""
    return [(reason, message) for kind, reason, message in cluster.events if kind == "Warning"]


@pytest.mark.parametrize(
    "spec", [pytest.param({}, id="no-deadline"), pytest.param({"activeDeadlineSeconds": 3600}, id="later-deadline")]
)
async def test_pending_until_pods_start(cluster: Cluster, spec: Object) -> None:
    """A missing Secret is reported within seconds, in the condition and in an event; when it is there the job runs."""
    async with cluster.managed():
        await cluster.put(train_job_object(**spec))
        await cluster.run_jobset(active=1)
        await cluster.put(waiting("CreateContainerConfigError", SECRET))
        await cluster.clock.advance(2)
        assert cluster.train_job["status"]["state"] == "Pending"
        message = f"1 pod cannot start: pod demo-node-0-0-a: container trainer: {SECRET}"
        assert cluster.condition("Pending") == ("True", "CreateContainerConfigError", message)
        assert reported(cluster) == [("CreateContainerConfigError", message)]

        await cluster.put(pod(phase="Running", containerStatuses=[{"name": "trainer", "state": {"running": {}}}]))
        await cluster.run_jobset(active=1, ready=1)
        assert cluster.train_job["status"]["state"] == "Running"
        assert cluster.condition("Pending") is not None
        assert cluster.condition("Pending")[:2] == ("False", "NoPodWaits")  # type: ignore[index]
        assert ("Normal", "NoPodWaits", "No pod is waiting any longer") in cluster.events


async def test_a_training_that_hangs(cluster: Cluster) -> None:
    """The state follows the condition Stalled, which the manager of progress writes, at once and back."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
        for status, state in (("True", "Stalled"), ("False", "Running")):
            stalled = {"type": "Stalled", "status": status, "reason": "NoProgress", "message": ""}
            conditions = [each for each in cluster.train_job["status"]["conditions"] if each["type"] != "Stalled"]
            written = {"conditions": [*conditions, stalled | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}
            await cluster.client.patch(TRAIN_JOBS, "demo", {"status": written}, "default", subresource="status")
            await settle()
            assert cluster.train_job["status"]["state"] == state


async def test_a_thousand_pods_are_one_event(cluster: Cluster) -> None:
    """Pods that come into the same trouble are reported once, with their number, and cost few writes."""
    async with cluster.managed():
        await cluster.put(train_job_object(trainer={"numNodes": 1000}))
        cluster.forget_requests()
        for index in range(1000):
            cluster.client.add(waiting("ErrImagePull", "not found", f"demo-node-0-{index}-x"))
        await cluster.clock.advance(5)
        ((reason, message),) = reported(cluster)
        assert reason == "ImagePullBackOff"
        assert message.startswith("at least 512 pods cannot start: for example pod demo-node-0-")
        for index in range(1000):
            cluster.client.add(waiting("ImagePullBackOff", "again", f"demo-node-0-{index}-x"))
        await cluster.clock.advance(5)
        assert len(reported(cluster)) == 1
        assert len([write for write in cluster.writes if write.resource == TRAIN_JOBS]) <= 3


async def test_restarting_until_ready(cluster: Cluster) -> None:
    """Each restart of the JobSet is reported with its cause; once all pods are ready the job runs again."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
        await cluster.put(CULPRIT)
        await cluster.run_jobset("", RESTARTING, active=0)
        jobset = cluster.jobset
        await cluster.put(jobset | {"status": jobset["status"] | {"restarts": 1}})
        assert cluster.train_job["status"]["state"] == "Restarting"
        assert ("RestartingJobSet", f"restart 1: {SAID}") in reported(cluster)

        await cluster.client.delete(PODS, "demo-node-0-0-y", "default")
        await cluster.run_jobset("", READY, active=1, ready=1)
        assert cluster.train_job["status"]["state"] == "Running"
        assert cluster.condition("Restarting") == ("False", "RestartEnded", f"RestartingJobSet: restart 1: {SAID}")
        assert cluster.events[-1] == ("Normal", "RestartEnded", "Pods are ready again")


async def test_node_that_is_lost_for_a_while(cluster: Cluster) -> None:
    """The job is Stopping while nobody hears of the node of a pod, and says which; then it runs again."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset("", READY, active=1, ready=1)
        runs = pod("demo-node-0-0-x", phase="Running")
        await cluster.put(runs)
        await cluster.put(lost(0))
        await cluster.clock.advance(1)
        assert cluster.train_job["status"]["state"] == "Stopping"
        said = "node a is not ready since 2026-01-01T00:00:00Z, with 1 pod on it: demo-node-0-0-x"
        assert cluster.condition("Stopping") == ("True", "NodeNotReady", said)
        assert ("NodeNotReady", said) in reported(cluster)

        await cluster.put(runs)
        await cluster.clock.advance(1)
        assert cluster.train_job["status"]["state"] == "Running"
        assert cluster.condition("Stopping") == ("False", "PodsGone", f"NodeNotReady: {said}")


RUNNING: Object = {"phase": "Running", "containerStatuses": [{"name": "trainer", "state": {"running": {}}}]}


async def test_stopping_before_it_restarts(cluster: Cluster) -> None:
    """Pods that go are reported with the one that was deleted first; it never runs until new ones are ready."""
    states: list[str] = []

    def look() -> None:
        state = cluster.train_job["status"]["state"]
        if states[-1:] != [state]:
            states.append(state)

    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.put(JOB)
        for name in ("a", "b"):
            await cluster.put(before(going(name)))
        await cluster.run_jobset(active=1, ready=1)
        for name in ("b", "a"):
            await cluster.put(going(name))
        await cluster.clock.advance(2)
        look()
        said = "node-0, node-0 are stopping since 2026-01-01T00:00:05Z: pod b was deleted, and not by its Job"
        assert cluster.condition("Stopping") == ("True", "StoppingPods", said)
        await cluster.run_jobset(active=0, ready=0)
        look()
        for name in ("a", "b"):
            await cluster.client.delete(PODS, name, "default")
        await cluster.clock.advance(2)
        look()
        jobset = cluster.jobset
        await cluster.put(jobset | {"status": jobset["status"] | {"restarts": 1, "conditions": [RESTARTING]}})
        look()
        assert ("RestartingJobSet", "restart 1: pod b was deleted, and not by its Job") in reported(cluster)
        await cluster.run_jobset("", READY, active=1, ready=1)
        look()
    assert states == ["Stopping", "Restarting", "Running"]


async def test_a_suspension_costs_one_more_write(cluster: Cluster) -> None:
    """A suspended TrainJob is Stopping with the first write, and Suspended once its pods are gone."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.put(pod(**RUNNING))
        await cluster.run_jobset(active=1, ready=1)
        cluster.forget_requests()
        await cluster.change(cluster.train_job, suspend=True)
        assert cluster.train_job["status"]["state"] == "Stopping"
        await cluster.put(going("demo-node-0-0-a"))
        await cluster.clock.advance(2)
        assert cluster.train_job["status"]["state"] == "Stopping"
        await cluster.client.delete(PODS, "demo-node-0-0-a", "default")
        await cluster.clock.advance(2)
        assert cluster.train_job["status"]["state"] == "Suspended"
        written = [write for write in cluster.writes if write.resource == TRAIN_JOBS and write.subresource == "status"]
        assert len(written) == 2


async def test_a_failure_shows_the_last_log_lines(cluster: Cluster) -> None:
    """They are in the message of the condition, and in an event of their own."""
    cluster.client.add(runtime_object(replicated_job(job={"backoffLimit": 0})))
    cluster.client.add(CULPRIT)
    log = cluster.client.log("demo-node-0-0-y", "default", "trainer")
    log.write(b"Traceback\nValueError: lr\n")
    log.end()
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset("Failed", FAILED, failed=1)
        assert cluster.condition("Failed") == (
            "True",
            "FailedJobs",
            f"node-0: ValueError: lr\n{SAID}; a job failed\nlast lines of its log:\nTraceback\nValueError: lr",
        )
        assert reported(cluster) == [
            ("FailedJobs", "node-0: ValueError: lr"),
            ("LastLogLines", "pod demo-node-0-0-y, container trainer:\nTraceback\nValueError: lr"),
        ]
        cluster.forget_requests()
        await cluster.resync()
        assert cluster.client.requests == [], "it is not read twice"


async def test_looking_again_in_trouble_sends_nothing(cluster: Cluster) -> None:
    """Trouble that goes on is written once, also by a manager that has just been started."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset("", RESTARTING, active=1)
        await cluster.put(waiting("ErrImagePull", "not found"))
        await cluster.clock.advance(2)
        assert cluster.train_job["status"]["state"] == "Pending"
        cluster.forget_requests()
        await cluster.resync()
        await cluster.put(waiting("ImagePullBackOff", "back-off"))
        await cluster.clock.advance(2)
        assert cluster.client.requests == []
    async with cluster.managed():
        await cluster.clock.advance(2)
        assert cluster.writes == []


@pytest.mark.parametrize("terminal", ["Completed", "Failed"])
async def test_the_end_is_final(cluster: Cluster, terminal: str) -> None:
    """A finished job's conditions do not change, whatever is done to it; that the change was seen is reported."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(terminal, COMPLETED if terminal == "Completed" else FAILED)
        before = cluster.train_job["status"]
        await cluster.clock.advance(60)
        await cluster.change(cluster.train_job, suspend=True)
        generation = cluster.train_job["metadata"]["generation"]
        assert cluster.train_job["status"] == before | {"observedGeneration": generation}
        await cluster.client.delete(JOBSETS, "demo", "default")
        assert cluster.train_job["status"]["jobsStatus"] == before["jobsStatus"]
