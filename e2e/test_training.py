"""The life of TrainJobs, and what a user sees of those that are in trouble."""

from __future__ import annotations

import base64
import json
import signal
import time
import uuid
from typing import Any

from e2e.cluster import Cluster, train_job, training_runtime
from e2e.processes import with_argument
from e2e.waiting import until

SLEEP = "import sys, time; print('started'); time.sleep(float(sys.argv[1]))"
READ_TOKEN = "import os; print('token is', os.environ['TOKEN'])"
CRASH = """
import sys
print("epoch 1")
print("10 %\\r20 %\\r\\x1b[31m30 %\\x1b[0m")
sys.stdout.flush()
sys.stderr.write("ValueError: learning rate must be positive\\n")
sys.exit(7)
"""
SECONDS = 10
"""Within which the reason of a trouble has to show; a busy machine takes a few."""


def identities(cluster: Cluster) -> dict[str, set[str]]:
    """The uids of everything that TrainJobs become."""
    return {kind: {item["metadata"]["uid"] for item in cluster.list(kind)} for kind in ("jobset", "job", "pod")}


def events(cluster: Cluster, reason: str) -> list[dict[str, Any]]:
    """Events about TrainJobs."""
    found = cluster.list("event")
    return [each for each in found if each["involvedObject"]["kind"] == "TrainJob" and each["reason"] == reason]


def test_suspended_resumed_and_deleted(cluster: Cluster) -> None:
    """A suspended job has no pods; resumed, it runs; and when it is deleted no object and no process of it is left."""
    marker = uuid.uuid4().hex
    cluster.apply(train_job("demo", SLEEP, nodes=2, arguments=["60", marker], suspend=True))
    cluster.wait_for_state("demo", "Suspended")
    assert cluster.list("pod") == []

    cluster.suspend("demo", False)
    cluster.wait_for_state("demo", "Running")
    assert cluster.condition("demo", "Suspended")["status"] == "False"
    cluster.suspend("demo")
    cluster.wait_for_state("demo", "Suspended")
    until(lambda: not cluster.list("pod"), "the pods are gone")
    cluster.suspend("demo", False)
    cluster.wait_for_state("demo", "Running")
    cluster.kubectl("delete", "trainjob", "demo")

    def objects() -> str:
        return cluster.kubectl("get", "trainjob,jobset,job,pod,service", "-o", "name").stdout

    until(lambda: not objects(), "all objects are gone")
    if cluster.is_local:
        until(lambda: not with_argument(marker), "the processes are gone")


def test_manager_is_killed_and_restarted(cluster: Cluster) -> None:
    """A manager that is killed in the middle carries on after a restart: nothing is created twice, nothing is lost.

    Meanwhile nobody can submit a TrainJob, since nobody could say whether it is right.
    """
    cluster.apply(train_job("demo", SLEEP, nodes=2, arguments=["5"]))
    cluster.wait_for_state("demo", "Running")

    # At once: the nodes do not wait.
    cluster.manager.send(signal.SIGKILL)
    assert cluster.manager.wait() == -signal.SIGKILL
    before = identities(cluster)
    refused = cluster.kubectl("apply", "-f", "-", stdin=json.dumps(train_job("meanwhile", SLEEP)), check=False)
    if cluster.has_webhooks:
        assert "failed calling webhook" in refused.stderr
    until(
        lambda: any(item["type"] == "Completed" for item in cluster.list("jobset")[0]["status"].get("conditions", [])),
        "the JobSet ends without the manager",
    )
    assert cluster.state("demo") == "Running"
    cluster.manager.start(ready="started manager")

    cluster.wait_for_condition("demo", "Complete")
    cluster.kubectl("delete", "trainjob", "meanwhile", "--cascade=foreground", "--ignore-not-found")
    assert identities(cluster) == before
    assert len(before["pod"]) == 2


