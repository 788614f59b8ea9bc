"""`trainer explain`: why a TrainJob does not run, made to happen on a cluster.

What it says of gangs is in `test_scheduling`, whose cluster has schedulers for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from e2e.cluster import IMAGE, Cluster, train_job, training_runtime
from e2e.identity import write_credentials
from e2e.waiting import until

WAITS, FAILED = 3, 4
GPU = "example.com/imaginary"
SLEEP = "import time; time.sleep(600)"
WORKER = "RuntimeError: DataLoader worker (pid 42) is killed by signal: Killed."
TRAP = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: (time.sleep(4), sys.exit(1))); "
    "print('ready', flush=True); time.sleep(600)"
)
"""Takes longer to end than what follows from it, and ends with a code after which its Job has failed."""


@dataclass(frozen=True)
class Case:
    """A TrainJob that does not run, and what is said about it."""

    reason: str
    """Of the first cause."""
    message: str
    """A part of its sentence."""
    remedy: str
    """A part of the remedy."""
    command: str
    """What the command that shows more begins with."""
    job: dict[str, Any]
    detail: str = ""
    """A part of its details."""
    code: int = WAITS


def job(name: str, script: str = SLEEP, *, pod: dict[str, Any] | None = None, **spec: Any) -> Any:
    """A TrainJob, perhaps with an override of its pods."""
    found = train_job(name, script, **spec)
    if pod:
        found["spec"]["podSpecOverrides"] = [{"targetJobs": [{"name": "node"}], **pod}]
    return found


def asking(name: str, **resources: dict[str, str]) -> Any:
    """A TrainJob with resources."""
    found = job(name)
    found["spec"]["trainer"]["resourcesPerNode"] = resources
    return found


CASES = [
    Case(
        "Unschedulable",
        f"no node that the pod may run on has {GPU}",
        f"device plugin for {GPU}",
        "kubectl describe nodes",
        asking("no-gpu", limits={GPU: "8"}),
        f"spec.trainer.resourcesPerNode.limits[{GPU}]: 8 requested",
    ),
    Case(
        "FailedCreate",
        'serviceaccount "nobody" not found',
        "kubectl create serviceaccount nobody",
        "kubectl get serviceaccounts",
        job("no-account", pod={"serviceAccountName": "nobody"}),
    ),
    Case(
        "CrashLoopBackOff",
        "container trainer exited with code 3 in pod crash-loop-node-0-0-",
        "the cause is not known: no error stands at the end of its log",
        "kubectl logs crash-loop-node-0-0-",
        job(
            "crash-loop",
            "print('no data'); raise SystemExit(3)",
            runtimeRef={"kind": "TrainingRuntime", "name": "restarting"},
        ),
        "no data",
    ),
    Case(
        "FailedJobs",
        "node-0: ValueError: no data",
        "its log says why",
        "trainer logs fails --node node-0",
        job("fails", "print('ValueError: no data'); raise SystemExit(7)"),
        "container trainer exited with code 7",
        FAILED,
    ),
    Case(
        "FailedJobs",
        "node-0: a process of it was killed (SIGKILL)",
        "a process was killed (SIGKILL), most likely by the kernel for memory of its node, since it has no limit",
        "trainer logs child --node node-0",
        job("child", f"print({WORKER!r}); raise SystemExit(1)"),
        "container trainer exited with code 1; a process of it was killed (SIGKILL), it has no limit of memory",
        FAILED,
    ),
    Case(
        "EndedAndHeld",
        "1 pod has ended, and proxy keeps it: pod meshed-node-0-0-",
        "let proxy end with the training: in the runtime make it a native sidecar",
        "kubectl describe pod meshed-node-0-0-",
        job("meshed", "pass", runtimeRef={"kind": "TrainingRuntime", "name": "meshed"}),
    ),
]


@pytest.fixture(scope="module")
def troubled(session_cluster: Cluster) -> Iterator[Cluster]:
    """A namespace with all the TrainJobs, which get into trouble at the same time."""
    with session_cluster.in_namespace(waits=False) as own:
        own.apply(training_runtime("restarting", pod={"restartPolicy": "OnFailure"}, backoff_limit=9))
        beside: list[dict[str, Any]] = [{"name": name, "image": IMAGE} for name in ("trainer", "proxy")]
        beside[1] |= {"command": ["python", "-c", SLEEP]}
        own.apply(training_runtime("meshed", pod={"containers": beside}))
        own.apply(*(case.job for case in CASES))
        yield own


def answer(cluster: Cluster, name: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON."""
    result = cluster.trainer("explain", name, "-o", "json")
    assert result.stdout, result.stderr
    return result.returncode, json.loads(result.stdout)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.job["metadata"]["name"]) for case in CASES])
