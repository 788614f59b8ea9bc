"""Namespaces that ask of every container what it needs and what it may: a ResourceQuota, and Pod Security."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import product
from pathlib import Path

import pytest
import yaml

from tests.config.pod_security import violations
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TrainJob
from trainer.framework import Pipeline, StaticReader
from trainer.framework.runtimes.runtimes import read_runtime
from trainer.framework.startup.discovery import PluginsConfiguration, bundled_plugins, load_plugins, make_registry
from trainer.kube.objects import Object, name_of
from trainer.plugins import BUILT_IN
from trainer.plugins.progress_reporter import ProgressReporter
from trainer.v1alpha1.client import decoded

CONFIG = Path(__file__).parents[1] / "config"
COUNTED = [f"{kind}.{name}" for kind, name in product(("requests", "limits"), ("cpu", "memory"))]
RESTRICTED = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}

PLUGINS = PluginsConfiguration(configuration={ProgressReporter.name: {"image": "trainer"}})
PIPELINE = Pipeline(make_registry(load_plugins(bundled_plugins(BUILT_IN), PLUGINS), StaticReader()))

runtimes = pytest.mark.parametrize(
    "runtime",
    [
        pytest.param(runtime, id=f"{folder.parts[-2]}-{name_of(runtime)}")
        for folder in (CONFIG / "runtimes", CONFIG / "v1alpha1" / "runtimes")
        for file in sorted(folder.glob("*.yaml"))
        for runtime in yaml.load_all(file.read_text(), yaml.CSafeLoader)
        if runtime["kind"] == CLUSTER_TRAINING_RUNTIMES.kind
    ],
)


def pods_of(runtime: Object) -> Iterator[tuple[str, Object]]:
    """The pods of a TrainJob that limits the processors and memory of its trainer, each with the name of its Job."""
    limits = {"limits": {"cpu": "1", "memory": "1Gi"}}
    job = {
        "apiVersion": runtime["apiVersion"],
        "kind": "TrainJob",
        "metadata": {"name": "q", "namespace": "default", "uid": "u"},
        "spec": {
            "runtimeRef": {"name": name_of(runtime)},
            "trainer": {"command": ["hostname"], "numNodes": 2, "resourcesPerNode": limits},
        },
    }
    found = read_runtime(CLUSTER_TRAINING_RUNTIMES, decoded(runtime))
    built = PIPELINE.build(TrainJob.from_object(decoded(job)), found)
    (jobset,) = (each.object for each in built if each.object["kind"] == "JobSet")
    for replicated in jobset["spec"]["replicatedJobs"]:
        yield replicated["name"], replicated["template"]["spec"]["template"]["spec"]


def containers_of(pod: Object) -> Iterator[Object]:
    yield from pod.get("initContainers") or []
    yield from pod["containers"]


@runtimes
def test_quota(runtime: Object) -> None:
    """A quota of requests and limits admits every pod where resourcesPerNode says what the trainer needs."""
    lacking = {
        f"{job}/{container['name']}": missing
        for job, pod in pods_of(runtime)
        for container in containers_of(pod)
        if (missing := [name for name in COUNTED if not counted(container, name)])
    }
    assert lacking == {}


def counted(container: Object, name: str) -> str | None:
    """What a quota counts of a container: requests default to limits."""
    kind, _, resource = name.partition(".")
    resources = container.get("resources") or {}
    amounts = {**resources.get("limits", {}), **(resources.get("requests", {}) if kind == "requests" else {})}
    value = amounts.get(resource)
    return None if value is None else str(value)


@runtimes
def test_restricted(runtime: Object) -> None:
    """Pod Security admits every pod at its level restricted where the containers that train fit it."""
    conforming = deepcopy(runtime)
    for job in conforming["spec"]["template"]["spec"]["replicatedJobs"]:
        for container in job["template"]["spec"]["template"]["spec"]["containers"]:
            if container["name"] in {"trainer", "node"}:
                container["securityContext"] = RESTRICTED
    found = {job: said for job, pod in pods_of(conforming) if (said := violations(pod))}
    runs_as_root = {"dataset-initializer": ["spec.containers[0].securityContext.runAsNonRoot"]}
    assert found == (runs_as_root if name_of(runtime) == "torch-distributed-with-cache" else {})


@runtimes
def test_as_the_trainer(runtime: Object) -> None:
    """What is injected beside a training runs as its user, also as root, and never with more privileges."""
    for _, pod in pods_of(runtime):
        main = pod["containers"][0].get("securityContext") or {}
        for container in pod.get("initContainers") or []:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert {key: own.get(key) for key in ("runAsUser", "runAsNonRoot")} == {
                key: main.get(key) for key in ("runAsUser", "runAsNonRoot")
            }
