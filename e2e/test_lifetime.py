"""The end of TrainJobs that nobody deletes, and the beginning of those that could not begin."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from e2e import audit
from e2e.cluster import IMAGE, Cluster, train_job
from e2e.waiting import until

SLEEP = "import time; time.sleep(60)"


def created(cluster: Cluster, name: str) -> dict[str, Any]:
    """The condition Created of a TrainJob; empty while it has none."""
    conditions = ((cluster.get("trainjob", name) or {}).get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == "Created"), {})


def own_runtime(cluster: Cluster, greeting: str) -> dict[str, Any]:
    """A copy of a shipped runtime, with a variable of its own."""
    plain = cluster.get("clustertrainingruntime", "plain")
    assert plain is not None
    runtime = {key: plain[key] for key in ("apiVersion", "spec")}
    (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    (container,) = node["template"]["spec"]["template"]["spec"]["containers"]
    container["env"] = [*container.get("env", []), {"name": "GREETING", "value": greeting}]
    return runtime | {"kind": "TrainingRuntime", "metadata": {"name": "mine"}}


def test_deadline(cluster: Cluster) -> None:
    """A TrainJob that takes too long fails, and what it had running goes."""
    cluster.apply(train_job("demo", SLEEP, activeDeadlineSeconds=2))

    cluster.wait_for_condition("demo", "Failed")

    (failed,) = [
        each for each in (cluster.get("trainjob", "demo") or {})["status"]["conditions"] if each["type"] == "Failed"
    ]
    assert failed["reason"] == "DeadlineExceeded"
    until(lambda: not cluster.list("jobset") and not cluster.list("pod"), "JobSet and pods are gone")

    def counts() -> dict[str, Any]:
        (job,) = (cluster.get("trainjob", "demo") or {})["status"]["jobsStatus"]
        return dict(job)

    until(lambda: counts()["active"] == 0, "no process is asked to run any more")


def test_time_to_live(cluster: Cluster) -> None:
    """A TrainJob that has ended is deleted when its time is over, with all that came of it."""
    cluster.apply(train_job("demo", "pass", ttlSecondsAfterFinished=3))

    until(lambda: cluster.get("jobset", "demo"), "it has begun")
    until(lambda: cluster.get("trainjob", "demo") is None, "it is gone")
    until(lambda: not cluster.list("jobset") and not cluster.list("pod"), "JobSet and pods are gone")


def test_a_runtime_that_is_replaced_in_time(cluster: Cluster) -> None:
    """A TrainJob of which nothing could be built is built on the runtime as it is when it can be."""
    runtime = own_runtime(cluster, "old")
    other = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "demo"}}
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}
    job = {"name": "a", "template": {"spec": {"template": {"spec": pod}}}}
    cluster.apply(other | {"spec": {"suspend": True, "replicatedJobs": [job]}}, runtime)
    mine = train_job("demo", "import os; print(os.environ['GREETING'])", runtime="mine")
    mine["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
    cluster.apply(mine)
    until(lambda: created(cluster, "demo").get("status") == "False", "the name of its JobSet is taken")
    (snapshot,) = snapshots(cluster)

    cluster.kubectl("delete", "trainingruntime", "mine")
    cluster.apply(own_runtime(cluster, "new"))
    cluster.kubectl("delete", "jobset", "demo")

    cluster.wait_for_condition("demo", "Complete")
    assert cluster.kubectl("logs", "job/demo-node-0").stdout == "new\n"
    (current,) = snapshots(cluster)
    assert current["metadata"]["uid"] != snapshot["metadata"]["uid"]


def snapshots(cluster: Cluster) -> list[dict[str, Any]]:
    """The runtimes that TrainJobs of the namespace keep."""
    return [obj for obj in cluster.list("configmap") if obj["metadata"].get("ownerReferences")]


def test_another_number_of_nodes_before_the_start(cluster: Cluster) -> None:
    """A suspended TrainJob that has not started is resized with kubectl; resumed, it runs as many pods."""
    script = "import os; print(os.environ['JOB_COMPLETION_INDEX'])"
    cluster.apply(train_job("demo", script, suspend=True))
    cluster.wait_for_state("demo", "Suspended")
    until(lambda: cluster.get("job", "demo-node-0") is not None, "its Job exists")
    former = cluster.get("jobset", "demo") or {}

    cluster.kubectl("patch", "trainjob", "demo", "--type", "merge", "-p", '{"spec":{"trainer":{"numNodes":3}}}')
    until(lambda: sizes(cluster) == (3, 3), "the JobSet and its Job have three nodes")
    assert (cluster.get("jobset", "demo") or {})["metadata"]["uid"] != former["metadata"]["uid"]
    assert cluster.list("pod") == []

    cluster.kubectl("patch", "trainjob", "demo", "--type", "merge", "-p", '{"spec":{"suspend":false}}')
    cluster.wait_for_condition("demo", "Complete")
    assert len(cluster.list("pod")) == 3
    for node in range(3):
        assert cluster.kubectl("logs", f"pod/{pod_of(cluster, node)}").stdout == f"{node}\n"


def sizes(cluster: Cluster) -> tuple[int, int]:
    """Nodes of the JobSet and of its Job; 0 for what is not there."""
    jobset, job = cluster.get("jobset", "demo"), cluster.get("job", "demo-node-0")
    if jobset is None or job is None:
        return 0, 0
    return jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"], job["spec"]["parallelism"]


def pod_of(cluster: Cluster, node: int) -> str:
    """Name of the pod that was a node."""
    index = "batch.kubernetes.io/job-completion-index"
    (name,) = (pod["metadata"]["name"] for pod in cluster.list("pod") if pod["metadata"]["labels"][index] == str(node))
    return str(name)


def test_a_namespace_that_is_deleted(session_cluster: Cluster) -> None:
    """What runs and waits in it is left alone while it goes, however long that takes and in whichever order."""
    cluster = replace(session_cluster, namespace=f"e2e-{uuid.uuid4().hex[:8]}")
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.namespace}})
    holding = {"name": "holding", "finalizers": ["example.com/keep"]}
    container = {"name": "main", "image": IMAGE, "command": ["python", "-c", "pass"]}
    cluster.apply(
        train_job("runs", SLEEP, nodes=2),
        train_job("waits", SLEEP, nodes=2, suspend=True),
        {"apiVersion": "v1", "kind": "Pod", "metadata": holding, "spec": {"containers": [container]}},
    )
    cluster.wait_for_state("runs", "Running")
    cluster.wait_for_state("waits", "Suspended")
    said = len(cluster.manager.output())

    # Objects of other kinds go when no pod is left, and this one goes when it is let go.
    cluster.kubectl("delete", "namespace", cluster.namespace, "--wait=false")
    cluster.kubectl("delete", "jobset", "waits", "--timeout=30s")
    until(lambda: "its namespace is being deleted" in cluster.manager.output()[said:], "the manager has noticed")
    cluster.kubectl("patch", "pod", "holding", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    cluster.kubectl("wait", "--for=delete", f"namespace/{cluster.namespace}", "--timeout=60s")

    lines = [line for line in cluster.manager.output()[said:].splitlines() if cluster.namespace in line]
    assert [line for line in lines if "reconcile failed" in line] == []
    if (log := audit.log_of_run()) is not None:
        requests = audit.requests_of_manager(log)
        refused = [each for each in requests if each.namespace == cluster.namespace and each.code == 403]
        assert len([each for each in refused if each.resource != "events"]) <= 4
        assert len(refused) <= 20
