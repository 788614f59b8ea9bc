"""Every example of KEP-2170 runs to the state that the KEP implies, all of them at the same time.

torchrun is the real one; the training scripts and the images of the fine-tuning are stand-ins (see `kep_examples`).
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from e2e import kep_examples
from e2e.cluster import Cluster
from e2e.gang_schedulers import COSCHEDULING, installed
from e2e.prerequisites import MPI
from e2e.waiting import until

pytestmark = pytest.mark.timeout(300)

TIMEOUT = 240.0
"""Seconds; everything runs at once, so the first test waits for most of the others."""


@dataclass(frozen=True, slots=True)
class Training:
    """What torchrun starts."""

    nodes: int
    processes: int
    """On each node; 0: as many as the node has CPUs."""
    arguments: str = ""


TORCH = {
    "torch-ddp": Training(nodes=5, processes=2),
    "torch-test": Training(nodes=2, processes=5, arguments="num-epochs=5"),
    "torch-simple": Training(nodes=1, processes=1),
    "torch-distributed-single-worker": Training(nodes=1, processes=5),
    "pytorch-distributed": Training(nodes=2, processes=0),
    "pytorch-simple": Training(nodes=2, processes=1),
    "coscheduling": Training(nodes=5, processes=5),
}

ALPACA = {"STORAGE_URI": "hf://tatsu-lab/alpaca"}
LLAMA = {"STORAGE_URI": "hf://meta-llama/Llama-2-7b"}
TRANSFORMER = {"TRANSFORMER_TYPE": "AutoModelForCausalLM"}


@dataclass(frozen=True, slots=True)
class FineTuning:
    """What reaches the trainer through the volumes, and where the exporter sends the result."""

    dataset: dict[str, str]
    model: dict[str, str]
    export: str = ""


FINE_TUNING = {
    "torch-tune-llama-7b": FineTuning(ALPACA, LLAMA | TRANSFORMER),
    "torch-tune-gemma-7b": FineTuning(ALPACA, {"STORAGE_URI": "hf://google/gemma-7b"} | TRANSFORMER),
    "dataset-config": FineTuning(
        {"STORAGE_URI": "s3://datasets/yelp-review", "ENDPOINT_URL": "s3.custom.com"}, LLAMA | TRANSFORMER
    ),
    "input-model": FineTuning(ALPACA, {"STORAGE_URI": "hf://bert-base-cased"} | TRANSFORMER),
    "output-model": FineTuning(ALPACA, LLAMA, export="s3://trained-model"),
    "tune-llama-with-yelp": FineTuning(
        {"STORAGE_URI": "s3://dataset/custom-dataset/yelp-review", "SPLIT": "train[:5000]"},
        LLAMA,
        export="s3://trained-model",
    ),
}

ELASTIC = "torch-distributed-elastic"


@pytest.fixture(scope="module")
def namespaces(session_cluster: Cluster) -> Iterator[dict[str, Cluster]]:
    """A namespace for each example that runs, in which it has been applied."""
    session_cluster.require_pod_networks()
    kep_examples.advertise_gpus(session_cluster)
    run = uuid.uuid4().hex[:6]
    found = {
        example: replace(session_cluster, namespace=f"kep-{number}-{run}")
        for number, example in enumerate([*FINE_TUNING, *TORCH, ELASTIC])
    }
    objects = [obj for example, cluster in found.items() for obj in kep_examples.with_stand_ins(cluster, example)]
    names = [cluster.namespace for cluster in found.values()]
    runtimes = [obj["metadata"]["name"] for obj in objects if obj["kind"] == "ClusterTrainingRuntime"]
    with installed(session_cluster, COSCHEDULING):
        try:
            session_cluster.apply(*(namespace(name) for name in names))
            if not kep_examples.has_torch(found[ELASTIC], TIMEOUT):
                pytest.skip("the Python of the pods has no PyTorch: make nightly installs it")
            until(partial(are_applied, session_cluster, objects), "the manager knows the kind", timeout=90)
            yield found
        finally:
            session_cluster.kubectl("delete", "namespace", *names, "--ignore-not-found", "--timeout=80s")
            session_cluster.kubectl("delete", "clustertrainingruntime", *runtimes, "--ignore-not-found")


def are_applied(cluster: Cluster, objects: list[dict[str, Any]]) -> bool:
    """Whether all are there; the manager refuses what needs a kind until it has noticed that there is one."""
    try:
        cluster.apply(*objects)
    except AssertionError as error:
        if f"the cluster does not have {COSCHEDULING}; install " not in str(error):
            raise
        return False
    return True


def test_no_example_is_forgotten() -> None:
    """The tables of this module have every file."""
    files = {path.stem for path in kep_examples.EXAMPLES.glob("*.yaml")}
    assert {*FINE_TUNING, *TORCH, ELASTIC, "deepspeed"} == files


@pytest.mark.parametrize("example", TORCH)
def test_torch(namespaces: dict[str, Cluster], example: str) -> None:
    """torchrun starts the processes of the KEP on the nodes of the KEP, with ranks over all of them."""
    cluster, training = namespaces[example], TORCH[example]
    complete(cluster, example)

    nodes = [logs_of(pod, cluster) for pod in pods_of(cluster, "node")]

    processes = training.processes or len(nodes[0])
    world = training.nodes * processes
    assert len(nodes) == training.nodes
    for node, lines in enumerate(nodes):
        ranks = range(node * processes, (node + 1) * processes)
        assert set(lines) == {f"rank {rank} of {world} on node {node} {training.arguments}".strip() for rank in ranks}


def test_elastic(namespaces: dict[str, Cluster]) -> None:
    """The fewest nodes train; the autoscaler that could have asked for more is gone with them."""
    cluster = namespaces[ELASTIC]
    job = complete(cluster, ELASTIC)

    (jobset,) = cluster.list("jobset")
    (node,) = jobset["spec"]["replicatedJobs"]
    assert (job["spec"]["trainer"]["numNodes"], node["template"]["spec"]["parallelism"]) == (5, 5)
    # In an elastic rendezvous any node may become the first.
    (line,) = logs_of(pods_of(cluster, "node")[0], cluster)
    assert re.fullmatch(r"rank ([0-4]) of 5 on node \1", line)
    until(lambda: not cluster.list("hpa"), "the autoscaler is gone")


def test_overrides(namespaces: dict[str, Cluster]) -> None:
    """The sidecar of both nodes gets its identity."""
    cluster = namespaces["pytorch-distributed"]
    complete(cluster, "pytorch-distributed")

    for pod in pods_of(cluster, "node"):
        assert logs_of(pod, cluster, "user-identity") == ["training as user 123"]


@MPI
@pytest.mark.skipif(os.geteuid() != 0, reason="the example has its SSH keys in the home of root")
def test_deepspeed(cluster: Cluster) -> None:
    """mpirun of the launcher starts five processes on each of the two nodes over SSH."""
    kep_examples.advertise_gpus(cluster)
    objects = kep_examples.with_stand_ins(cluster, "deepspeed")
    runtime = next(obj["metadata"]["name"] for obj in objects if obj["kind"] == "ClusterTrainingRuntime")
    try:
        cluster.apply(*objects)
        complete(cluster, "deepspeed")

        (launcher,) = pods_of(cluster, "launcher")
        lines = [f"rank {rank} of 10 on deepspeed-trainer-node-0-{rank // 5}" for rank in range(10)]
        # mpirun warns in the same log when a process group exists already: both sides of its fork make it.
        said = [line for line in logs_of(launcher, cluster, "mpi-launcher") if line.startswith("rank ")]
        assert sorted(said) == lines
    finally:
        cluster.kubectl("delete", "clustertrainingruntime", runtime, "--ignore-not-found")


@pytest.mark.parametrize("example", FINE_TUNING)
def test_fine_tuning(namespaces: dict[str, Cluster], example: str) -> None:
    """The trainer finds what both initializers have completed; the exporter finds what the trainer has completed."""
    cluster, expected = namespaces[example], FINE_TUNING[example]
    job = complete(cluster, example)

    steps = ["initializer", "node"] + (["finalizer"] if expected.export else [])
    assert {each["name"]: each["succeeded"] for each in job["status"]["jobsStatus"]} == dict.fromkeys(steps, 1)
    assert [claim["status"]["phase"] for claim in cluster.list("pvc")] == ["Bound"] * len(steps)
    (initializer,), (node,) = pods_of(cluster, "initializer"), pods_of(cluster, "node")
    assert report_of(initializer, cluster, "dataset-initializer") == {"fetched": expected.dataset}
    assert report_of(initializer, cluster, "model-initializer") == {"fetched": expected.model}
    trained = {"dataset": expected.dataset, "model": expected.model, "lora": 8, "rank": "0"}
    assert report_of(node, cluster, "trainer") == {"trained": trained}
    assert ended(initializer) <= started(node)
    if not expected.export:
        assert pods_of(cluster, "finalizer") == []
        return
    (finalizer,) = pods_of(cluster, "finalizer")
    exported = {"to": expected.export, "adapters": trained}
    assert report_of(finalizer, cluster, "model-exporter") == {"exported": exported}
    assert ended(node) <= started(finalizer)


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def complete(cluster: Cluster, example: str) -> dict[str, Any]:
    """The TrainJob of an example, once it has ended; it must be Complete."""
    return cluster.complete(kep_examples.job_name(example), TIMEOUT)


def pods_of(cluster: Cluster, replicated_job: str) -> list[dict[str, Any]]:
    """The pods of a replicated Job, by rank."""
    selector = f"jobset.sigs.k8s.io/replicatedjob-name={replicated_job}"
    pods = json.loads(cluster.kubectl("get", "pods", "-l", selector, "-o", "json").stdout)["items"]
    return sorted(pods, key=lambda pod: int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]))


def logs_of(pod: dict[str, Any], cluster: Cluster, container: str = "trainer") -> list[str]:
    """What the scripts in a container have printed, without what torchrun says itself."""
    text = cluster.kubectl("logs", pod["metadata"]["name"], "-c", container).stdout
    return [line for line in text.splitlines() if line.startswith(("rank ", "training ", "{"))]


def started(pod: dict[str, Any]) -> str:
    """When the first container of a pod began; the stand-ins before it take longer than these times are coarse."""
    return min(str(status["state"]["terminated"]["startedAt"]) for status in pod["status"]["containerStatuses"])


def ended(pod: dict[str, Any]) -> str:
    """When the last container of a pod ended."""
    return max(str(status["state"]["terminated"]["finishedAt"]) for status in pod["status"]["containerStatuses"])


def report_of(pod: dict[str, Any], cluster: Cluster, container: str) -> dict[str, Any]:
    """The report of a stand-in, which has had what it needs from the start: it was not restarted."""
    statuses = {status["name"]: status for status in pod["status"]["containerStatuses"]}
    assert statuses[container]["restartCount"] == 0, f"{container} started too early"
    (line,) = logs_of(pod, cluster, container)
    report: dict[str, Any] = json.loads(line)
    return report
