"""PyTorchJobs and JAXJobs of `kubeflow.org/v1` on the dev cluster, with kubectl, torchrun and JAX."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster
from e2e.conftest import running_cluster
from e2e.test_elastic import RENDEZVOUS, TRAIN
from e2e.v1_jobs import conditions, jax_job, pytorch_job, replica, wait_for
from e2e.waiting import until

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="needs a dev cluster of its own that serves v1 jobs"),
]

TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed: make nightly installs it")
JAX = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed: make nightly installs it")
TIMEOUT = 120.0
"""Seconds for one step of a real training."""
DIGITS = Path(__file__).parents[1] / "examples" / "jax-digits" / "trainjob.yaml"

SAY = "echo $WORLD_SIZE $RANK $MASTER_PORT $PET_NNODES"
SAY_JAX = ["sh", "-c", "echo $NUM_PROCESSES $PROCESS_ID $COORDINATOR_ADDRESS"]
WAIT = ["sleep", "600"]


@pytest.fixture(scope="module")
def v1_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A dev cluster whose manager serves v1 jobs, and whose JobSet lets Jobs be resized."""
    options = "--feature-gates", "ElasticJobSet=true"
    with running_cluster(tmp_path_factory.mktemp("v1"), *options, serves_v1=True) as cluster:
        yield cluster


@pytest.fixture
def cluster(v1_cluster: Cluster) -> Iterator[Cluster]:
    """An empty namespace."""
    own = replace(v1_cluster, namespace=f"v1-{uuid.uuid4().hex[:8]}")
    v1_cluster.kubectl("create", "namespace", own.namespace)
    yield own
    v1_cluster.kubectl("delete", "namespace", own.namespace, "--timeout=60s")


def log_of(cluster: Cluster, selector: str) -> str:
    """What the containers of pods with these labels have written."""
    return cluster.kubectl("logs", "-l", selector, "--tail=-1", check=False).stdout


def test_pytorch_job(cluster: Cluster, tmp_path: Path) -> None:
    """Master and workers find the variables of the Training Operator, and the job says how it goes and ends."""
    job = pytorch_job("demo", ["sh", "-c", f"{SAY}; while [ ! -e /gate/go ]; do sleep 0.2; done"], workers=2)
    for role in job["spec"]["pytorchReplicaSpecs"].values():
        spec = role["template"]["spec"]
        spec["volumes"] = [{"name": "gate", "hostPath": {"path": str(tmp_path)}}]
        spec["containers"][0]["volumeMounts"] = [{"name": "gate", "mountPath": "/gate"}]
    cluster.apply(job)
    wait_for(cluster, "pytorchjob", "demo", "Running")
    until(
        lambda: [each.get("active") for each in _replicas(cluster)] == [1, 2], lambda: f"all run: {_replicas(cluster)}"
    )
    label = "training.kubeflow.org/job-name=demo,training.kubeflow.org"
    assert log_of(cluster, f"{label}/job-role=master").split() == ["3", "0", "29400", "3"]
    assert log_of(cluster, f"{label}/replica-type=worker,training.kubeflow.org/replica-index=1").split()[1] == "2"
    (tmp_path / "go").touch()
    wait_for(cluster, "pytorchjob", "demo", "Succeeded")
    assert conditions(cluster, "pytorchjob", "demo") == ["Created", "!Running", "Succeeded"]
    status = (cluster.get("pytorchjob", "demo") or {})["status"]
    assert status["replicaStatuses"]["Master"]["succeeded"] == 1
    assert status["startTime"] <= status["completionTime"]
    shown = cluster.kubectl("get", "pytorchjob", "demo", "--no-headers").stdout.split()
    assert shown[:2] == ["demo", "Succeeded"]


def test_jax_job(cluster: Cluster) -> None:
    """Workers find the variables of the Training Operator."""
    cluster.apply(jax_job("demo", SAY_JAX))
    wait_for(cluster, "jaxjob", "demo", "Succeeded")
    second = log_of(cluster, "training.kubeflow.org/job-name=demo,training.kubeflow.org/replica-index=1")
    assert second.split()[:2] == ["2", "1"]
    assert second.split()[2].startswith("demo-node-0-0.demo")


def test_roles_that_differ(cluster: Cluster) -> None:
    """Master and workers with commands of their own run beside each other, and the job ends with the Master."""
    job = pytorch_job("demo", ["sh", "-c", "sleep 3; echo master $WORLD_SIZE $RANK"], workers=2)
    job["spec"]["pytorchReplicaSpecs"]["Worker"] = replica("pytorch", WAIT, 2)
    cluster.apply(job)
    wait_for(cluster, "pytorchjob", "demo", "Succeeded")
    assert log_of(cluster, "training.kubeflow.org/job-role=master").split() == ["master", "3", "0"]


