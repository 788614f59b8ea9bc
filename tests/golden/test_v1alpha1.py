"""What TrainJobs of v1alpha1 become, in cases whose expectations follow from the rules of Kubeflow Trainer (Go).

`v1alpha1/runtimes.yaml` has the runtimes, and every other file a list of cases:

| member | |
|---|---|
| `runtime` | which; `policy` and `podGroupPolicy` replace its own, `pod` and `container` are added to `node` |
| `spec`, `metadata` | of the TrainJob `tj` |
| `patches` | one runtime patch: `metadata` of the JobSet, `node` or the `pods` of that Job |
| `posts` | whether pods may post their progress |
| `expect` | what differs from the runtime, and the `objects` beside the JobSet; all else must be as the runtime says |

Of a Job that is expected as a number, this is the number of its pods. Variables are written NAME=value or
NAME<fieldPath.
"""

from __future__ import annotations

import copy
import shlex
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.framework.static_reader import StaticReader
from tests.webhooks.nets import pipeline
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.api.trainjob import TrainJob
from trainer.framework import Component
from trainer.framework.pipeline import Pipeline
from trainer.framework.runtimes.runtimes import read_runtime
from trainer.framework.startup.registry import Registry
from trainer.kube.objects import Object, name_of
from trainer.plugins.status_server import StatusServerAccess
from trainer.v1alpha1.client import decoded
from trainer.v1alpha1.profile import V1ALPHA1_PROFILE

FILES = sorted((Path(__file__).parent / "v1alpha1").glob("*.yaml"))
API_VERSION = "trainer.kubeflow.org/v1alpha1"
RUNTIMES = next(yaml.load(file.read_text(), yaml.CSafeLoader) for file in FILES if file.stem == "runtimes")
CASES = [
    pytest.param(case, id=f"{file.stem}: {case['name']}")
    for file in FILES
    if file.stem != "runtimes"
    for case in yaml.load(file.read_text(), yaml.CSafeLoader)
]


def runtime_of(case: Object) -> Object:
    """The runtime of a case."""
    spec = copy.deepcopy(RUNTIMES[case["runtime"]])
    if "policy" in case:
        spec["mlPolicy"] = case["policy"]
    if "podGroupPolicy" in case:
        spec["podGroupPolicy"] = case["podGroupPolicy"]
    for job in spec["template"]["spec"]["replicatedJobs"]:
        if job["name"] == "node":
            pod = job["template"]["spec"]["template"]["spec"]
            pod |= case.get("pod", {})
            next(each for each in pod["containers"] if each["name"] == "node").update(case.get("container", {}))
    kind = CLUSTER_TRAINING_RUNTIMES.kind
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": case["runtime"]}, "spec": spec}


