"""PyTorchJobs and JAXJobs of `kubeflow.org/v1` on the dev cluster, with kubectl, torchrun and JAX."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import IMAGE, Cluster
from e2e.conftest import running_cluster
from e2e.prerequisites import needs_module
from e2e.released_cluster import install, released_cluster
from e2e.test_elastic import RENDEZVOUS, STATE, TRAIN
from e2e.waiting import until

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="needs a dev cluster of its own that serves v1 jobs"),
]

TIMEOUT = 120.0
"""Seconds for one step of a real training."""
DIGITS = Path(__file__).parents[1] / "examples" / "jax-digits" / "trainjob.yaml"
LABEL = "training.kubeflow.org"
SCRIPT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "script"}, "data": {"train.py": TRAIN}}


@pytest.fixture(scope="module")
def v1_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A dev cluster whose manager serves v1 jobs, and whose JobSet lets Jobs be resized."""
    options = "--feature-gates", "ElasticJobSet=true"
    with running_cluster(tmp_path_factory.mktemp("v1"), *options, serves_v1=True) as cluster:
        yield cluster


@pytest.fixture
def cluster(v1_cluster: Cluster) -> Iterator[Cluster]:
    """An empty namespace."""
    with v1_cluster.in_namespace() as own:
        yield own


def replica(container: str, command: Sequence[str], replicas: int = 1, **more: Any) -> dict[str, Any]:
    """The pods of a role."""
    spec = {"containers": [{"name": container, "image": IMAGE, "command": list(command)} | more]}
    return {"replicas": replicas, "restartPolicy": "Never", "template": {"spec": spec}}


