"""Which container broke a training."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.framework.plugin_api.failure import failed_jobs, failure_message, first_failure, named_in
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
        pytest.param([pod("a", reason="Evicted", message="full")], [], "node-1: Evicted: full", id="evicted"),
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
