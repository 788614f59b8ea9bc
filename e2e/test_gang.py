"""Gang scheduling: what a TrainJob tells the scheduler, from before its kinds are installed until the TrainJob is gone.

What schedulers make of it is in `test_scheduling`.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from e2e.cluster import IMAGE, Cluster, train_job
from e2e.gang_schedulers import COSCHEDULING, VOLCANO, installed
from e2e.waiting import until

POLLING = 60.0
"""Seconds within which a manager finds that a kind has been installed; it looks twice as often."""

KINDS = {"coscheduling": COSCHEDULING, "volcano": VOLCANO}
POLICIES: dict[str, dict[str, Any]] = {
    "coscheduling": {"scheduleTimeoutSeconds": 100},
    "volcano": {"networkTopology": {"mode": "soft", "highestTierAllowed": 2}},
}
SPECS: dict[str, dict[str, Any]] = {
    "coscheduling": {"scheduleTimeoutSeconds": 100},
    "volcano": {"queue": "research", "networkTopology": {"mode": "soft", "highestTierAllowed": 2}},
}
MEMBERSHIPS = {
    "coscheduling": {"labels": {"scheduling.x-k8s.io/pod-group": "coscheduling"}},
    "volcano": {"annotations": {"scheduling.k8s.io/group-name": "volcano"}},
}
"""By which pods know their PodGroup."""

LIMIT_RANGE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "scratch"},
    "spec": {"limits": [{"type": "Container", "defaultRequest": {"ephemeral-storage": "1Mi"}}]},
}


@pytest.fixture
def gangs(cluster: Cluster) -> Cluster:
    """A namespace of a cluster whose kinds are ours to install."""
    if not cluster.is_local:
        pytest.skip("installs and removes the CRDs of gang schedulers, and needs a cluster without such schedulers")
    return cluster


def runtime(scheduler: str) -> dict[str, Any]:
    """A runtime with an initializer, which runs before the gang."""
    resources = {"limits": {"cpu": "10m"}, "requests": {"memory": "8Mi"}}
    return {
        "apiVersion": "trainer.kubeflow.org/v2alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": scheduler},
        "spec": {
            "mlPolicy": {"numNodes": 2},
            "podGroupPolicy": {scheduler: POLICIES[scheduler]},
            "template": {
                "metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "research"}},
                "spec": {
                    "startupPolicy": {"startupPolicyOrder": "InOrder"},
                    "replicatedJobs": [
                        replicated_job("dataset-initializer", scheduler, command=["python", "-c", "print('ready')"]),
                        replicated_job("node", scheduler, resources=resources),
                    ],
                },
            },
        },
    }


def replicated_job(name: str, scheduler: str, **container: Any) -> dict[str, Any]:
    """A replicated Job with one pod."""
    role = "trainer" if name == "node" else name
    pod = {
        "schedulerName": scheduler,
        "restartPolicy": "Never",
        "containers": [{"name": role, "image": IMAGE, **container}],
    }
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": role}
    return {"name": name, "template": {"metadata": {"labels": labels}, "spec": {"template": {"spec": pod}}}}


def gang_job(scheduler: str) -> dict[str, Any]:
    """A suspended TrainJob of two nodes, whose name is that of its scheduler."""
    ref = {"kind": "TrainingRuntime", "name": scheduler}
    return train_job(scheduler, "print('trained')", nodes=2, runtimeRef=ref, suspend=True)


def test_from_the_installation_to_the_end(gangs: Cluster) -> None:
    """Blocked without the kind, built once it is there, kept up to date while it is suspended, and gone in the end."""
    # Admission lets TrainJobs pass whose runtime it cannot see yet.
    gangs.apply(*(gang_job(scheduler) for scheduler in KINDS))
    gangs.apply(*(runtime(scheduler) for scheduler in KINDS))
    for scheduler in KINDS:
        until(partial(is_what_lacks_reported, gangs, scheduler), f"TrainJob {scheduler} says what the cluster lacks")
        gangs.wait_for_state(scheduler, "Blocked")
        assert gangs.get("jobset", scheduler) is None

    with installed(gangs, *KINDS.values()):
        for scheduler in KINDS:
            gangs.wait_for_state(scheduler, "Suspended", timeout=POLLING)
            assert created(gangs, scheduler)["status"] == "True"
            assert pod_group(gangs, scheduler)["spec"] == SPECS[scheduler] | {
                "minMember": 2,
                "minResources": {"cpu": "20m", "memory": "16Mi"},
            }
            check_ownership(gangs, scheduler)

        gangs.apply(LIMIT_RANGE)
        queue = json.dumps({"spec": {"annotations": {"scheduling.volcano.sh/queue-name": "production"}}})
        gangs.kubectl("patch", "trainjob", "volcano", "--type=merge", "-p", queue)

        for scheduler in KINDS:
            until(partial(counts_limit_range, gangs, scheduler), "what a LimitRange adds is counted")
        until(lambda: pod_group(gangs, "volcano")["spec"]["queue"] == "production", "the queue has changed")

        gangs.kubectl("patch", "trainjob", "coscheduling", "--type=merge", "-p", '{"spec":{"suspend":false}}')
        gangs.kubectl("delete", "trainjob", "volcano")

        assert gangs.wait_for_state("coscheduling", "Complete", "Failed") == "Complete"
        for scheduler, kind in KINDS.items():
            until(partial(is_gone, gangs, kind, scheduler), f"{kind} {scheduler} is gone")


def test_without_the_kind(gangs: Cluster) -> None:
    """A TrainJob whose runtime wants a gang where there is no such scheduler is refused with the remedy."""
    for scheduler in KINDS:
        gangs.apply(runtime(scheduler))
        # Another test may have had the kind, of whose removal the manager hears when its watch has ended.
        until(partial(is_refused, gangs, scheduler, "--dry-run=server"), f"the manager misses the kind of {scheduler}")
        assert is_refused(gangs, scheduler)
        assert gangs.get("trainjob", scheduler) is None


def is_refused(cluster: Cluster, scheduler: str, *options: str) -> bool:
    """Whether a TrainJob cannot be created for the lack of the kind."""
    job = json.dumps(gang_job(scheduler))
    answer = cluster.kubectl("apply", *options, "-f", "-", stdin=job, check=False)
    return f"{lack(scheduler)}; install " in answer.stderr


def lack(scheduler: str) -> str:
    """What is said of a cluster that does not have the scheduler."""
    field = f"TrainingRuntime/{scheduler} spec.podGroupPolicy.{scheduler}"
    return f"{field}: Forbidden: the cluster does not have {KINDS[scheduler]}"


def is_what_lacks_reported(cluster: Cluster, scheduler: str) -> bool:
    """Whether the condition Created says so."""
    return lack(scheduler) in created(cluster, scheduler)["message"]


def check_ownership(cluster: Cluster, scheduler: str) -> None:
    """The PodGroup goes with its TrainJob, and the pods of the nodes, but no others, belong to it."""
    train_job, jobset = cluster.get("trainjob", scheduler), cluster.get("jobset", scheduler)
    assert train_job is not None
    assert jobset is not None
    (owner,) = pod_group(cluster, scheduler)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("TrainJob", train_job["metadata"]["uid"], True)
    pods = {job["name"]: job["template"]["spec"]["template"] for job in jobset["spec"]["replicatedJobs"]}
    assert pods["node"]["metadata"] == MEMBERSHIPS[scheduler]
    assert not pods["dataset-initializer"].get("metadata")


def pod_group(cluster: Cluster, scheduler: str) -> dict[str, Any]:
    """The PodGroup of a TrainJob."""
    found = cluster.get(KINDS[scheduler], scheduler)
    assert found is not None
    return found


def counts_limit_range(cluster: Cluster, scheduler: str) -> bool:
    """Whether the gang needs what the LimitRange adds to each of its two pods."""
    return bool(pod_group(cluster, scheduler)["spec"]["minResources"].get("ephemeral-storage") == "2Mi")


def is_gone(cluster: Cluster, kind: str, name: str) -> bool:
    """Whether there is no such object."""
    return cluster.get(kind, name) is None


def created(cluster: Cluster, scheduler: str) -> dict[str, Any]:
    """The condition Created of a TrainJob; without a message while it has none."""
    job = cluster.get("trainjob", scheduler) or {}
    conditions = (job.get("status") or {}).get("conditions") or []
    return next((item for item in conditions if item["type"] == "Created"), {"message": ""})