def test_causes(troubled: Cluster, case: Case) -> None:
    """The first cause, its remedy and the command that shows more, once the cluster is in this state."""
    name = case.job["metadata"]["name"]

    def found() -> tuple[int, dict[str, Any]] | None:
        code, said = answer(troubled, name)
        is_there = said["causes"] and said["causes"][0]["reason"] == case.reason
        return (code, said) if is_there and case.detail in "".join(said["causes"][0]["details"]) else None

    code, said = until(found, f"{name} is explained by {case.reason}", pause=0.5)

    cause = said["causes"][0]
    assert code == case.code
    assert case.message in cause["message"]
    assert case.remedy in cause["remedy"]
    assert cause["command"].startswith(case.command)
    assert said["unread"] == []


def test_a_pod_that_somebody_deletes(cluster: Cluster) -> None:
    """The training is Stopping until its pods have ended, and then has failed for the pod that was deleted."""
    cluster.apply(job("demo", TRAP, nodes=2))
    until(lambda: cluster.log("demo").count("ready") == 2, "both nodes answer a signal")
    pods = cluster.kubectl("get", "pods", "-o", "name").stdout.split()
    (pod,) = (each.removeprefix("pod/") for each in pods if "-node-0-1-" in each)
    cluster.kubectl("delete", "pod", pod, "--wait=false")
    cluster.wait_for_state("demo", "Stopping")
    code, said = answer(cluster, "demo")
    assert (code, said["causes"][0]["reason"]) == (WAITS, "StoppingPods")
    assert f"pod {pod} was deleted, and not by its Job" in said["causes"][0]["message"]

    cluster.wait_for_state("demo", "Failed")
    assert "node-1: was deleted, and not by its Job" in cluster.condition("demo", "Failed")["message"]


def test_a_user_with_few_rights(cluster: Cluster) -> None:
    """Who may read TrainJobs only gets what the manager has seen, and a list of what could not be read."""
    cluster.apply(job("demo", pod={"nodeSelector": {"gpu": "imaginary"}}))
    cluster.wait_for_state("demo", "Pending")
    cluster.kubectl("create", "serviceaccount", "reader")
    resource = "--resource=trainjobs.trainer.kubeflow.org"
    cluster.kubectl("create", "role", "reader", "--verb=get,list", resource)
    cluster.kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={cluster.namespace}:reader")
    kubeconfig = cluster.kubeconfig.with_name(f"reader-of-{cluster.namespace}")
    write_credentials(cluster, kubeconfig, "reader", cluster.namespace)

    code, said = answer(replace(cluster, kubeconfig=kubeconfig), "demo")

    assert (code, said["causes"][0]["reason"]) == (WAITS, "Unschedulable")
    assert "gpu=imaginary" in said["causes"][0]["message"]
    assert sorted(each["what"] for each in said["unread"]) == ["jobsets", "pods"]
    assert all("cannot" in each["why"] for each in said["unread"])


@contextmanager
def lost_node(cluster: Cluster) -> Iterator[None]:
    """Nobody hears of the node of the dev cluster within the context."""
    [node] = cluster.kubectl("get", "nodes", "-o", "name").stdout.split()
    cluster.kubectl("annotate", node, "devcluster.trainer/ready=Unknown")
    try:
        yield
    finally:
        cluster.kubectl("annotate", node, "devcluster.trainer/ready-")


def test_lost_node(cluster: Cluster) -> None:
    """A training is Stopping while its node is lost, and a person may end its pods by the command that is shown."""
    cluster.require_local("a node that may be lost")
    lost = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    cluster.apply(job("stays"), job("goes", pod={"tolerations": [lost | {"tolerationSeconds": 3}]}))
    for name in ("stays", "goes"):
        cluster.wait_for_state(name, "Running")
    with lost_node(cluster):
        for name in ("stays", "goes"):
            cluster.wait_for_state(name, "Stopping")
        code, said = answer(cluster, "stays")
        [cause] = said["causes"]
        assert (code, cause["reason"]) == (WAITS, "NodeNotReady")
        assert "with pod stays-node-0-0-" in cause["message"]
        assert "Kubernetes deletes its pods at" in cause["details"][0]

        def deleted() -> str:
            [cause] = answer(cluster, "goes")[1]["causes"]
            return str(cause["commands"][0]) if "its pods have been deleted at" in cause["details"][0] else ""

        command = until(deleted, "the pod of goes is deleted").split()
        assert command[:4] == ["kubectl", "taint", "nodes", "laptop"]
        assert "Terminating" in cluster.kubectl("get", "pods").stdout
        try:
            cluster.kubectl(*command[1:5])
            until(lambda: "Stopping" not in {cluster.state("goes"), cluster.state("stays")}, "no pod holds up anything")
        finally:
            cluster.kubectl("taint", "nodes", "laptop", "node.kubernetes.io/out-of-service-")
    for name in ("goes", "stays"):
        cluster.wait_for_state(name, "Running")


def test_before_submission(cluster: Cluster) -> None:
    """What would hold it is found by dry runs, and nothing is stored."""
    manifest = json.dumps(job("demo", "pass", pod={"serviceAccountName": "nobody"}))
    result = cluster.trainer("explain", "-f", "-", stdin=manifest)
    assert result.returncode == WAITS, result.stdout + result.stderr
    assert 'serviceaccount "nobody" not found' in result.stdout
    assert cluster.list("trainjob,pod") == []