def test_failure(cluster: Cluster) -> None:
    """A job that fails says which container has failed, and how."""
    cluster.apply(jax_job("demo", ["sh", "-c", "echo no such file >&2; exit 3"], workers=1))
    wait_for(cluster, "jaxjob", "demo", "Failed")
    message = (cluster.get("jaxjob", "demo") or {})["status"]["conditions"][-1]["message"]
    assert "1 Worker replica(s) failed" in message
    assert "container jax exited with code 3" in message
    assert "no such file" in message


def test_suspension(cluster: Cluster) -> None:
    """A suspended job has no pods, and trains once it is resumed with what it says then, as Kueue has it."""
    job = pytorch_job("demo", WAIT, runPolicy={"suspend": True})
    cluster.apply(job)
    wait_for(cluster, "pytorchjob", "demo", "Suspended")
    assert cluster.list("pod") == []
    for role in job["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["metadata"] = {"labels": {"kueue.x-k8s.io/podset": "x"}}
    cluster.apply(job | {"spec": job["spec"] | {"runPolicy": {"suspend": False}}})
    wait_for(cluster, "pytorchjob", "demo", "Running")
    assert [pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] for pod in cluster.list("pod")] == ["x", "x"]

    cluster.apply(job)
    until(lambda: "Suspended" in conditions(cluster, "pytorchjob", "demo"), "the job is suspended again")
    until(lambda: cluster.list("pod") == [], "its pods are gone")
    until(
        lambda: not any(each["active"] for each in _replicas(cluster)),
        lambda: f"none is active: {_replicas(cluster)}",
    )


def _replicas(cluster: Cluster) -> list[dict[str, Any]]:
    return list((cluster.get("pytorchjob", "demo") or {})["status"]["replicaStatuses"].values())


def test_what_is_refused(cluster: Cluster) -> None:
    """kubectl prints the field and what to do."""
    unnamed = pytorch_job("unnamed", WAIT, workers=2)
    unnamed["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["name"] = "main"
    refused = cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(unnamed), check=False).stderr
    assert "one must be called pytorch, which trains" in refused
    cluster.apply(pytorch_job("demo", WAIT))
    wait_for(cluster, "pytorchjob", "demo", "Running")
    refused = cluster.kubectl("scale", "pytorchjob/demo", "--replicas=3", check=False).stderr
    assert "spec.pytorchReplicaSpecs[Worker].replicas: Forbidden" in refused
    patch = (
        '[{"op": "replace", "path": "/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/image", "value": "b"}]'
    )
    refused = cluster.kubectl("patch", "pytorchjob", "demo", "--type=json", "-p", patch, check=False).stderr
    assert "spec.pytorchReplicaSpecs[Worker].template.spec.containers[pytorch].image: Forbidden" in refused


def test_deletion(cluster: Cluster) -> None:
    """A job takes with it all that it has become; a finished one goes at its time."""
    cluster.apply(pytorch_job("demo", WAIT), jax_job("short", ["true"], runPolicy={"ttlSecondsAfterFinished": 1}))
    wait_for(cluster, "pytorchjob", "demo", "Running")
    until(lambda: cluster.get("jaxjob", "short") is None, "the finished job is gone")
    cluster.kubectl("delete", "pytorchjob", "demo", "--timeout=60s")
    for kind in ("trainjob", "trainingruntime", "jobset", "pod"):
        until(partial(_is_none_left, cluster, kind), f"there is no {kind}")


def _is_none_left(cluster: Cluster, kind: str) -> bool:
    return cluster.list(kind) == []


def elastic_job(command: list[str], workers: int, **policy: Any) -> dict[str, Any]:
    """An elastic PyTorchJob of one to three workers with the script and a volume."""
    conf = [dict(zip(("key", "value"), each.split("="), strict=True)) for each in RENDEZVOUS.split(",")]
    elastic = {"rdzvBackend": "c10d", "minReplicas": 1, "maxReplicas": 3, "maxRestarts": 20, "rdzvConf": conf}
    mounts = [{"name": "script", "mountPath": "/workspace"}, {"name": "state", "mountPath": "/state"}]
    worker = replica("pytorch", command, workers, volumeMounts=mounts, workingDir="/workspace")
    worker["restartPolicy"] = "OnFailure"
    worker["template"]["spec"]["volumes"] = [
        {"name": "script", "configMap": {"name": "script"}},
        {"name": "state", "persistentVolumeClaim": {"claimName": "state"}},
    ]
    job = pytorch_job("demo", [])
    job["spec"] = {"elasticPolicy": elastic | policy, "nprocPerNode": "1", "pytorchReplicaSpecs": {"Worker": worker}}
    return job


SCRIPT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "script"}, "data": {"train.py": TRAIN}}
STATE = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "state"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Mi"}}},
}