def test_times(cluster: Cluster) -> None:
    """A TrainJob that takes too long fails, and what it had running goes; one that has ended goes at its time."""
    cluster.apply(
        train_job("late", SLEEP, arguments=["60"], activeDeadlineSeconds=2),
        train_job("short", "pass", ttlSecondsAfterFinished=3),
    )
    cluster.wait_for_condition("late", "Failed")
    assert cluster.condition("late", "Failed")["reason"] == "DeadlineExceeded"
    until(lambda: cluster.get("trainjob", "short") is None, "it is gone")
    until(lambda: not cluster.list("jobset") and not cluster.list("pod"), "JobSets and pods are gone")

    def active() -> int:
        (job,) = (cluster.get("trainjob", "late") or {})["status"]["jobsStatus"]
        return int(job["active"])

    until(lambda: active() == 0, "no process is asked to run any more")


def test_a_runtime_that_is_replaced_in_time(cluster: Cluster) -> None:
    """A TrainJob of which nothing could be built is built on the runtime as it is when it can be."""
    other = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "demo"}}
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}
    job = {"name": "a", "template": {"spec": {"template": {"spec": pod}}}}
    cluster.apply(other | {"spec": {"suspend": True, "replicatedJobs": [job]}}, greeting("old"))
    script = "import os; print(os.environ['GREETING'])"
    cluster.apply(train_job("demo", script, runtimeRef={"kind": "TrainingRuntime", "name": "mine"}))
    until(lambda: cluster.condition("demo", "Created").get("status") == "False", "the name of its JobSet is taken")

    cluster.kubectl("delete", "trainingruntime", "mine")
    cluster.apply(greeting("new"))
    cluster.kubectl("delete", "jobset", "demo")

    cluster.complete("demo")
    assert cluster.log("demo") == "new\n"


def greeting(text: str) -> dict[str, Any]:
    """A runtime with a variable."""
    return training_runtime("mine", {"env": [{"name": "GREETING", "value": text}]})


def test_a_missing_secret_is_reported_and_heals(cluster: Cluster) -> None:
    """The job is Pending, an event names the Secret within seconds, and it runs as soon as the Secret is there."""
    job = train_job("demo", READ_TOKEN, nodes=3)
    reference = {"secretKeyRef": {"name": "credentials", "key": "token"}}
    job["spec"]["trainer"]["env"] = [{"name": "TOKEN", "valueFrom": reference}]
    cluster.apply(job)
    submitted = time.monotonic()

    cluster.wait_for_state("demo", "Pending", timeout=SECONDS)
    (event,) = until(lambda: events(cluster, "CreateContainerConfigError"), "an event", timeout=SECONDS)
    assert time.monotonic() - submitted < 2 * SECONDS
    assert event["type"] == "Warning"
    assert 'secret "credentials" not found' in event["message"]
    assert cluster.condition("demo", "Pending")["reason"] == "CreateContainerConfigError"
    described = cluster.kubectl("describe", "trainjob", "demo").stdout
    assert described.count('secret "credentials" not found') >= 2, "in the condition and among the events"

    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"}}
    cluster.apply(secret | {"data": {"token": base64.b64encode(b"abc").decode()}})
    cluster.wait_for_condition("demo", "Complete")
    assert cluster.condition("demo", "Pending")["status"] == "False"
    assert len(events(cluster, "CreateContainerConfigError")) == 1, "three pods, one event"


def test_a_failure_shows_pod_exit_code_and_log(cluster: Cluster) -> None:
    """The condition and the events tell which pod it was, how it ended, and what it wrote last."""
    cluster.apply(train_job("demo", CRASH, nodes=2))

    cluster.wait_for_condition("demo", "Failed")

    headline, facts, header, *log = cluster.condition("demo", "Failed")["message"].splitlines()
    assert headline.startswith("node-")
    assert headline.endswith(": ValueError: learning rate must be positive")
    assert facts.startswith("pod demo-node-0-")
    assert "exited with code 7; jobset failed" in facts
    assert header == "last lines of its log:"
    assert log == ["epoch 1", "30 %", "ValueError: learning rate must be positive"]
    (event,) = until(lambda: events(cluster, "LastLogLines"), "an event")
    assert "learning rate must be positive" in event["message"]
