"""The life of containers as kubectl shows it: sidecars, probes, hooks, restarts, previous logs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from e2e.waiting import until

if TYPE_CHECKING:
    from e2e.cluster import Cluster

IMAGE = "busybox:1.36"
FOREVER = "trap 'echo bye; exit 0' TERM; while :; do sleep 0.1; done"


def shell(name: str, script: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": IMAGE, "command": ["sh", "-c", script], **fields}


def pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": list(containers), "restartPolicy": "Never", **spec},
    }


def container_state(cluster: Cluster, name: str, kind: str = "containerStatuses") -> dict[str, Any]:
    """The status of the first container of a pod; empty before there is one."""
    found = cluster.get("pod", name) or {}
    statuses: list[dict[str, Any]] = (found.get("status") or {}).get(kind) or [{}]
    return statuses[0]


def events(cluster: Cluster, name: str) -> list[tuple[str, str]]:
    """Reason and message of all events about a pod."""
    text = cluster.kubectl("get", "events", f"--field-selector=involvedObject.name={name}", "-o", "json").stdout
    return [(item["reason"], item["message"]) for item in json.loads(text)["items"]]


def test_job_with_a_sidecar(cluster: Cluster) -> None:
    """A Job is complete when its container is, although a sidecar would run forever; kubectl counts both as ready."""
    sidecar = shell("proxy", FOREVER, restartPolicy="Always", startupProbe={"exec": {"command": ["true"]}})
    template = {
        "spec": {
            "restartPolicy": "Never",
            "initContainers": [sidecar],
            "containers": [shell("main", "sleep 4; echo done")],
        }
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": {"template": template}}
    cluster.apply(job)
    until(lambda: "2/2" in cluster.kubectl("get", "pods").stdout, "both containers are ready")

    cluster.kubectl("wait", "--for=condition=Complete", "job/job", "--timeout=30s")

    (found,) = cluster.list("pod")
    assert found["status"]["phase"] == "Succeeded"
    assert found["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    name = found["metadata"]["name"]
    assert cluster.kubectl("logs", name, "-c", "proxy").stdout == "bye\n"
    until(lambda: ("Killing", "Stopping container proxy") in events(cluster, name), "an event")
    assert "Completed" in cluster.kubectl("get", "pods").stdout


def test_crash_loop(cluster: Cluster) -> None:
    """A container that fails again and again backs off; `describe` tells why, `logs --previous` what it printed."""
    cluster.apply(pod("crash", shell("main", "echo run; date +%N; exit 3"), restartPolicy="OnFailure"))
    until(lambda: "CrashLoopBackOff" in cluster.kubectl("get", "pod", "crash").stdout, "the pod crashes in a loop")

    status = container_state(cluster, "crash")
    assert status["restartCount"] == 1
    assert status["state"]["waiting"]["message"].startswith("back-off 10s restarting failed container=main pod=crash_")
    assert status["lastState"]["terminated"]["exitCode"] == 3
    assert cluster.kubectl("logs", "crash", "--previous").stdout.startswith("run\n")
    description = cluster.kubectl("describe", "pod", "crash").stdout
    assert "Back-off restarting failed container main in pod crash_" in description
    assert "Exit Code:    3" in description


def test_previous_logs(cluster: Cluster) -> None:
    """`logs` shows the run that goes on, `logs --previous` the one before it; a first run has none before it."""
    script = f'case "$PWD" in */0/work) echo first; exit 1;; *) echo second;; esac; {FOREVER}'
    cluster.apply(pod("again", shell("main", script), restartPolicy="Always"))
    until(lambda: cluster.kubectl("logs", "again", check=False).stdout == "second\n", "the container runs again")

    assert cluster.kubectl("logs", "again", "--previous").stdout == "first\n"
    cluster.apply(pod("once", shell("main", FOREVER)))
    until(lambda: container_state(cluster, "once").get("ready"), "the container runs")
    refused = cluster.kubectl("logs", "once", "--previous", check=False)
    assert 'previous terminated container "main" in pod "once" not found' in refused.stderr


@pytest.mark.parametrize("kind", ["livenessProbe", "startupProbe"])
def test_probe_that_fails(cluster: Cluster, kind: str) -> None:
    """A container that fails its liveness or startup probe is ended and started again, and events tell why."""
    probe = {"exec": {"command": ["sh", "-c", "echo sick; exit 1"]}, "periodSeconds": 1, "failureThreshold": 1}
    cluster.apply(pod("sick", shell("main", FOREVER, **{kind: probe}), restartPolicy="Always"))
    until(lambda: container_state(cluster, "sick").get("restartCount"), "the container was restarted")

    what = kind.removesuffix("Probe")
    expected = {
        ("Unhealthy", f"{what.title()} probe failed: sick\n"),
        ("Killing", f"Container main failed {what} probe, will be restarted"),
    }
    until(lambda: expected <= set(events(cluster, "sick")), "both events")
    cluster.kubectl("delete", "pod", "sick", "--timeout=30s")


def test_readiness_over_http(cluster: Cluster) -> None:
    """A pod is ready when its server answers at a named port."""
    script = "sleep 1; mkdir www; touch www/healthy; exec python -m http.server -d www --bind $IP 8321"
    address = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    probe = {"httpGet": {"path": "/healthy", "port": "http"}, "periodSeconds": 1}
    ports = [{"name": "http", "containerPort": 8321}]
    cluster.apply(pod("server", shell("main", script, env=[address], ports=ports, readinessProbe=probe)))

    cluster.kubectl("wait", "--for=condition=Ready", "pod/server", "--timeout=30s")

    def is_reported() -> bool:
        reported = events(cluster, "server")
        return any(reason == "Unhealthy" and "connection refused" in text for reason, text in reported)

    until(is_reported, "an event tells that it was not ready at first")


def test_hooks(cluster: Cluster) -> None:
    """The postStart hook runs before the pod counts as running, the preStop hook before SIGTERM."""
    hooks = {
        "postStart": {"exec": {"command": ["sh", "-c", "echo started > hook"]}},
        "preStop": {"exec": {"command": ["sh", "-c", "echo stopping > hook; sleep 0.5"]}},
    }
    script = "trap 'cat hook; exit 0' TERM; while :; do sleep 0.1; done"
    hooked = pod("hooked", shell("main", script, lifecycle=hooks))
    hooked["metadata"]["finalizers"] = ["example.com/hold"]
    cluster.apply(hooked)
    until(lambda: container_state(cluster, "hooked").get("ready"), "the pod is ready")

    cluster.kubectl("delete", "pod", "hooked", "--wait=false")
    until(lambda: container_state(cluster, "hooked")["state"].get("terminated"), "the container has ended")

    assert cluster.kubectl("logs", "hooked").stdout == "stopping\n"
    cluster.kubectl("patch", "pod", "hooked", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def test_grace_period(cluster: Cluster) -> None:
    """A program that ignores SIGTERM is killed after the grace period."""
    stubborn = pod("stubborn", shell("main", "trap '' TERM; while :; do sleep 0.1; done"))
    stubborn["spec"]["terminationGracePeriodSeconds"] = 2
    stubborn["metadata"]["finalizers"] = ["example.com/hold"]
    cluster.apply(stubborn)
    until(lambda: container_state(cluster, "stubborn").get("ready"), "the pod is ready")

    cluster.kubectl("delete", "pod", "stubborn", "--wait=false")
    ended = until(lambda: container_state(cluster, "stubborn")["state"].get("terminated"), "the container has ended")

    assert (ended["exitCode"], ended["reason"]) == (137, "Error")
    cluster.kubectl("patch", "pod", "stubborn", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