@TORCH
def test_elastic(cluster: Cluster) -> None:
    """`kubectl scale pytorchjob` takes a real torchrun from one worker to three and down to two."""
    if not cluster.pod_network.startswith("netns"):
        pytest.skip(f"pods share one network on this machine ({cluster.pod_network})")
    marker = uuid.uuid4().hex
    cluster.apply(SCRIPT, STATE, elastic_job(["torchrun", "train.py", marker, "1", "3", "2"], 1))

    for size in (1, 3, 2):
        before = len(_starts(cluster))
        cluster.kubectl("scale", "pytorchjob/demo", f"--replicas={size}")
        until(
            partial(_has_started, cluster, size, before if size > 1 else 0),
            partial("{} workers train".format, size),
            timeout=TIMEOUT,
        )
    refused = cluster.kubectl("scale", "pytorchjob/demo", "--replicas=4", check=False).stderr
    assert "must be between 1 and 3" in refused
    wait_for(cluster, "pytorchjob", "demo", "Succeeded", timeout=TIMEOUT)
    scale = cluster.kubectl("get", "--raw", _path(cluster, "pytorchjobs/demo/scale")).stdout
    assert "training.kubeflow.org/replica-type=worker" in scale


@TORCH
def test_rendezvous_of_the_job(cluster: Cluster) -> None:
    """Agents of a real torchrun meet at the port and under the id that the job says, at the first pod."""
    if not cluster.pod_network.startswith("netns"):
        pytest.skip(f"pods share one network on this machine ({cluster.pod_network})")
    own = {"rdzvHost": "demo-worker-0", "rdzvPort": 31777, "rdzvId": "of-the-job", "minReplicas": 2}
    say = "echo meets at $PET_RDZV_ENDPOINT under $PET_RDZV_ID; exec torchrun train.py $(hostname) never"
    cluster.apply(SCRIPT, STATE, elastic_job(["sh", "-c", say], 2, **own))
    selector = "training.kubeflow.org/job-name=demo"
    until(lambda: "rank 0 of 2" in log_of(cluster, selector), "the workers have met", timeout=TIMEOUT)
    said = log_of(cluster, selector)
    assert said.count("meets at demo-node-0-0.demo:31777 under of-the-job") == 2


def _starts(cluster: Cluster) -> list[str]:
    """What the first worker has said, one line for each of its starts."""
    text = log_of(cluster, "training.kubeflow.org/job-name=demo,training.kubeflow.org/replica-index=0")
    return [line for line in text.splitlines() if line.startswith("rank 0 of")]


def _has_started(cluster: Cluster, size: int, after: int) -> bool:
    """Whether so many workers have been started, later than some starts."""
    return f"rank 0 of {size}" in _starts(cluster)[after:]


def _path(cluster: Cluster, rest: str) -> str:
    return f"/apis/kubeflow.org/v1/namespaces/{cluster.namespace}/{rest}"


def test_autoscaler(cluster: Cluster) -> None:
    """An elastic job with metrics has an autoscaler, which gives it more workers, until the job is suspended."""
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    job = elastic_job(WAIT, 1, metrics=[{"type": "Resource", "resource": cpu}])
    template = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    template["metadata"] = {"annotations": {"devcluster.trainer/metric-cpu": "400m"}}
    cluster.apply(SCRIPT, STATE, job)
    found = until(lambda: cluster.get("hpa", "demo"), "there is an autoscaler")
    assert found["spec"]["scaleTargetRef"]["kind"] == "PyTorchJob"
    assert (found["spec"]["minReplicas"], found["spec"]["maxReplicas"]) == (1, 3)
    until(
        lambda: [each.get("active") for each in _replicas(cluster)] == [3],
        lambda: f"three workers run: {_replicas(cluster)}",
        timeout=TIMEOUT,
    )
    cluster.kubectl("patch", "pytorchjob", "demo", "--type=merge", "-p", '{"spec":{"runPolicy":{"suspend":true}}}')
    until(lambda: cluster.list("hpa") == [], "the autoscaler is gone")


@JAX
def test_jax_digits(cluster: Cluster) -> None:
    """Two processes of JAX learn digits together, started as a JAXJob."""
    if not cluster.pod_network.startswith("netns"):
        pytest.skip(f"pods share one network on this machine ({cluster.pod_network})")
    script = next(obj for obj in yaml.safe_load_all(DIGITS.read_text()) if obj["kind"] == "ConfigMap")
    cluster.apply(script, digits_job(script["metadata"]["name"], "train.py"))
    wait_for(cluster, "jaxjob", "digits", "Succeeded", timeout=TIMEOUT)
    assert "accuracy" in log_of(cluster, "training.kubeflow.org/job-role=master")


def digits_job(config_map: str, script: str) -> dict[str, Any]:
    """The example jax-digits as a JAXJob."""
    job = jax_job("digits", ["python", f"/workspace/{script}"])
    spec = job["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"]
    spec["containers"][0]["volumeMounts"] = [{"name": "script", "mountPath": "/workspace"}]
    spec["volumes"] = [{"name": "script", "configMap": {"name": config_map}}]
    return job
