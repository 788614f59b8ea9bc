"""Rows of pods and jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trainer_devcluster.apiserver.tables.pod_rows import job_cells, label_selector, pod_cells, pod_conditions

NOW = datetime(2026, 1, 1, 0, 1, 0, tzinfo=UTC)
CREATED = "2026-01-01T00:00:00Z"


def pod(phase: str = "Running", *, spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "creationTimestamp": CREATED},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}], **(spec or {})},
        "status": {"phase": phase, **status},
    }


def running(ready: bool = True, restarts: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": "a", "ready": ready, "restartCount": restarts, "state": {"running": {}}, **more}


def waiting(reason: str) -> dict[str, Any]:
    return {"name": "a", "state": {"waiting": {"reason": reason}}}


def terminated(code: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": "a", "state": {"terminated": {"exitCode": code, **more}}}


INIT = {"initContainers": [{"name": "i"}, {"name": "j"}]}
SIDECAR = {"initContainers": [{"name": "i", "restartPolicy": "Always"}]}


@pytest.mark.parametrize(
    ("obj", "ready", "status", "restarts"),
    [
        pytest.param(
            pod("Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
            "0/2",
            "SchedulingGated",
            "0",
            id="gated",
        ),
        pytest.param(
            pod(
                containerStatuses=[
                    running(restarts=3, lastState={"terminated": {"finishedAt": "2026-01-01T00:00:50Z"}}),
                    running(),
                ]
            ),
            "2/2",
            "Running",
            "3 (10s ago)",
            id="restarted",
        ),
        pytest.param(
            pod(containerStatuses=[waiting("CrashLoopBackOff")]), "0/2", "CrashLoopBackOff", "0", id="waiting"
        ),
        pytest.param(pod("Failed", containerStatuses=[terminated(7)]), "0/2", "ExitCode:7", "0", id="exit code"),
        pytest.param(pod("Failed", containerStatuses=[terminated(137, signal=9)]), "0/2", "Signal:9", "0", id="signal"),
        pytest.param(
            pod(
                containerStatuses=[terminated(reason="Completed"), running()],
                conditions=[{"type": "Ready", "status": "True"}],
            ),
            "1/2",
            "Running",
            "0",
            id="one completed and ready",
        ),
        pytest.param(
            pod("Pending", spec=INIT, initContainerStatuses=[terminated(), {"name": "j", "state": {"running": {}}}]),
            "0/2",
            "Init:1/2",
            "0",
            id="init progress",
        ),
        pytest.param(
            pod("Pending", spec=INIT, initContainerStatuses=[terminated(1, reason="Error")]),
            "0/2",
            "Init:Error",
            "0",
            id="init error",
        ),
        pytest.param(
            pod("Pending", spec=INIT, initContainerStatuses=[waiting("ErrImagePull")]),
            "0/2",
            "Init:ErrImagePull",
            "0",
            id="init waits",
        ),
        pytest.param(
            pod(
                spec=SIDECAR,
                initContainerStatuses=[
                    {"name": "i", "started": True, "ready": True, "restartCount": 2, "state": {"running": {}}}
                ],
                containerStatuses=[running(), running()],
            ),
            "3/3",
            "Running",
            "2",
            id="sidecar",
        ),
        pytest.param(
            {
                **pod(containerStatuses=[running()]),
                "metadata": {"name": "p", "creationTimestamp": CREATED, "deletionTimestamp": CREATED},
            },
            "1/2",
            "Terminating",
            "0",
            id="terminating",
        ),
    ],
)
def test_pod_cells(obj: dict[str, Any], ready: str, status: str, restarts: str) -> None:
    """READY, STATUS and RESTARTS say what kubectl says."""
    assert pod_cells(obj, NOW)[:5] == ["p", ready, status, restarts, "60s"]


@pytest.mark.parametrize(("phase", "reasons"), [("Running", []), ("Succeeded", ["Succeeded"]), ("Failed", ["Failed"])])
def test_finished_pods_have_a_row_condition(phase: str, reasons: list[str]) -> None:
    """Clients can hide finished pods by it."""
    assert [condition["reason"] for condition in pod_conditions(pod(phase))] == reasons


def job(spec: dict[str, Any], status: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "j", "creationTimestamp": CREATED, **metadata}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(job({"parallelism": 2}, {}), ["Running", "0/1 of 2", "", "60s"], id="work queue"),
        pytest.param(
            job(
                {"completions": 1},
                {
                    "succeeded": 1, "startTime": CREATED, "completionTime": "2026-01-01T00:00:05Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
            ),
            ["Complete", "1/1", "5s", "60s"],
            id="complete",
        ),
        pytest.param(
            job({"completions": 1}, {"conditions": [{"type": "Suspended", "status": "True"}]}),
            ["Suspended", "0/1", "", "60s"],
            id="suspended",
        ),
        pytest.param(
            job({"completions": 1}, {}, deletionTimestamp=CREATED), ["Terminating", "0/1", "", "60s"], id="terminating"
        ),
    ],
)  # fmt: skip
def test_job_cells(obj: dict[str, Any], expected: list[str]) -> None:
    """Status, completions, duration and age of jobs."""
    assert job_cells(obj, NOW)[:5] == ["j", *expected]


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (None, "<none>"),
        ({}, "<none>"),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        ({"matchExpressions": [{"key": "k", "operator": "In", "values": ["y", "x"]}]}, "k in (x,y)"),
        (
            {"matchExpressions": [{"key": "k", "operator": "Exists"}, {"key": "l", "operator": "DoesNotExist"}]},
            "k,!l",
        ),
    ],
)
def test_label_selector(selector: object, text: str) -> None:
    """Selectors are shown as they are written on the command line."""
    assert label_selector(selector) == text
