"""Which container broke a training."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.framework.plugin_api.failure import (
    failed_jobs,
    failure_message,
    failures_in_order,
    first_failure,
    named_in,
)
from trainer.kube.objects import Object


def pod(name: str, *containers: Object, phase: str = "Failed", deleted: bool = False, **status: Any) -> Object:
    """A pod with containers that have ended."""
    states = [{"name": each.pop("name", "trainer"), "state": {"terminated": each}} for each in map(dict, containers)]
    metadata = {"name": name} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {})
    return {"metadata": metadata, "status": {"phase": phase, "containerStatuses": states} | status}


def end(code: int, second: int, **fields: Any) -> Object:
    """How a container ended."""
    return {"exitCode": code, "finishedAt": f"2026-01-01T00:00:{second:02}Z"} | fields


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        pytest.param([], None, id="no-pod"),
        pytest.param([pod("a", end(3, 1), phase="Running")], None, id="its-pod-goes-on"),
        pytest.param(
            [pod("a", end(128, 1, reason="StartError", message='exec: "x":\n not found'))],
            'pod a: container trainer exited with code 128 (StartError: exec: "x": not found)',
            id="a-program-that-could-not-be-started-has-no-log",
        ),
        pytest.param([pod("a")], "pod a failed", id="says-nothing"),
        pytest.param(
            [pod("a", initContainerStatuses=[{"name": "init", "state": {"terminated": end(2, 1)}}])],
            "pod a: container init exited with code 2",
            id="init-container",
        ),
    ],
)
def test_first_failure(pods: list[Object], text: str | None) -> None:
    """The container that failed before all others, and was not ended because of them."""
    found = first_failure(pods)
    assert (found and found.text) == text


T1, T2, T3 = (f"2026-01-01T00:00:0{second}Z" for second in (1, 2, 3))


def taken(name: str, reason: str, at: str, *containers: Object, message: str = "") -> Object:
    """A pod that somebody has taken away, whose containers have ended since."""
    found = pod(name, *containers, node="gpu-1")
    found["status"]["conditions"] = [
        {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message, "lastTransitionTime": at}
    ]
    return found


def deleted(name: str, at: int, *containers: Object, phase: str = "Running") -> Object:
    """A pod that was deleted in this second, with a grace period."""
    found = pod(name, *containers, phase=phase)
    end = f"2026-01-01T00:00:{at + 30:02}Z"
    found["metadata"] |= {"uid": name, "deletionTimestamp": end, "deletionGracePeriodSeconds": 30}
    return found


EVICTED = taken("a", "EvictionByEvictionAPI", T1, end(143, 3), message="Eviction API: evicting")
EVICTED_TEXT = "pod a was evicted (EvictionByEvictionAPI: Eviction API: evicting)"


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        pytest.param([pod("b", end(1, 2)), EVICTED], EVICTED_TEXT, id="and the others have failed since"),
        pytest.param([pod("b", end(1, 1)), EVICTED], EVICTED_TEXT, id="and another has failed within the same second"),
        pytest.param(
            [deleted("b", 1), EVICTED, deleted("c", 1)], EVICTED_TEXT, id="and its Job has deleted the others"
        ),
        pytest.param(
            [pod("b", end(1, 1)), taken("a", "EvictionByEvictionAPI", T2, end(143, 3))],
            "pod b: container trainer exited with code 1",
            id="after another one has failed",
        ),
        pytest.param(
            [taken("b", "EvictionByEvictionAPI", T2), taken("a", "PreemptionByScheduler", T1)],
            "pod a was preempted for a pod of a higher priority (PreemptionByScheduler)",
            id="several at once, the first one counts",
        ),
        pytest.param(
            [taken("a", "DeletionByTaintManager", T1)],
            "pod a was deleted for a taint of its node (DeletionByTaintManager)",
            id="of a node that is not ready",
        ),
        pytest.param(
            [taken("a", "DeletionByPodGC", T1)],
            "pod a was deleted, since its node is gone or out of service (DeletionByPodGC)",
            id="of a node that is gone",
        ),
        pytest.param([taken("a", "Upgrade", T1)], "pod a was disrupted (Upgrade)", id="by somebody else"),
        pytest.param(
            [pod("a", end(75, 1)), pod("b", end(75, 2))],
            "pod a has saved its state and ended (exit code 75)",
            id="saved and ended",
        ),
        pytest.param(
            [deleted("a", 1, end(143, 3), phase="Failed"), pod("b", end(1, 2))],
            "pod a was deleted; by whom is not known",
            id="deleted before another one has failed",
        ),
        pytest.param(
            [deleted("b", 1), pod("a", end(3, 1))],
            "pod a: container trainer exited with code 3",
            id="deleted since another one has failed",
        ),
        pytest.param(
            [deleted("a", 1), deleted("b", 1), deleted("c", 2)],
            "pod a was deleted; by whom is not known, and 1 more was deleted within the same second",
            id="all deleted at once",
        ),
        pytest.param(
            [pod("a", end(143, 1)), pod("b", end(137, 1, reason="OOMKilled"))],
            "pod b: container trainer exited with code 137 (OOMKilled)",
            id="killed for memory, and the others because of that",
        ),
    ],
)
def test_taken_away(pods: list[Object], text: str) -> None:
    """A pod that was evicted, preempted or deleted is the cause, and not one that was stopped because of it."""
    found = first_failure(pods)
    assert found is not None
    assert found.text == text
    named = named_in(f"{text}; jobset failed")
    assert named is not None
    assert named.pod == found.pod
    assert not found.is_taken_away or found.headline(["RuntimeError: x"]) == f"{found.pod}: {found.end}"


def test_deleted_first() -> None:
    """Who was deleted while nobody else had failed was deleted by somebody else than its Job."""
    found = first_failure([deleted("a", 1), deleted("b", 1), pod("c", end(1, 1))], deleted_first="b")
    assert found is not None
    assert found.text == "pod b was deleted, and not by its Job"


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        pytest.param((), "pod a was deleted, and not by its Job", id="while its Job went on"),
        pytest.param((("FailureTarget", T1),), "pod b: container trainer exited with code 1", id="by its Job"),
    ],
)
def test_a_job_that_deletes_its_pods(conditions: tuple[tuple[str, str], ...], text: str) -> None:
    """A pod that its Job has deleted is a consequence."""
    owner = {"kind": "Job", "name": "j", "uid": "uid-of-job", "controller": True}
    gone, failed = deleted("a", 2), pod("b", end(1, 3))
    gone["metadata"]["ownerReferences"] = [owner]
    said = [{"type": kind, "status": "True", "lastTransitionTime": at} for kind, at in conditions]
    jobs = [{"metadata": {"name": "j", "uid": "uid-of-job"}, "status": {"conditions": said}}]
    assert failures_in_order([failed, gone], jobs=jobs)[0].text == text


LIMITED = {"containers": [{"name": "trainer", "resources": {"limits": {"memory": "2Gi"}}}]}
WORKER = "RuntimeError: DataLoader worker (pid 4) is killed by signal: Killed."
CHILD = "pod a: container trainer exited with code 1; a process of it was killed (SIGKILL)"


@pytest.mark.parametrize(
    ("spec", "log", "text", "headline"),
    [
        pytest.param(LIMITED, [WORKER], f"{CHILD}, its limit of memory is 2Gi", "", id="limit"),
        pytest.param(
            {"containers": [{"name": "trainer", "resources": {}}]},
            [WORKER],
            f"{CHILD}, it has no limit of memory",
            "",
            id="no limit",
        ),
        pytest.param({}, [WORKER], CHILD, "", id="unknown limit"),
        pytest.param(
            {}, ["RuntimeError: Connection closed by peer", "Killed"], CHILD, "", id="the others have lost it"
        ),
        pytest.param(
            {},
            ["ValueError: lr", "Killed"],
            "pod a: container trainer exited with code 1",
            "a: ValueError: lr",
            id="killed since another has failed",
        ),
    ],
)
def test_killed_child(spec: Object, log: list[str], text: str, headline: str) -> None:
    """The program is not to blame when its log says that a process was killed, and the limit of memory is named."""
    found = first_failure([pod("a", end(1, 1)) | {"spec": spec}])
    assert found is not None
    found = found.after(log)
    assert found.text == text
    assert found.headline(log) == (headline or "a: a process of it was killed (SIGKILL)")


def test_the_limit_of_what_was_killed_for_memory() -> None:
    """It is part of the failure."""
    found = first_failure([pod("a", end(137, 1, reason="OOMKilled")) | {"spec": LIMITED}])
    assert found is not None
    assert found.text == "pod a: container trainer exited with code 137 (OOMKilled); its limit of memory is 2Gi"


def test_where_its_log_is() -> None:
    """Pod and container are named; a pod that failed as a whole has no container to ask."""
    for failed, place in ((pod("a", end(3, 1)), ("a", "trainer")), (pod("a"), ("a", ""))):
        found = first_failure([failed])
        assert found is not None
        assert (found.pod, found.container) == place


LABELS = {"jobset.sigs.k8s.io/replicatedjob-name": "node", "batch.kubernetes.io/job-completion-index": "1"}


@pytest.mark.parametrize(
    ("pods", "log", "headline"),
    [
        pytest.param([pod("a", end(1, 1))], ["x", "ValueError: lr"], "node-1: ValueError: lr", id="log"),
        pytest.param([pod("a", end(3, 1))], ["epoch 1"], "node-1: exit code 3", id="log-says-nothing"),
        pytest.param([pod("a", end(139, 1))], [], "node-1: exit code 139 (segmentation fault)", id="signal"),
        pytest.param(
            [pod("a", end(137, 1, reason="OOMKilled"))],
            ["UserWarning: slow"],
            "node-1: OOMKilled (exit code 137)",
            id="killed-by-the-kernel-whatever-the-log-says",
        ),
        pytest.param(
            [pod("a", end(1, 1, reason="Error", message="Traceback\nKeyError: 3\n\x1b[2J"))],
            [],
            "node-1: KeyError: 3",
            id="termination-message-is-the-end-of-the-log",
        ),
        pytest.param(
            [pod("a", end(2, 1, reason="Error", message="dataset: no such\x1b[2J bucket"))],
            ["RuntimeError: x"],
            "node-1: dataset: no such[2J bucket",
            id="termination-message-of-one-line",
        ),
        pytest.param(
            [pod("a", reason="Evicted", message="full")],
            [],
            "node-1: was ended by the kubelet of its node (TerminationByKubelet: full)",
            id="evicted",
        ),
        pytest.param(
            [pod("a", end(143, 1)), pod("b", end(1, 1))], ["KeyError: 3"], "node-1: KeyError: 3", id="others-are-killed"
        ),
        pytest.param(
            [pod("a", end(1, 1))], [f"ValueError: {'x' * 9999}"], f"node-1: ValueError: {'x' * 480}", id="long"
        ),
    ],
)
def test_headline(pods: list[Object], log: list[str], headline: str) -> None:
    """The failure in one line: the node, and what its program has said last, else how it ended."""
    for each in pods:
        each["metadata"]["labels"] = LABELS
    found = first_failure(pods)
    assert found is not None
    assert found.headline(log) == headline


def test_what_the_kubelet_says_is_said_once() -> None:
    """The facts repeat the reason of a container that could not be started, and not the sentence behind it."""
    found = first_failure([pod("a", end(128, 1, reason="StartError", message='exec: "x": not found'))])
    assert failure_message(found, "jobset failed").splitlines() == [
        'a: StartError: exec: "x": not found',
        "pod a: container trainer exited with code 128 (StartError); jobset failed",
    ]


def job(name: str, second: int, **status: Any) -> Object:
    """A Job that has failed."""
    failed = {
        "type": "Failed",
        "status": "True",
        "reason": "BackoffLimitExceeded",
        "message": "too often",
        "lastTransitionTime": f"2026-01-01T00:00:{second:02}Z",
    }
    return {"metadata": {"name": name}, "status": {"conditions": [failed]} | status}


def test_failed_jobs() -> None:
    """Jobs tell why they failed, and which indexes, the first one first."""
    assert failed_jobs([job("b", 2), job("a", 1, failedIndexes="0,3-5"), {"metadata": {"name": "c"}}]) == [
        "job a failed: BackoffLimitExceeded: too often (indexes 0,3-5)",
        "job b failed: BackoffLimitExceeded: too often",
    ]


@pytest.mark.parametrize(
    ("message", "found"),
    [
        pytest.param("a job failed; pod a-0: container trainer exited with code 3", ("a-0", "trainer"), id="container"),
        pytest.param(
            "pod of mine: ValueError\npod a-0: container trainer exited with code 3; a job failed",
            ("a-0", "trainer"),
            id="below the headline",
        ),
        pytest.param("x\nlast lines of its log:\npod a: container b exited with code 3", None, id="in a log"),
        pytest.param("", None, id="empty"),
    ],
)
def test_named_in(message: str, found: tuple[str, str] | None) -> None:
    """A message that was made of a failure says which container it was."""
    named = named_in(message)
    assert (named and (named.pod, named.container)) == found


def test_named_in_what_failed_first() -> None:
    """The words of each failure are understood."""
    for failed in (pod("a", end(3, 1)), pod("b", end(137, 1, reason="OOMKilled")), pod("c")):
        first = first_failure([failed])
        assert first is not None
        named = named_in(f"jobset failed; {first.text}")
        assert named is not None
        assert (named.pod, named.container) == (first.pod, first.container)
