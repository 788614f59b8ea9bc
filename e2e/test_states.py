"""What a user sees of a TrainJob that is in trouble."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from e2e.cluster import Cluster, train_job
from e2e.waiting import until

SECONDS = 10
"""Within which the reason has to show; a busy machine takes a few."""

READ_TOKEN = "import os; print('token is', os.environ['TOKEN'])"

CRASH = """
import sys
print("epoch 1")
print("10 %\\r20 %\\r\\x1b[31m30 %\\x1b[0m")
sys.stdout.flush()
sys.stderr.write("ValueError: learning rate must be positive\\n")
sys.exit(7)
"""

FAIL_ONCE = """
import os, pathlib, sys, time
if os.environ["ATTEMPT"] == "0":
    time.sleep(1)
    sys.exit(5)
time.sleep(float(sys.argv[1]))
"""


def condition(cluster: Cluster, name: str, kind: str) -> dict[str, Any]:
    conditions = ((cluster.get("trainjob", name) or {}).get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), {})


def events(cluster: Cluster, reason: str) -> list[dict[str, Any]]:
    """Events about TrainJobs."""
    found = cluster.list("event")
    return [each for each in found if each["involvedObject"]["kind"] == "TrainJob" and each["reason"] == reason]


def with_token(job: dict[str, Any]) -> dict[str, Any]:
    job["spec"]["trainer"]["env"] = [
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "credentials", "key": "token"}}}
    ]
    return job


def test_a_missing_secret_is_reported_and_heals(cluster: Cluster) -> None:
    """The job is Pending, an event names the Secret within seconds, and it runs as soon as the Secret is there."""
    cluster.apply(with_token(train_job("demo", READ_TOKEN, nodes=3)))
    submitted = time.monotonic()

    cluster.wait_for_state("demo", "Pending", timeout=SECONDS)
    (event,) = until(lambda: events(cluster, "CreateContainerConfigError"), "an event", timeout=SECONDS)
    assert time.monotonic() - submitted < 2 * SECONDS
    assert event["type"] == "Warning"
    assert 'secret "credentials" not found' in event["message"]
    pending = condition(cluster, "demo", "Pending")
    assert (pending["status"], pending["reason"]) == ("True", "CreateContainerConfigError")
    described = cluster.kubectl("describe", "trainjob", "demo").stdout
    assert described.count('secret "credentials" not found') >= 2, "in the condition and among the events"

    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"}}
    cluster.apply(secret | {"data": {"token": base64.b64encode(b"abc").decode()}})
    cluster.wait_for_condition("demo", "Complete")
    assert condition(cluster, "demo", "Pending")["status"] == "False"
    assert len(events(cluster, "CreateContainerConfigError")) == 1, "three pods, one event"


def test_a_node_that_does_not_exist(cluster: Cluster) -> None:
    """A job that no node takes is Pending with the words of the scheduler."""
    override = {"targetJobs": [{"name": "node"}], "nodeSelector": {"gpu": "imaginary"}}
    cluster.apply(train_job("demo", "pass", podSpecOverrides=[override]))

    cluster.wait_for_state("demo", "Pending", timeout=SECONDS)
    (event,) = until(lambda: events(cluster, "Unschedulable"), "an event", timeout=SECONDS)
    assert "nodes are available" in event["message"]
    assert "spec.podSpecOverrides[0].nodeSelector: gpu=imaginary asked for: pod demo-node-0-0-" in event["message"]
    wide = cluster.kubectl("get", "trainjob", "demo", "-o", "wide").stdout.splitlines()
    assert "PENDING" in wide[0]
    assert "Unschedulable" in wide[1]


def test_a_failure_shows_pod_exit_code_and_log(cluster: Cluster) -> None:
    """The condition and the events tell which pod it was, how it ended, and what it wrote last."""
    cluster.apply(train_job("demo", CRASH, nodes=2))

    cluster.wait_for_condition("demo", "Failed")

    facts, header, *log = condition(cluster, "demo", "Failed")["message"].splitlines()
    assert "jobset failed" in facts
    assert "pod demo-node-0-" in facts
    assert facts.endswith("exited with code 7")
    assert header == "last lines of its log:"
    assert log == ["epoch 1", "30 %", "ValueError: learning rate must be positive"]
    (event,) = until(lambda: events(cluster, "LastLogLines"), "an event")
    assert "learning rate must be positive" in event["message"]


def test_a_restart_is_reported(cluster: Cluster) -> None:
    """A job whose JobSet restarts is Restarting with the cause, and runs again afterwards."""
    name = "restarting"
    runtime = cluster.get("clustertrainingruntime", "plain")
    assert runtime is not None
    own = {key: runtime[key] for key in ("apiVersion", "spec")} | {
        "kind": "TrainingRuntime",
        "metadata": {"name": name},
    }
    own["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 2}
    job = train_job("demo", FAIL_ONCE, runtime=name, arguments=["3"])
    job["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
    path = "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"
    job["spec"]["trainer"]["env"] = [{"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": path}}}]
    cluster.apply(own, job)

    (event,) = until(lambda: events(cluster, "RestartingJobSet"), "an event")
    assert event["message"].startswith("restart 1 (maxRestarts is 2): ")
    assert "exited with code 5" in event["message"]
    assert condition(cluster, "demo", "Restarting")
    until(lambda: condition(cluster, "demo", "Restarting")["status"] == "False", "it does not restart any more")
    cluster.wait_for_condition("demo", "Complete")


def test_a_job_that_cannot_be_built_is_blocked(cluster: Cluster) -> None:
    """It says so in one word, and starts when the runtime is there."""
    job = train_job("demo", "pass", runtime="mine")
    job["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
    cluster.apply(job)
    cluster.wait_for_state("demo", "Blocked")
    table = cluster.kubectl("get", "trainjob", "demo").stdout
    assert "Blocked" in table

    runtime = cluster.get("clustertrainingruntime", "plain")
    assert runtime is not None
    cluster.apply(
        {"apiVersion": runtime["apiVersion"], "kind": "TrainingRuntime", "spec": runtime["spec"]}
        | {"metadata": {"name": "mine"}}
    )
    cluster.wait_for_condition("demo", "Complete")


def test_conditions_of_others_survive(cluster: Cluster) -> None:
    """A condition that another field manager applies is there before and after ours change."""
    cluster.apply(train_job("demo", "pass", suspend=True))
    cluster.wait_for_state("demo", "Suspended")
    theirs = {
        "type": "QuotaReserved",
        "status": "True",
        "reason": "Reserved",
        "message": "by another controller",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    job = train_job("demo", "")
    applied = {key: job[key] for key in ("apiVersion", "kind", "metadata")} | {"status": {"conditions": [theirs]}}
    options = ("--server-side", "--subresource=status", "--field-manager=queue", "-f", "-")
    cluster.kubectl("apply", *options, stdin=json.dumps(applied))

    cluster.kubectl("patch", "trainjob", "demo", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    cluster.wait_for_condition("demo", "Complete")

    assert condition(cluster, "demo", "QuotaReserved") == theirs
    assert condition(cluster, "demo", "Suspended")["status"] == "False"
