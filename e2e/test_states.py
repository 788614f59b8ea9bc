"""What a user sees of a TrainJob that is in trouble."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

from e2e.cluster import train_job
from e2e.waiting import until

if TYPE_CHECKING:
    from e2e.cluster import Cluster

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


def test_a_volume_that_cannot_be_mounted(cluster: Cluster) -> None:
    """A missing Secret of a volume is reported as well, although the pod only seems to be starting."""
    override = {
        "targetJobs": [{"name": "node"}],
        "volumes": [{"name": "token", "secret": {"secretName": "credentials"}}],
        "containers": [{"name": "trainer", "volumeMounts": [{"name": "token", "mountPath": "/token"}]}],
    }
    cluster.apply(train_job("demo", "pass", nodes=2, podSpecOverrides=[override]))

    cluster.wait_for_state("demo", "Pending", timeout=SECONDS)
    (event,) = until(lambda: events(cluster, "FailedMount"), "an event", timeout=SECONDS)
    assert "credentials" in event["message"]

    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"}}
    cluster.apply(secret | {"data": {"token": base64.b64encode(b"abc").decode()}})
    cluster.wait_for_condition("demo", "Complete")


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


def test_devices_that_no_node_has(cluster: Cluster) -> None:
    """The field that asks for them comes first, with its amount, and the reason once."""
    job = train_job("demo", "pass")
    job["spec"]["trainer"]["resourcesPerNode"] = {"limits": {"example.com/imaginary": "8"}}
    cluster.apply(job)

    cluster.wait_for_state("demo", "Pending", timeout=SECONDS)
    field = "spec.trainer.resourcesPerNode.limits[example.com/imaginary]: 8 requested"
    message = condition(cluster, "demo", "Pending")["message"]
    assert message.startswith(f"1 pod cannot start: {field}: pod demo-node-0-0-")
    assert "Insufficient example.com/imaginary" in message


def test_a_service_account_that_does_not_exist(cluster: Cluster) -> None:
    """Pods that are refused leave an event of their Job alone: it is what the TrainJob says, until they are there."""
    override = {"targetJobs": [{"name": "node"}], "serviceAccountName": "no-such-account"}
    cluster.apply(train_job("demo", "pass", nodes=2, podSpecOverrides=[override]))

    cluster.wait_for_state("demo", "Pending", timeout=SECONDS)
    (event,) = until(lambda: events(cluster, "FailedCreate"), "an event", timeout=SECONDS)
    field = "spec.podSpecOverrides[0].serviceAccountName"
    assert event["message"].startswith(f"at least 2 pods cannot be created: {field}: Job demo-node-0: Error creating: ")
    assert 'serviceaccount "no-such-account" not found' in event["message"]
    pending = condition(cluster, "demo", "Pending")
    assert (pending["status"], pending["reason"]) == ("True", "FailedCreate")
    assert pending["message"] == event["message"], "the reason is not in it a second time"

    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "no-such-account"}})
    cluster.wait_for_condition("demo", "Complete")
    assert condition(cluster, "demo", "Pending")["status"] == "False"


def test_a_quota_that_is_used_up(cluster: Cluster) -> None:
    """Some pods are there, and the quota of the namespace refuses the others."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": {"pods": "1"}}}
    cluster.apply(quota)
    cluster.apply(train_job("demo", "import time; time.sleep(5)", nodes=2))

    cluster.wait_for_state("demo", "Pending", timeout=SECONDS)
    message = condition(cluster, "demo", "Pending")["message"]
    assert message.startswith("1 pod cannot be created: Job demo-node-0: ")
    assert "exceeded quota: team" in message

    cluster.kubectl("delete", "resourcequota", "team")
    cluster.wait_for_condition("demo", "Complete")


def test_a_scheduler_that_does_not_run(cluster: Cluster) -> None:
    """Pods that no scheduler looks at are no secret: a real cluster says nothing, so the manager does."""
    name = "unscheduled"
    runtime = cluster.get("clustertrainingruntime", "plain")
    assert runtime is not None
    own = {"apiVersion": runtime["apiVersion"], "kind": "TrainingRuntime", "spec": runtime["spec"]}
    pods = own["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pods["schedulerName"] = "no-such-scheduler"
    job = train_job("demo", "pass", runtime=name)
    job["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
    cluster.apply(own | {"metadata": {"name": name}}, job)

    cluster.wait_for_state("demo", "Pending", timeout=60)
    assert "no scheduler called no-such-scheduler" in condition(cluster, "demo", "Pending")["message"]


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


def test_observed_generation_becomes_current(cluster: Cluster) -> None:
    """After a change of the spec the status tells that it was seen, also when the job has ended."""
    cluster.apply(train_job("demo", "pass"))
    cluster.wait_for_condition("demo", "Complete")
    before = condition(cluster, "demo", "Complete")

    cluster.kubectl("patch", "trainjob", "demo", "--type=merge", "-p", '{"spec":{"suspend":true}}')

    def is_current() -> bool:
        job = cluster.get("trainjob", "demo") or {}
        return bool(job["metadata"]["generation"] == job["status"]["observedGeneration"] > 1)

    until(is_current, "status.observedGeneration is current")
    assert cluster.state("demo") == "Complete"
    assert condition(cluster, "demo", "Complete") == before
    assert not condition(cluster, "demo", "Suspended")


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
