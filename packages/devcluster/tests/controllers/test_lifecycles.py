"""Lives of Jobs and JobSets, with the real API server and controllers; the test plays the kubelet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from packages.devcluster.tests.controllers.cluster import NAMESPACE, Cluster, dev_cluster
from trainer.kube.client import PatchType
from trainer.kube.objects import Object, annotations_of, labels_of, name_of
from trainer.kube.resource import EVENTS, JOBS, PODS, Resource
from trainer.workloads import JOBSETS
from trainer_devcluster.feature_gates import FeatureGates

Step: TypeAlias = Callable[[Cluster], Awaitable[None]]

GATES = FeatureGates(elastic_job_set=True)
FIRST = "(first failed job: {})"


def pods(job: str, phase: str, index: int | None = None, code: int | None = None) -> Step:
    """The kubelet has the unfinished pods of a Job, or of one index of it, reach a phase."""

    async def step(cluster: Cluster) -> None:
        for pod in await cluster.all(PODS):
            labels = labels_of(pod)
            if labels.get("job-name") != job or pod["status"]["phase"] in ("Succeeded", "Failed"):
                continue
            if index is None or labels.get("batch.kubernetes.io/job-completion-index") == str(index):
                await cluster.client.patch(
                    PODS, name_of(pod), {"status": reported(phase, code)}, NAMESPACE, subresource="status"
                )

    return step


def reported(phase: str, code: int | None) -> Object:
    """What a kubelet says about a pod with one container that ended long ago, if it has ended."""
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
    exit_code = {"Failed": 1, "Succeeded": 0}.get(phase) if code is None else code
    if exit_code is None:
        return {"phase": phase, "conditions": [ready]}
    ended = {"exitCode": exit_code, "finishedAt": "2026-01-01T00:00:00Z"}
    status = {"name": "c", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    return {"phase": phase, "conditions": [ready], "containerStatuses": [{**status, "state": {"terminated": ended}}]}


def patch(resource: Resource, name: str, **spec: Any) -> Step:
    """A user changes a specification."""

    async def step(cluster: Cluster) -> None:
        await cluster.client.patch(resource, name, {"spec": spec}, NAMESPACE, patch_type=PatchType.MERGE)

    return step


async def nothing(_: Cluster) -> None:
    """Nobody does anything."""


def make_replicated_job(name: str, replicas: int = 1, **job_spec: Any) -> Object:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    spec = {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": template, **job_spec}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}}


def make_jobset(*replicated_jobs: Object, **spec: Any) -> tuple[Resource, Object]:
    return JOBSETS, {"metadata": {"name": "a"}, "spec": {"replicatedJobs": list(replicated_jobs), **spec}}


async def seen(cluster: Cluster) -> dict[str, Any]:
    """What there is, in few words: `name`: conditions and counts of (Job)Sets; `pods`: failure count and phase."""
    found: dict[str, Any] = {}
    for resource in (JOBSETS, JOBS):
        for obj in await cluster.all(resource):
            status = obj.get("status") or {}
            conditions = [
                f"{'' if entry['status'] == 'True' else 'not '}{entry['type']} {entry['reason']}"
                for entry in status.get("conditions") or []
            ]
            counts = {
                field: status[field]
                for field in ("restarts", "active", "succeeded", "failed", "completedIndexes")
                if status.get(field)
            }
            found[name_of(obj)] = [*conditions, *(f"{field} {value}" for field, value in counts.items())]
    found["pods"] = sorted(_pod(pod) for pod in await cluster.all(PODS))
    return found


def _pod(pod: Object) -> str:
    counts = [value for name, value in sorted(annotations_of(pod).items()) if "failure-count" in name]
    return " ".join([pod["metadata"]["generateName"], *counts, pod["status"]["phase"]])


async def expect(cluster: Cluster, expected: dict[str, Any]) -> None:
    """Wait until there is exactly this, or say what there is instead."""

    async def is_so() -> bool:
        return await seen(cluster) == expected

    with suppress(TimeoutError):
        await cluster.until(is_so)
    assert await seen(cluster) == expected


FAILURE_POLICY = {
    "maxRestarts": 3,
    "rules": [
        {
            "action": "FailJobSet",
            "onJobFailureReasons": ["PodFailurePolicy"],
            "onJobFailureMessagePatterns": [r"exit code 42\b"],
        },
        {"action": "RestartJobSetAndIgnoreMaxRestarts", "targetReplicatedJobs": ["y"]},
    ],
}
POD_POLICY = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}


@pytest.mark.parametrize(
    ("made", "steps", "events"),
    [
        pytest.param(
            make_jobset(
                make_replicated_job("x", podFailurePolicy=POD_POLICY, backoffLimit=3), make_replicated_job("y"),
                failurePolicy=FAILURE_POLICY,
            ),
            [
                (pods("a-y-0", "Failed"),
                 {"a": ["RestartingJobSet FailurePolicy_failurePolicyRule1", "restarts 1"], "a-x-0": ["active 1"],
                  "a-y-0": ["active 1"], "pods": ["a-x-0-0- Pending", "a-y-0-0- Pending"]}),
                (pods("a-x-0", "Failed", code=42),
                 {"a": ["not RestartingJobSet JobSetFailed", "Failed FailJobSetFailurePolicyAction", "restarts 1"],
                  "a-x-0": ["FailureTarget PodFailurePolicy", "Failed PodFailurePolicy", "failed 1"],
                  "pods": ["a-x-0-0- Failed"]}),
            ],
            {"JobSet Warning RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction applying "
             "RestartJobSetAndIgnoreMaxRestarts failure policy action " + FIRST.format("a-y-0")},
            id="rules of the failure policy",
        ),
        pytest.param(
            make_jobset(make_replicated_job("x"), make_replicated_job("y"), suspend=True,
                        startupPolicy={"startupPolicyOrder": "InOrder"}),
            [
                (nothing, {"a": ["Suspended SuspendedJobs"], "a-x-0": ["Suspended JobSuspended"],
                           "a-y-0": ["Suspended JobSuspended"], "pods": []}),
                (patch(JOBSETS, "a", suspend=False),
                 {"a": ["Suspended SuspendedJobs", "StartupPolicyInProgress InOrderStartupPolicyInProgress"],
                  "a-x-0": ["not Suspended JobResumed", "active 1"], "a-y-0": ["Suspended JobSuspended"],
                  "pods": ["a-x-0-0- Pending"]}),
                (pods("a-x-0", "Running"),
                 {"a": ["Suspended SuspendedJobs", "StartupPolicyInProgress InOrderStartupPolicyInProgress"],
                  "a-x-0": ["not Suspended JobResumed", "active 1"], "a-y-0": ["not Suspended JobResumed", "active 1"],
                  "pods": ["a-x-0-0- Running", "a-y-0-0- Pending"]}),
                (pods("a-y-0", "Running"),
                 {"a": ["not Suspended ResumeJobs", "not StartupPolicyInProgress InOrderStartupPolicyInProgress",
                        "StartupPolicyCompleted InOrderStartupPolicyCompleted"],
                  "a-x-0": ["not Suspended JobResumed", "active 1"], "a-y-0": ["not Suspended JobResumed", "active 1"],
                  "pods": ["a-x-0-0- Running", "a-y-0-0- Running"]}),
            ],
            {"JobSet Normal ResumeJobs jobset is resumed",
             "JobSet Normal InOrderStartupPolicyCompleted in order startup policy has completed"},
            id="resumed in order",
        ),
    ],
)  # fmt: skip
async def test_life(
    made: tuple[Resource, Object],
    steps: list[tuple[Step, dict[str, Any]]],
    events: set[str],
    tmp_path: Path,
) -> None:
    """After each step the controllers come to what is expected, and in the end they have written events about it."""
    async with dev_cluster(tmp_path, GATES) as cluster, cluster.controllers():
        await cluster.create(*made)
        await cluster.until(lambda: _is_reconciled(cluster, made))
        for step, expected in steps:
            await step(cluster)
            await expect(cluster, expected)
        await cluster.until(lambda: _are_reported(cluster, events))


async def _is_reconciled(cluster: Cluster, made: tuple[Resource, Object]) -> bool:
    """Whether all pods that a step may want to change exist, or the first event tells why they do not."""
    jobs = await cluster.all(JOBS)
    is_complete = all((job.get("status") or {}).get("active") or job["spec"].get("suspend") for job in jobs)
    wanted = sum(entry["replicas"] for entry in made[1]["spec"].get("replicatedJobs") or [{"replicas": 1}])
    return (is_complete and len(jobs) == wanted) or bool(await _reported(cluster, "Warning"))


async def _are_reported(cluster: Cluster, events: set[str]) -> bool:
    return events <= await _reported(cluster)


async def _reported(cluster: Cluster, kind: str = "") -> set[str]:
    return {
        f"{event['involvedObject']['kind']} {event['type']} {event['reason']} {event['message']}"
        for event in await cluster.all(EVENTS)
        if kind in event["type"]
    }
