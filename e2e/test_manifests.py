"""config/ on an empty cluster: one `kubectl apply -k` installs everything, and deleting it leaves nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster import Cluster
from e2e.dev_cluster import dev_cluster
from e2e.identity import write_credentials
from e2e.installation import CONFIG, HOST, free_ports
from e2e.manager import manager
from e2e.processes import Process
from e2e.waiting import until


@dataclass(frozen=True)
class Installation:
    """What is applied, and how it is called."""

    overlay: str
    runtimes: str
    namespace: str
    manager: str
    """Name of the Deployment, and of its account."""
    service: str

    @property
    def api_version(self) -> str:
        """Of TrainJobs."""
        return f"trainer.kubeflow.org/{'v1alpha1' if 'v1alpha1' in self.overlay else 'v2alpha1'}"


INSTALLATIONS = [
    pytest.param(
        Installation("default", "runtimes", "trainer-system", "trainer-controller-manager", "trainer-webhook"),
        id="v2alpha1",
    ),
    pytest.param(
        Installation(
            "v1alpha1/default",
            "v1alpha1/runtimes",
            "kubeflow-system",
            "kubeflow-trainer-controller-manager",
            "kubeflow-trainer-controller-manager",
        ),
        id="v1alpha1",
    ),
]
MONITORING = Path(__file__).parents[1] / "tests" / "config" / "monitoring_crds.yaml"
OPTIONAL = ("networkpolicy", "prometheus", "grafana", "runtimes")
UNOWNED = {"Event", "Lease", "Node"}
"""Kinds that come and go by themselves."""

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="it needs a cluster on which nothing is installed"),
    pytest.mark.timeout(240),
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the cluster keeps its files."""
    return tmp_path_factory.mktemp("manifests")


@pytest.fixture(scope="module")
def empty(directory: Path) -> Iterator[Cluster]:
    """A dev cluster of its own, with nothing installed."""
    with dev_cluster(directory) as cluster:
        yield cluster


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What a test must not leave running."""
    with ExitStack() as stack:
        yield stack


def inventory(cluster: Cluster) -> dict[str, str]:
    """Every object of the cluster with its resource version."""
    kinds = cluster.kubectl("api-resources", "--verbs=list,delete", "-o", "name").stdout.split()
    items: list[Any] = json.loads(cluster.kubectl("get", ",".join(kinds), "-A", "-o", "json").stdout)["items"]
    return {
        f"{obj['kind']} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}": obj["metadata"][
            "resourceVersion"
        ]
        for obj in items
        if obj["kind"] not in UNOWNED
    }


def apply(cluster: Cluster, overlay: str) -> str:
    """`kubectl apply --server-side -k`, which must not fail; returns what was warned of."""
    return cluster.kubectl("apply", "--server-side", "-k", str(CONFIG / overlay)).stderr


def delete(cluster: Cluster, before: dict[str, str], *overlays: str) -> None:
    """`kubectl delete -k`, and wait until there is what was before, and nothing else."""
    for overlay in overlays:
        cluster.kubectl("delete", "-k", str(CONFIG / overlay), "--timeout=60s")
    until(lambda: inventory(cluster).keys() == before.keys(), f"nothing is left of {overlays}")


def start_replicas(cluster: Cluster, manager: str) -> None:
    """Make the pods that the Deployment asks for, as nobody on a dev cluster does, and wait until they are ready."""
    deployment = cluster.get("deployment", manager)
    assert deployment is not None
    template = deployment["spec"]["template"]
    names = [f"{manager}-{number}" for number in range(deployment["spec"]["replicas"])]
    for name in names:
        metadata = {**template["metadata"], "name": name, "namespace": cluster.namespace}
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
    cluster.kubectl("wait", "--for=condition=Ready", *(f"pod/{name}" for name in names), "--timeout=80s")


def start_reachable_replica(cluster: Cluster, directory: Path, installed: Installation) -> Process:
    """A third replica, on this machine: the API server, which is here as well, has no way into the network of pods.

    It reads the ConfigMap of the Deployment, acts as its account, and serves with the certificates of its Secret.
    """
    webhook, metrics, health = free_ports(3)
    (config_map,) = (obj for obj in cluster.list("configmaps") if "configuration.yaml" in obj["data"])
    cluster.configuration = yaml.load(config_map["data"]["configuration.yaml"], yaml.CSafeLoader)
    write_credentials(cluster, cluster.manager_kubeconfig, installed.manager, installed.namespace)
    replica = manager(
        cluster,
        directory,
        webhook={"host": HOST, "port": webhook},
        metrics={"bindAddress": f"{HOST}:{metrics}"},
        health={"healthProbeBindAddress": f"{HOST}:{health}"},
    )
    replica.start(ready="started manager")
    cluster.apply(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": installed.service,
                "namespace": installed.namespace,
                "labels": {"kubernetes.io/service-name": installed.service},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [HOST], "conditions": {"ready": True}}],
            "ports": [{"name": "webhook", "port": webhook}],
        }
    )
    return replica


@pytest.mark.parametrize("installed", INSTALLATIONS)
def test_one_apply_installs_everything(
    empty: Cluster, directory: Path, stack: ExitStack, installed: Installation
) -> None:
    """Two replicas serve the webhooks, the runtimes come by themselves, a TrainJob completes; then all of it goes."""
    empty.require_pod_networks()
    before = inventory(empty)
    system, team = (replace(empty, namespace=name) for name in (installed.namespace, "team-a"))

    warnings = apply(empty, installed.overlay)
    applied = inventory(empty)
    apply(empty, installed.overlay)

    said = {line.split(" is only stored")[0] for line in warnings.splitlines()}
    assert said == {"Warning: apps/v1 Deployment", "Warning: policy/v1 PodDisruptionBudget"}
    unchanged = inventory(empty)
    assert {key: unchanged.get(key) for key in applied if is_ours(key)} == {
        k: v for k, v in applied.items() if is_ours(k)
    }
    assert empty.list("clustertrainingruntimes") == []

    start_replicas(system, installed.manager)
    holder = until(lambda: leader(system), "one of them leads")
    replica = start_reachable_replica(system, directory, installed)
    stack.callback(replica.stop)
    installer = ("-l", "app.kubernetes.io/component=runtimes")
    system.kubectl("wait", "job", *installer, "--for=condition=Complete", "--timeout=80s")
    log = system.kubectl("logs", *installer, "--tail=-1").stdout.splitlines()
    shipped = [obj["metadata"]["name"] for obj in documents(installed.runtimes)]
    assert log[0].startswith("note: not ready yet: ")
    assert sorted(line for line in log if not line.startswith("note: ")) == sorted(
        f"{name} applied" for name in shipped
    )
    assert sorted(obj["metadata"]["name"] for obj in empty.list("clustertrainingruntimes")) == sorted(shipped)

    empty.kubectl("create", "namespace", team.namespace)
    if installed.overlay == "default":
        team.kubectl("apply", "--server-side", "--dry-run=server", "-k", str(CONFIG / "samples"))
    team.apply(TRAIN_JOB | {"apiVersion": installed.api_version})
    team.wait_for_condition("short", "Complete")
    deployment = system.get("deployment", installed.manager)
    assert deployment is not None
    assert images_of(reporters_of(team)) == images_of(deployment["spec"]["template"]["spec"]["containers"])
    assert leader(system) == holder
    refused = team.kubectl("patch", "trainjob", "short", "--type=merge", "-p", PATCH, check=False)
    assert "runtimeRef" in refused.stderr

    empty.kubectl("delete", "namespace", team.namespace, "--timeout=60s")
    replica.stop()
    delete(empty, before, installed.overlay)


def images_of(containers: list[dict[str, Any]]) -> list[str]:
    """The image of each container."""
    return [container["image"] for container in containers]


def reporters_of(cluster: Cluster) -> list[dict[str, Any]]:
    """The init containers of the TrainJob's nodes."""
    jobset = cluster.get("jobset", "short")
    assert jobset is not None
    (job,) = jobset["spec"]["replicatedJobs"]
    found: list[dict[str, Any]] = job["template"]["spec"]["template"]["spec"]["initContainers"]
    return found