def train_job_of(case: Object) -> Object:
    """The TrainJob of a case."""
    spec: Object = {"runtimeRef": {"name": case["runtime"]}} | case.get("spec", {})
    if "patches" in case:
        patches = case["patches"]
        jobs = [patches["node"]] if "node" in patches else []
        jobs += [{"spec": {"template": {"spec": patches["pods"]}}}] if "pods" in patches else []
        template: Object = {"spec": {"replicatedJobs": [{"name": "node", "template": job} for job in jobs]}}
        template |= {"metadata": patches["metadata"]} if "metadata" in patches else {}
        spec["runtimePatches"] = [{"manager": "test.io/manager", "trainingRuntimeSpec": {"template": template}}]
    metadata = {"name": "tj", "namespace": "default", "uid": "u"} | case.get("metadata", {})
    return {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": metadata, "spec": spec}


def built(case: Object) -> list[Component]:
    """What the TrainJob becomes."""
    found = read_runtime(CLUSTER_TRAINING_RUNTIMES, decoded(runtime_of(case)))
    built_by = with_posts() if case.get("posts") else pipeline("v1alpha1")
    return built_by.build(TrainJob.from_object(decoded(train_job_of(case))), found)


def with_posts() -> Pipeline:
    """The plugins of a manager behind the gate TrainJobStatus."""
    url = "https://kubeflow-trainer-controller-manager.kubeflow-system.svc:10443"
    access = StatusServerAccess(StaticReader(), url, lambda: b"PEM")
    return Pipeline(Registry([*pipeline("v1alpha1").plugins, access]), profile=V1ALPHA1_PROFILE)


def view(template: Object) -> dict[str, Object]:
    """A JobSet, or the template of one, by Jobs, pods and containers."""
    spec = dict(template["spec"])
    jobs, pods, containers = {}, {}, {}
    for job in spec.pop("replicatedJobs"):
        job_spec = job["template"]["spec"]
        others = {name: value for name, value in job.items() if name not in {"name", "replicas", "template"}}
        size = job_spec.get("parallelism", 1)
        assert job_spec.get("completions", size) == size
        metadata = job["template"].get("metadata") or {}
        jobs[job["name"]] = others | metadata | {"pods": size, "replicas": job.get("replicas", 1)}
        pod = dict(job_spec["template"]["spec"])
        for kind in ("initContainers", "containers"):
            for container in pod.pop(kind, []):
                containers[f"{job['name']}/{container['name']}"] = readable(container)
        pods[job["name"]] = pod | (job_spec["template"].get("metadata") or {})
    metadata = template.get("metadata") or {}
    own = {name: value for name, value in metadata.items() if name in {"labels", "annotations"}}
    return {"jobset": {"suspend": False} | spec | own, "jobs": jobs, "pods": pods, "containers": containers}


def readable(container: Object) -> Object:
    """A container with short variables and ports."""
    result = dict(container)
    if "env" in container:
        result["env"] = [variable(each) for each in container["env"]]
    if "ports" in container:
        assert {each.get("protocol", "TCP") for each in container["ports"]} == {"TCP"}
        result["ports"] = [each["containerPort"] for each in container["ports"]]
    return result


def variable(env: Object) -> str:
    """NAME=value, or NAME<fieldPath."""
    if "valueFrom" in env:
        return f"{env['name']}<{env['valueFrom']['fieldRef']['fieldPath']}"
    return f"{env['name']}={env.get('value', '')}"


def companion(component: Component) -> Object:
    """An object beside the JobSet, without its metadata; of what is generated the names."""
    content = {
        name: value for name, value in component.object.items() if name not in {"apiVersion", "kind", "metadata"}
    }
    if component.generated:
        return content | {"data": sorted(component.generated()["data"])}
    if "data" in content:
        content["data"] = {name: settings(text) for name, text in content["data"].items()}
    return content


def settings(text: str) -> Any:
    """The settings with which a script begins, those of Flux's brokers as their URIs and queue policy."""
    if not text.startswith("#!"):
        return text
    found: Object = dict(each.split("=", 1) for each in shlex.split(text.partition("set -eu")[0], comments=True))
    if "broker_toml" in found:
        broker = tomllib.loads(found.pop("broker_toml"))
        hosts = broker["bootstrap"]
        found |= {"bind": hosts["default_bind"], "connect": hosts["default_connect"]}
        found["policy"] = broker["sched-fluxion-qmanager"]["queue-policy"]
    return found


def expected(case: Object) -> dict[str, Object]:
    """The template of the runtime, with what the case says."""
    template = copy.deepcopy(runtime_of(case)["spec"]["template"])
    wanted, changes = view(template), case["expect"]
    wanted["jobset"] |= changes.get("jobset", {})
    for section in ("jobs", "pods", "containers"):
        for name, change in changes.get(section, {}).items():
            is_step = section == "jobs"
            counted = {"pods": change} if isinstance(change, int) else change
            wanted[section].setdefault(name, {}).update(counted | ({"replicas": 1} if is_step else {}))
    return wanted | {"objects": changes.get("objects", {})}


def made(case: Object) -> dict[str, Object]:
    """What is built, in the same form, without the notes of this project."""
    components = built(case)
    (job_set,) = (each.object for each in components if each.resource.kind == "JobSet")
    annotations = job_set["metadata"].get("annotations", {})
    kept = {name: value for name, value in annotations.items() if not name.startswith("trainer.kubeflow.org/")}
    metadata = {name: value for name, value in job_set["metadata"].items() if name == "labels"}
    objects = {
        f"{each.resource.kind}/{name_of(each.object)}": companion(each)
        for each in components
        if each.resource.kind != "JobSet"
    }
    own = metadata | ({"annotations": kept} if kept else {})
    return view({"metadata": own, "spec": job_set["spec"]}) | {"objects": objects}


@pytest.mark.parametrize("case", CASES)
def test_case(case: Object) -> None:
    """Each object is what the rules say."""
    wanted: Any = expected(case)
    for section, value in made(case).items():
        assert value == wanted[section], section


def test_all_cases_have_names() -> None:
    """A case can be found by its name."""
    assert Counter(case.id for case in CASES).most_common(1)[0][1] == 1
