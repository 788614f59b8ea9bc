"""The life of TrainJobs."""

from __future__ import annotations

import json
import signal
import uuid

import pytest

from e2e.cluster import Cluster, train_job
from e2e.processes import with_argument
from e2e.waiting import until

SLEEP = "import sys, time; print('started'); time.sleep(float(sys.argv[1]))"

RENDEZVOUS = """
import os, socket, time
name, rank = os.environ["JOB"], os.environ["PET_NODE_RANK"]
address = os.environ["PET_MASTER_ADDR"], int(os.environ["PET_MASTER_PORT"])
deadline = time.monotonic() + 60
if rank == "0":
    with socket.create_server(("", address[1])) as server:
        time.sleep(5)
        connection, _ = server.accept()
        with connection:
            assert connection.recv(100).decode() == name
            connection.sendall(b"welcome to " + name.encode())
else:
    while True:
        try:
            connection = socket.create_connection(address, timeout=5)
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    with connection:
        connection.sendall(name.encode())
        print(connection.recv(100).decode())
"""


def condition(cluster: Cluster, name: str, kind: str) -> dict[str, str]:
    job = cluster.get("trainjob", name)
    assert job is not None
    found: dict[str, str] = next(item for item in job["status"]["conditions"] if item["type"] == kind)
    return found


def identities(cluster: Cluster) -> dict[str, set[str]]:
    """The uids of everything that TrainJobs become."""
    return {kind: {item["metadata"]["uid"] for item in cluster.list(kind)} for kind in ("jobset", "job", "pod")}


def test_run_to_complete(cluster: Cluster) -> None:
    """A job of two nodes goes from Created to Complete."""
    cluster.apply(train_job("demo", SLEEP, nodes=2, arguments=["0.5"]))

    cluster.wait_for_condition("demo", "Complete")

    assert cluster.state("demo") == "Complete"
    pods = cluster.list("pod")
    assert sorted(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in pods) == ["0", "1"]
    assert {pod["status"]["phase"] for pod in pods} == {"Succeeded"}


def test_suspend_and_resume(cluster: Cluster) -> None:
    """A suspended job has no pods; resumed, it runs from the start to Complete."""
    marker = uuid.uuid4().hex
    cluster.apply(train_job("demo", SLEEP, arguments=["60", marker], suspend=True))
    cluster.wait_for_state("demo", "Suspended")
    assert condition(cluster, "demo", "Suspended")["status"] == "True"
    assert cluster.list("pod") == []

    cluster.kubectl("patch", "trainjob", "demo", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    cluster.wait_for_state("demo", "Running")
    assert condition(cluster, "demo", "Suspended")["status"] == "False"

    cluster.kubectl("patch", "trainjob", "demo", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    cluster.wait_for_state("demo", "Suspended")
    until(lambda: not cluster.list("pod"), "the pods are gone")
    if cluster.is_local:
        until(lambda: not with_argument(marker), "the processes are gone")


def test_deletion_leaves_nothing(cluster: Cluster) -> None:
    """When a running job is deleted, no object and no process of it is left."""
    marker = uuid.uuid4().hex
    cluster.apply(train_job("demo", SLEEP, nodes=2, arguments=["60", marker]))
    cluster.wait_for_state("demo", "Running")
    if cluster.is_local:
        until(lambda: len(with_argument(marker)) >= 2, "both nodes run")

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


def test_two_jobs_with_one_port(cluster: Cluster) -> None:
    """Two jobs whose first nodes listen on port 29400 run side by side, each among its own nodes."""
    if cluster.is_local and not cluster.pod_network.startswith("netns"):
        pytest.skip(f"pods share one network on this machine ({cluster.pod_network})")
    jobs = [train_job(name, RENDEZVOUS, nodes=2, runtime="torch-distributed") for name in ("left", "right")]
    for job in jobs:
        job["spec"]["trainer"]["env"] = [{"name": "JOB", "value": job["metadata"]["name"]}]
    cluster.apply(*jobs)

    until(lambda: {cluster.state("left"), cluster.state("right")} == {"Running"}, "both jobs run at the same time")

    for name in ("left", "right"):
        cluster.wait_for_condition(name, "Complete")
        log = cluster.kubectl("logs", "-l", f"jobset.sigs.k8s.io/jobset-name={name}").stdout
        assert f"welcome to {name}\n" in log