def leader(cluster: Cluster) -> str:
    """Who holds the Lease."""
    lease = cluster.get("lease", "trainer.kubeflow.org") or {}
    return str((lease.get("spec") or {}).get("holderIdentity", ""))


TRAIN_JOB = {
    "kind": "TrainJob",
    "metadata": {"name": "short"},
    "spec": {
        "runtimeRef": {"name": "torch-distributed"},
        "trainer": {"numNodes": 1, "command": ["python", "-c", "pass"]},
    },
}
PATCH = '{"spec": {"runtimeRef": {"name": "jax-distributed"}}}'
"""Of what is immutable."""


def is_ours(key: str) -> bool:
    """Whether only `kubectl apply` writes it: not the Job, its pods, and what others fill in."""
    others = ("Job ", "Pod ", "CustomResourceDefinition ", "Namespace ", "ClusterRole /kubeflow-trainer-admin")
    return not key.startswith(others)


def documents(overlay: str) -> list[dict[str, Any]]:
    """Objects in the files of a directory."""
    files = [file for file in (CONFIG / overlay).glob("*.yaml") if file.name != "kustomization.yaml"]
    return [obj for file in files for obj in yaml.load_all(file.read_text(), yaml.CSafeLoader)]


def test_optional_overlays(empty: Cluster) -> None:
    """Each is taken as it is, a second time changes nothing, and deleting it leaves nothing."""
    start = inventory(empty)
    needed = [yaml.load((CONFIG / "manager" / "namespace.yaml").read_text(), yaml.CSafeLoader)]
    needed += [*yaml.load_all(MONITORING.read_text(), yaml.CSafeLoader), *documents("crd")]
    text = yaml.dump_all(needed, Dumper=yaml.CSafeDumper)
    empty.kubectl("apply", "--server-side", "-f", "-", stdin=text)
    definitions = [f"crd/{obj['metadata']['name']}" for obj in needed[1:]]
    empty.kubectl("wait", "--for=condition=Established", *definitions, "--timeout=30s")
    before = inventory(empty)

    warnings = "".join(apply(empty, overlay) for overlay in OPTIONAL)
    applied = inventory(empty)
    for overlay in OPTIONAL:
        apply(empty, overlay)

    assert warnings.count("Warning:") == warnings.count("the dev cluster does not filter traffic"), warnings
    assert len(applied) > len(before)
    assert inventory(empty) == applied
    delete(empty, before, *OPTIONAL)
    empty.kubectl("delete", "-f", "-", "--timeout=60s", stdin=text)
    until(lambda: inventory(empty).keys() == start.keys(), "nothing is left")
