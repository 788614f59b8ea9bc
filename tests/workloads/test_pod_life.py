"""What happens to a pod, from its object and its Job."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.kube.objects import Object
from trainer.workloads.disruption import Disruption
from trainer.workloads.pod_life import PodLife, PodState, node_lost_since, pod_life

T0, T1, T2, T3 = (f"2026-01-01T00:00:0{second}Z" for second in range(4))
SCHEDULED = {"type": "PodScheduled", "status": "True"}
READY_TO_START = {"type": "PodReadyToStartContainers", "status": "True"}
RUNS = {"running": {"startedAt": T0}}


def ended(code: int, at: str = T1, reason: str = "", message: str = "") -> Object:
    """The state of a container that has ended."""
    found: Object = {"exitCode": code, "finishedAt": at, "reason": reason or ("Error" if code else "Completed")}
    return {"terminated": found | ({"message": message} if message else {})}


def waits(reason: str, message: str = "") -> Object:
    """The state of a container that has not been started."""
    return {"waiting": {"reason": reason, "message": message}}


def disrupted(reason: str, at: str = T1, message: str = "") -> Object:
    """The condition of a pod that somebody takes away."""
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": at,
    }


def deleted(at: str = T1, grace: int = 30) -> Object:
    """Metadata of a pod whose deletion was asked for at a second below 10."""
    end = f"2026-01-01T00:00:{int(at[17:19]) + grace:02}Z"
    return {"deletionTimestamp": end, "deletionGracePeriodSeconds": grace}


def pod(
    phase: str,
    states: dict[str, Object],
    *conditions: Object,
    init: dict[str, Object] | None = None,
    sidecars: tuple[str, ...] = (),
    metadata: Object | None = None,
    policy: str = "Never",
    **status: Any,
) -> Object:
    """A pod with a node and containers in these states; an empty state stands for none."""
    init = init or {}

    def statuses(of: dict[str, Object]) -> list[Object]:
        return [{"name": name, "state": state} for name, state in of.items() if state]

    return {
        "metadata": {"name": "job-node-0-0-x", **(metadata or {})},
        "spec": {
            "nodeName": "gpu-1",
            "restartPolicy": policy,
            "initContainers": [
                {"name": each} | ({"restartPolicy": "Always"} if each in sidecars else {}) for each in init
            ],
            "containers": [{"name": name} for name in states],
        },
        "status": {
            "phase": phase,
            "conditions": list(conditions),
            "initContainerStatuses": statuses(init),
            "containerStatuses": statuses(states),
            **status,
        },
    }


def job(*conditions: tuple[str, str], metadata: Object | None = None, **spec: Any) -> Object:
    """A Job with conditions and the times since when they hold."""
    found = [{"type": kind, "status": "True", "reason": "Because", "lastTransitionTime": at} for kind, at in conditions]
    return {"metadata": {"name": "job-node-0", **(metadata or {})}, "spec": spec, "status": {"conditions": found}}


def unscheduled(*conditions: Object) -> Object:
    """A pod without a node."""
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "trainer"}]},
        "status": {"conditions": list(conditions)},
    }


NO_ROOM = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes",
    "lastTransitionTime": T0,
}


@pytest.mark.parametrize(
    ("subject", "state", "reason", "container"),
    [
        pytest.param(unscheduled(), "Starting", "Unseen", "", id="no scheduler has looked at it"),
        pytest.param(unscheduled(NO_ROOM), "Waiting", "Unschedulable", "", id="no room"),
        pytest.param(
            pod("Pending", {"trainer": {}}, SCHEDULED), "Starting", "PreparingPod", "", id="volumes and network"
        ),
        pytest.param(
            pod("Pending", {"trainer": waits("ContainerCreating")}, READY_TO_START),
            "Starting",
            "ContainerCreating",
            "trainer",
            id="pulls its image",
        ),
        pytest.param(
            pod("Pending", {"trainer": waits("ErrImagePull", "no such image")}, READY_TO_START),
            "Waiting",
            "ImagePullBackOff",
            "trainer",
            id="its image cannot be pulled",
        ),
        pytest.param(
            pod("Pending", {"trainer": waits("PodInitializing")}, READY_TO_START, init={"fetch": RUNS}),
            "Starting",
            "PodInitializing",
            "fetch",
            id="an init container runs",
        ),
        pytest.param(
            pod(
                "Pending",
                {"trainer": waits("PodInitializing")},
                READY_TO_START,
                init={"proxy": RUNS},
                sidecars=("proxy",),
            ),
            "Starting",
            "PodInitializing",
            "proxy",
            id="a sidecar that never starts holds the pod back",
        ),
        pytest.param(pod("Running", {"trainer": RUNS, "proxy": RUNS}), "Running", "", "trainer", id="runs"),
        pytest.param(pod("Running", {}), "Running", "", "", id="says no more than its phase"),
        pytest.param(
            pod("Running", {"trainer": ended(1)}, policy="OnFailure"), "Running", "", "trainer", id="between two runs"
        ),
        pytest.param(
            pod("Running", {"trainer": waits("CrashLoopBackOff")}, policy="OnFailure"),
            "Waiting",
            "CrashLoopBackOff",
            "trainer",
            id="waits for its next start",
        ),
        pytest.param(pod("Succeeded", {"trainer": ended(0)}), "Succeeded", "Completed", "", id="succeeded"),
    ],
)
def test_before_and_while_it_runs(subject: Object, state: str, reason: str, container: str) -> None:
    """A pod waits for a reason, is on its way, runs, or has ended well."""
    life = pod_life(subject)

    assert (life.state, life.reason, life.container) == (state, reason, container)
    assert life.disruption is None
    assert not life.is_failure


@pytest.mark.parametrize(
    ("subject", "state", "reason", "held_by"),
    [
        pytest.param(
            pod("Running", {"trainer": ended(0), "proxy": RUNS}), "Held", "EndedAndHeld", ("proxy",), id="a container"
        ),
        pytest.param(
            pod("Running", {"proxy": RUNS, "logs": RUNS, "node": ended(0)}),
            "Held",
            "EndedAndHeld",
            ("proxy", "logs"),
            id="several, and the one that trains comes last",
        ),
        pytest.param(
            pod("Running", {"trainer": ended(0)}, init={"proxy": RUNS}, sidecars=("proxy",)),
            "Held",
            "EndedAndHeld",
            ("proxy",),
            id="a native sidecar that does not end when it is asked to",
        ),
        pytest.param(
            pod("Running", {"trainer": ended(0), "proxy": waits("CrashLoopBackOff")}, policy="OnFailure"),
            "Held",
            "EndedAndHeld",
            ("proxy",),
            id="a container that fails again and again",
        ),
        pytest.param(
            pod("Running", {"trainer": ended(0), "proxy": ended(0)}), "Succeeded", "Completed", (), id="nobody any more"
        ),
        pytest.param(pod("Running", {"trainer": RUNS, "setup": ended(0)}), "Running", "", (), id="a helper has ended"),
        pytest.param(
            pod("Running", {"trainer": ended(0), "proxy": RUNS}, policy="Always"),
            "Running",
            "",
            (),
            id="is started again",
        ),
        pytest.param(
            pod("Running", {"trainer": ended(3), "proxy": RUNS}), "Failed", "Error", ("proxy",), id="failed and held"
        ),
        pytest.param(
            pod("Running", {"trainer": ended(137, reason="OOMKilled"), "proxy": RUNS}),
            "Killed",
            "OOMKilled",
            ("proxy",),
            id="killed and held",
        ),
    ],
)
def test_held(subject: Object, state: str, reason: str, held_by: tuple[str, ...]) -> None:
    """A pod whose training has ended for good, and whose other containers keep it, is held by these."""
    life = pod_life(subject)

    assert (life.state, life.reason, life.held_by) == (state, reason, held_by)
    assert not life.has_ended


@pytest.mark.parametrize(
    ("subject", "state", "reason", "container", "code"),
    [
        pytest.param(pod("Failed", {"trainer": ended(1)}), "Failed", "Error", "trainer", 1, id="failed by itself"),
        pytest.param(
            pod("Failed", {"trainer": ended(137, reason="OOMKilled")}),
            "Killed",
            "OOMKilled",
            "trainer",
            137,
            id="memory",
        ),
        pytest.param(
            pod("Failed", {"trainer": ended(1, reason="OOMKilled")}),
            "Killed",
            "OOMKilled",
            "trainer",
            1,
            id="memory of a process whose parent reports it",
        ),
        pytest.param(
            pod("Failed", {"trainer": ended(1, T2), "proxy": ended(137, T1, "OOMKilled")}),
            "Killed",
            "OOMKilled",
            "proxy",
            137,
            id="memory of a sidecar comes first",
        ),
        pytest.param(
            pod("Failed", {"trainer": ended(137)}), "Killed", "SIGKILL", "trainer", 137, id="killed by somebody"
        ),
        pytest.param(
            pod("Failed", {"trainer": ended(143)}), "Killed", "SIGTERM", "trainer", 143, id="ended by somebody"
        ),
        pytest.param(
            pod("Failed", {"trainer": ended(137, reason="ContainerStatusUnknown")}),
            "Killed",
            "ContainerStatusUnknown",
            "trainer",
            137,
            id="the kubelet has lost it",
        ),
        pytest.param(
            pod("Failed", {"trainer": {}}, init={"fetch": ended(2)}), "Failed", "Error", "fetch", 2, id="init container"
        ),
        pytest.param(
            pod("Failed", {"trainer": ended(128, reason="StartError")}),
            "Failed",
            "StartError",
            "trainer",
            128,
            id="no start",
        ),
        pytest.param(
            pod("Failed", {"trainer": {}}, reason="OutOfcpu", message="no room"),
            "Failed",
            "OutOfcpu",
            "",
            None,
            id="refused by the kubelet",
        ),
        pytest.param(pod("Failed", {}), "Failed", "Failed", "", None, id="says nothing"),
        pytest.param(
            pod("Failed", {"trainer": ended(143), "proxy": ended(1)}),
            "Failed",
            "Error",
            "proxy",
            1,
            id="of the same second the one that nobody has killed",
        ),
    ],
)
def test_ends(subject: Object, state: str, reason: str, container: str, code: int | None) -> None:
    """A pod has failed by itself or was killed, by the container that ended first."""
    life = pod_life(subject)

    assert (life.state, life.reason, life.container, life.exit_code) == (state, reason, container, code)
    assert life.is_failure
    assert life.has_ended
    assert life.node == "gpu-1"


@pytest.mark.parametrize(
    ("subject", "reason", "disruption"),
    [
        pytest.param(
            pod("Failed", {"trainer": ended(143, T2)}, disrupted(word, message="because")),
            word,
            Disruption(word),
            id=word,
        )
        for word in (
            "EvictionByEvictionAPI",
            "PreemptionByScheduler",
            "DeletionByTaintManager",
            "TerminationByKubelet",
            "DeletionByPodGC",
        )
    ]
    + [
        pytest.param(
            pod("Running", {"trainer": RUNS}, disrupted("EvictionByEvictionAPI"), metadata=deleted()),
            "EvictionByEvictionAPI",
            Disruption.EVICTION,
            id="is still ending",
        ),
        pytest.param(
            pod("Failed", {"trainer": ended(1, T2)}, disrupted("PreemptionByScheduler"), metadata=deleted()),
            "PreemptionByScheduler",
            Disruption.PREEMPTION,
            id="its program answers the signal with 1",
        ),
        pytest.param(
            pod(
                "Failed",
                {"trainer": ended(137, reason="OOMKilled")},
                disrupted("TerminationByKubelet"),
                reason="Evicted",
            ),
            "TerminationByKubelet",
            Disruption.KUBELET,
            id="pressure of its node",
        ),
        pytest.param(
            pod("Failed", {"trainer": {}}, reason="Evicted", message="The node was low on resource: memory."),
            "TerminationByKubelet",
            Disruption.KUBELET,
            id="before there was a condition",
        ),
        pytest.param(
            pod("Running", {"trainer": RUNS}, metadata=deleted(), reason="NodeLost"),
            "NodeLost",
            Disruption.OTHER,
            id="its node does not answer",
        ),
        pytest.param(
            pod("Failed", {"trainer": ended(143)}, disrupted("ExclusivePlacementViolation")),
            "ExclusivePlacementViolation",
            Disruption.OTHER,
            id="another controller",
        ),
        pytest.param(
            pod("Succeeded", {"trainer": ended(0, T3)}, disrupted("EvictionByEvictionAPI")),
            "EvictionByEvictionAPI",
            Disruption.EVICTION,
            id="its program answers the signal with 0",
        ),
        pytest.param(pod("Failed", {"trainer": ended(75)}), "SavedAndEnded", Disruption.SAVED, id="saved and ended"),
        pytest.param(
            pod("Failed", {"trainer": ended(75, T2)}, disrupted("EvictionByEvictionAPI")),
            "EvictionByEvictionAPI",
            Disruption.EVICTION,
            id="saved and ended when it was evicted",
        ),
    ],
)
def test_disruptions(subject: Object, reason: str, disruption: Disruption) -> None:
    """A pod that somebody takes away is disrupted, with the word of Kubernetes, whatever its program answers."""
    life = pod_life(subject)

    assert (life.state, life.reason, life.disruption) == (PodState.DISRUPTED, reason, disruption)
    assert not life.is_failure


@pytest.mark.parametrize(
    ("subject", "state"),
    [
        pytest.param(
            pod("Running", {"trainer": RUNS}, disrupted("EvictionByEvictionAPI")), "Running", id="not deleted yet"
        ),
        pytest.param(
            pod("Failed", {"trainer": ended(1, T0)}, disrupted("EvictionByEvictionAPI", T2)),
            "Failed",
            id="failed before",
        ),
        pytest.param(
            pod("Failed", {"trainer": ended(1)}, disrupted("EvictionByEvictionAPI") | {"status": "False"}),
            "Failed",
            id="the condition is over",
        ),
        pytest.param(
            pod("Succeeded", {"trainer": ended(0)}, disrupted("EvictionByEvictionAPI")), "Succeeded", id="done before"
        ),
    ],
)
def test_no_disruption(subject: Object, state: str) -> None:
    """What a pod had come to before somebody took it away is no disruption."""
    assert pod_life(subject).state == state


GOING = pod("Running", {"trainer": RUNS}, metadata=deleted(T1))


@pytest.mark.parametrize(
    ("subject", "of", "state", "reason"),
    [
        pytest.param(GOING, None, "Terminating", "Deleted", id="nobody knows by whom"),
        pytest.param(GOING, job(), "Disrupted", "Deleted", id="its Job had no reason to"),
        pytest.param(GOING, job(("FailureTarget", T2)), "Disrupted", "Deleted", id="its Job has failed since"),
        pytest.param(GOING, job(("FailureTarget", T0)), "Terminating", "JobFailed", id="its Job had failed"),
        pytest.param(GOING, job(("Failed", T1)), "Terminating", "Deleted", id="its Job failed within the same second"),
        pytest.param(GOING, job(suspend=True), "Terminating", "JobSuspended", id="its Job is to be suspended"),
        pytest.param(
            GOING, job(("Suspended", T1), suspend=True), "Terminating", "JobSuspended", id="its Job is suspended"
        ),
        pytest.param(GOING, job(metadata=deleted(T0, 0)), "Terminating", "JobDeleted", id="its Job was deleted"),
        pytest.param(GOING, job(("SuccessCriteriaMet", T0)), "Terminating", "JobComplete", id="its Job is complete"),
        pytest.param(
            pod(
                "Running",
                {"trainer": RUNS},
                metadata=deleted() | {"labels": {"batch.kubernetes.io/job-completion-index": "2"}},
            ),
            job(completions=2),
            "Terminating",
            "JobScaledDown",
            id="its Job has become smaller",
        ),
        pytest.param(
            pod("Failed", {"trainer": ended(1, T1)}, metadata=deleted(T1)),
            job(),
            "Disrupted",
            "Deleted",
            id="its program answers the signal with 1",
        ),
        pytest.param(
            pod("Failed", {"trainer": ended(1, T1)}, metadata=deleted(T1, 0)),
            None,
            "Failed",
            "Error",
            id="it had failed when it was deleted",
        ),
        pytest.param(
            pod("Failed", {"trainer": ended(143, T0)}, metadata=deleted(T2)),
            None,
            "Killed",
            "SIGTERM",
            id="it was asked to end before it was deleted",
        ),
        pytest.param(
            {"metadata": {"name": "p", **deleted(T1, 0)}, "spec": {}, "status": {"phase": "Pending"}},
            None,
            "Terminating",
            "Deleted",
            id="it had no node yet",
        ),
    ],
)
def test_deletions(subject: Object, of: Object | None, state: str, reason: str) -> None:
    """The Job of a deleted pod says whether it was the Job; nobody is named where that is not known."""
    life = pod_life(subject, of)

    assert (life.state, life.reason) == (state, reason)
    assert life.is_going == (subject["status"]["phase"] != "Failed")


@pytest.mark.parametrize(
    ("subject", "since"),
    [
        pytest.param(unscheduled(NO_ROOM), T0, id="waits"),
        pytest.param(pod("Running", {"trainer": RUNS}), T0, id="runs"),
        pytest.param(pod("Running", {"trainer": ended(0, T2), "proxy": RUNS}), T2, id="held"),
        pytest.param(GOING, T1, id="deleted: when it was asked for, not the end of the grace period"),
        pytest.param(
            pod("Failed", {"trainer": ended(143, T3)}, disrupted("EvictionByEvictionAPI", T1)), T1, id="evicted"
        ),
        pytest.param(pod("Failed", {"trainer": ended(1, T2), "proxy": ended(1, T1)}), T1, id="failed"),
        pytest.param(pod("Succeeded", {"trainer": ended(0, T2), "proxy": ended(0, T3)}), T3, id="succeeded"),
    ],
)
def test_since(subject: Object, since: str) -> None:
    """A state has its beginning."""
    assert pod_life(subject).since == since


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param({}, id="empty"),
        pytest.param({"metadata": None, "spec": None, "status": None}, id="nothing in it"),
        pytest.param({"status": {"phase": "Unknown", "containerStatuses": None}}, id="unknown phase"),
    ],
)
def test_too_little(subject: Object) -> None:
    """An object that says nothing has a life without a word."""
    life = pod_life(subject, {})

    assert life == PodLife("", life.state, life.reason)


LOST_AT = "2026-01-01T00:00:00Z"


def unheard(ready: str = "False", reason: str = "", containers: str = "True", phase: str = "Running") -> Object:
    """A pod with these conditions."""
    conditions = [
        {"type": "Ready", "status": ready, "lastTransitionTime": LOST_AT, **({"reason": reason} if reason else {})},
        {"type": "ContainersReady", "status": containers},
    ]
    return {"status": {"phase": phase, "conditions": conditions}}


@pytest.mark.parametrize(
    ("found", "since"),
    [
        pytest.param(unheard(), LOST_AT, id="marked by the node lifecycle controller"),
        pytest.param(unheard("True"), "", id="ready"),
        pytest.param(unheard(reason="ContainersNotReady", containers="False"), "", id="container is not ready"),
        pytest.param(unheard(reason="ReadinessGatesNotReady"), "", id="readiness gate"),
        pytest.param(unheard(containers="False"), "", id="containers were not ready"),
        pytest.param(unheard(phase="Failed"), "", id="ended"),
        pytest.param({}, "", id="no status"),
    ],
)
def test_node_lost_since(found: Object, since: str) -> None:
    """Only the node lifecycle controller says without a reason that a pod is not ready whose containers are."""
    assert node_lost_since(found) == since