def job_of(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """A job of a kind."""
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def pytorch_job(command: Sequence[str], workers: int = 1) -> dict[str, Any]:
    """A PyTorchJob with a Master and workers that run the same."""
    specs = {"Master": replica("pytorch", command), "Worker": replica("pytorch", command, workers)}
    return job_of("PyTorchJob", "demo", pytorchReplicaSpecs=specs)


def jax_job(command: Sequence[str]) -> dict[str, Any]:
    """A JAXJob of two workers."""
    return job_of("JAXJob", "demo", jaxReplicaSpecs={"Worker": replica("jax", command, 2)})


def conditions(cluster: Cluster, kind: str) -> list[str]:
    """The conditions of the job, those that are False with an exclamation mark."""
    found = ((cluster.get(kind, "demo") or {}).get("status") or {}).get("conditions") or []
    return [each["type"] if each["status"] == "True" else f"!{each['type']}" for each in found]


def wait_for(cluster: Cluster, kind: str, condition: str, timeout: float = 60) -> None:
    """Wait until the job has this condition last."""
    until(
        lambda: conditions(cluster, kind)[-1:] == [condition],
        lambda: f"the {kind} is {condition}, and not {conditions(cluster, kind)}",
        timeout=timeout,
    )


def log_of(cluster: Cluster, *labels: str) -> str:
    """What the containers of pods of the job with these labels have written."""
    selector = ",".join(f"{LABEL}/{each}" for each in ("job-name=demo", *labels))
    return cluster.kubectl("logs", "-l", selector, "--tail=-1", check=False).stdout


def test_pytorch_job(cluster: Cluster, tmp_path: Path) -> None:
    """Master and workers find the variables of the Training Operator, and the job says how it goes and ends."""
    say = "echo $WORLD_SIZE $RANK $MASTER_PORT $PET_NNODES"
    job = pytorch_job(["sh", "-c", f"{say}; while [ ! -e /gate/go ]; do sleep 0.2; done"], workers=2)
    for role in job["spec"]["pytorchReplicaSpecs"].values():
        spec = role["template"]["spec"]
        spec["volumes"] = [{"name": "gate", "hostPath": {"path": str(tmp_path)}}]
        spec["containers"][0]["volumeMounts"] = [{"name": "gate", "mountPath": "/gate"}]
    cluster.apply(job)
    wait_for(cluster, "pytorchjob", "Running")

    def active() -> list[int]:
        found = (cluster.get("pytorchjob", "demo") or {})["status"]["replicaStatuses"]
        return [each.get("active") for each in found.values()]

    until(lambda: active() == [1, 2], lambda: f"all run: {active()}")
    assert log_of(cluster, "job-role=master").split() == ["3", "0", "29400", "3"]
    assert log_of(cluster, "replica-type=worker", "replica-index=1").split()[1] == "2"
    (tmp_path / "go").touch()
    wait_for(cluster, "pytorchjob", "Succeeded")
    assert conditions(cluster, "pytorchjob") == ["Created", "!Running", "Succeeded"]
    status = (cluster.get("pytorchjob", "demo") or {})["status"]
    assert status["replicaStatuses"]["Master"]["succeeded"] == 1
    assert status["startTime"] <= status["completionTime"]
    shown = cluster.kubectl("get", "pytorchjob", "demo", "--no-headers").stdout.split()
    assert shown[:2] == ["demo", "Succeeded"]


@needs_module("torch")
def test_elastic(cluster: Cluster) -> None:
    """`kubectl scale pytorchjob` takes a real torchrun from one worker to three and down to two."""
    cluster.require_pod_networks()
    command = ["torchrun", "train.py", uuid.uuid4().hex, "1", "3", "2"]
    conf = [dict(zip(("key", "value"), each.split("="), strict=True)) for each in RENDEZVOUS.split(",")]
    elastic = {"rdzvBackend": "c10d", "minReplicas": 1, "maxReplicas": 3, "maxRestarts": 20, "rdzvConf": conf}
    mounts = [{"name": "script", "mountPath": "/workspace"}, {"name": "state", "mountPath": "/state"}]
    worker = replica("pytorch", command, volumeMounts=mounts, workingDir="/workspace") | {"restartPolicy": "OnFailure"}
    worker["template"]["spec"]["volumes"] = [
        {"name": "script", "configMap": {"name": "script"}},
        {"name": "state", "persistentVolumeClaim": {"claimName": "state"}},
    ]
    specs = {"Worker": worker}
    job = job_of("PyTorchJob", "demo", elasticPolicy=elastic, nprocPerNode="1", pytorchReplicaSpecs=specs)
    cluster.apply(SCRIPT, STATE, job)

    def starts() -> list[str]:
        lines = log_of(cluster, "replica-index=0").splitlines()
        return [line for line in lines if line.startswith("rank 0 of")]

    def has_started(size: int, after: int) -> bool:
        return f"rank 0 of {size}" in starts()[after:]

    for size in (1, 3, 2):
        before = len(starts()) if size > 1 else 0
        cluster.kubectl("scale", "pytorchjob/demo", f"--replicas={size}")
        until(partial(has_started, size, before), partial("{} workers train".format, size), timeout=TIMEOUT)
    refused = cluster.kubectl("scale", "pytorchjob/demo", "--replicas=4", check=False).stderr
    assert "must be between 1 and 3" in refused
    wait_for(cluster, "pytorchjob", "Succeeded", timeout=TIMEOUT)
    path = f"/apis/kubeflow.org/v1/namespaces/{cluster.namespace}/pytorchjobs/demo/scale"
    assert f"{LABEL}/replica-type=worker" in cluster.kubectl("get", "--raw", path).stdout


@needs_module("jax")
def test_jax_digits(cluster: Cluster) -> None:
    """Two processes of JAX learn digits together, started as a JAXJob."""
    cluster.require_pod_networks()
    script = next(obj for obj in yaml.safe_load_all(DIGITS.read_text()) if obj["kind"] == "ConfigMap")
    job = jax_job(["python", "/workspace/train.py"])
    spec = job["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"]
    spec["containers"][0]["volumeMounts"] = [{"name": "script", "mountPath": "/workspace"}]
    spec["volumes"] = [{"name": "script", "configMap": {"name": script["metadata"]["name"]}}]
    cluster.apply(script, job)
    wait_for(cluster, "jaxjob", "Succeeded", timeout=TIMEOUT)
    assert "accuracy" in log_of(cluster, "job-role=master")


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A dev cluster with the definitions and names of Kubeflow Trainer (Go); our manager serves v1 jobs."""
    with released_cluster(tmp_path_factory.mktemp("v1-released")) as cluster:
        install(cluster, serves_v1=True)
        yield cluster


@pytest.mark.parametrize(
    ("job", "kind", "said"),
    [
        pytest.param(
            pytorch_job(["sh", "-c", "echo $WORLD_SIZE $RANK $MASTER_PORT $PET_NNODES"], workers=2),
            "pytorchjob",
            ["3", "0", "29500", "3"],
            id="PyTorchJob",
        ),
        pytest.param(
            jax_job(["sh", "-c", "echo $NUM_PROCESSES $PROCESS_ID $COORDINATOR_PORT"]),
            "jaxjob",
            ["2", "0", "29500"],
            id="JAXJob",
        ),
    ],
)
def test_v1alpha1(released: Cluster, job: dict[str, object], kind: str, said: list[str]) -> None:
    """The pods find the variables of the Training Operator, and the job its conditions; the TrainJob is of v1alpha1."""
    with released.in_namespace() as cluster:
        cluster.apply(job)
        wait_for(cluster, kind, "Succeeded")
        assert log_of(cluster, "job-role=master").split() == said
        assert conditions(cluster, kind)[0] == "Created"
        found = cluster.get("trainjob", "demo") or {}
        assert found["apiVersion"] == "trainer.kubeflow.org/v1alpha1"
        assert found["spec"]["runtimeRef"]["kind"] == "TrainingRuntime"
