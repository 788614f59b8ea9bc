"""Coscheduling: what the pods of the nodes and their PodGroup say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from tests.framework.static_reader import StaticReader
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.startup.registry import Registry
from trainer.kube.objects import Object
from trainer.plugins.coscheduling import POD_GROUPS, Coscheduling
from trainer.plugins.jobset import JobSetPlugin
from trainer.plugins.mpi.plugin import MPI
from trainer.plugins.plainml import PlainML
from trainer.plugins.torch.plugin import Torch

GANG: Any = {"podGroupPolicy": {"coscheduling": {}}}


def pipeline(reader: StaticReader | None = None) -> Pipeline:
    """The plugin with those that it needs to become a JobSet."""
    reader = reader or StaticReader()
    return Pipeline(Registry([PlainML(), MPI(reader), Torch(), Coscheduling(reader), JobSetPlugin(reader)]))


def scheduled(name: str | None = "scheduler-plugins", **resources: Any) -> Object:
    """The nodes, with a scheduler."""
    container = {"name": "trainer", "image": "i", "resources": resources}
    return replicated_job("node", container, pod={"schedulerName": name} if name is not None else {})


def built(*jobs: Object, policy: Object | None = None, spec: Object | None = None, **more: Any) -> dict[str, Object]:
    """Objects by kind."""
    components = pipeline().build(train_job(**(spec or {})), runtime(*jobs, policy=policy, **(more or GANG)))
    return {component.object["kind"]: component.object for component in components}


@pytest.mark.parametrize(
    ("policy", "timeout"),
    [
        pytest.param({}, 60, id="default"),
        pytest.param({"scheduleTimeoutSeconds": 100}, 100, id="stated"),
        pytest.param({"scheduleTimeoutSeconds": 0}, 60, id="zero-is-the-default"),
    ],
)
def test_pod_group(policy: Object, timeout: int) -> None:
    """All nodes are members, and the time is that of the runtime."""
    gang = {"podGroupPolicy": {"coscheduling": policy}}
    objects = built(scheduled(limits={"nvidia.com/gpu": 1}), policy={"numNodes": 5, "torch": {}}, **gang)
    assert objects["PodGroup"] == {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "demo", "namespace": "default"},
        "spec": {"minMember": 5, "minResources": {"nvidia.com/gpu": "5"}, "scheduleTimeoutSeconds": timeout},
    }


def test_pods() -> None:
    """The nodes belong to the PodGroup; what runs before or after them does not."""
    initializer = replicated_job("initializer", {"name": "other", "image": "i"})
    jobset = built(initializer, scheduled(), policy={"numNodes": 2})["JobSet"]
    templates = {job["name"]: job["template"]["spec"]["template"] for job in jobset["spec"]["replicatedJobs"]}
    assert templates["node"]["metadata"] == {"labels": {"scheduling.x-k8s.io/pod-group": "demo"}}
    assert "metadata" not in templates["initializer"]


@pytest.mark.parametrize("nodes", [pytest.param({}, id="least"), pytest.param({"numNodes": 4}, id="more")])
def test_elastic(nodes: Object) -> None:
    """An elastic training starts with its least number of nodes, however many it would like to have."""
    policy = {"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 5}}}
    group = built(scheduled(limits={"cpu": 4}), policy=policy, spec={"trainer": nodes})["PodGroup"]
    assert (group["spec"]["minMember"], group["spec"]["minResources"]) == (2, {"cpu": "8"})


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        pytest.param({}, 3, id="launcher-besides"),
        pytest.param({"runLauncherAsNode": True}, 2, id="launcher-is-a-node"),
    ],
)
def test_mpi(policy: Object, nodes: int) -> None:
    """A launcher that trains is a member and starts with the others; any other starts when the nodes are ready."""
    container = {"name": "trainer", "image": "i", "command": ["mpirun"]}
    launcher = replicated_job("launcher", container, pod={"schedulerName": "scheduler-plugins"})
    objects = built(launcher, scheduled(limits={"cpu": 4}), policy={"numNodes": 3, "mpi": policy})
    jobs = {job["name"]: job for job in objects["JobSet"]["spec"]["replicatedJobs"]}
    pods = {name: job["template"]["spec"] for name, job in jobs.items()}
    group = objects["PodGroup"]["spec"]
    assert (group["minMember"], group["minResources"]) == (3, {"cpu": "12"})
    assert pods["node"]["parallelism"] == nodes
    assert "scheduling.x-k8s.io/pod-group" in pods["node"]["template"]["metadata"]["labels"]
    labels = pods["launcher"]["template"].get("metadata", {}).get("labels", {})
    assert ("scheduling.x-k8s.io/pod-group" in labels, "dependsOn" in jobs["launcher"]) == (bool(policy), not policy)


def test_a_gang_of_a_launcher() -> None:
    """A launcher that is the only node is its gang."""
    policy = {"numNodes": 1, "mpi": {"runLauncherAsNode": True}}
    assert built(replicated_job("launcher"), scheduled(), policy=policy)["PodGroup"]["spec"]["minMember"] == 1


def test_label_of_the_train_job_does_not_win() -> None:
    """A gang that the pods do not belong to would wait forever."""
    spec = {"labels": {"scheduling.x-k8s.io/pod-group": "another"}}
    (job,) = built(scheduled(), spec=spec)["JobSet"]["spec"]["replicatedJobs"]
    assert job["template"]["spec"]["template"]["metadata"]["labels"] == {"scheduling.x-k8s.io/pod-group": "demo"}


@pytest.mark.parametrize(
    ("scheduler", "warned"),
    [
        pytest.param(None, True, id="absent"),
        pytest.param("scheduler-plugins-scheduler", False, id="second-scheduler"),
        pytest.param("default-scheduler", False, id="default-scheduler-with-the-plugin"),
    ],
)
def test_scheduler(scheduler: str | None, warned: bool) -> None:
    """Who says nothing about the scheduler learns that it may not know PodGroups."""
    review = pipeline().review(train_job(), runtime(scheduled(scheduler), **GANG))
    field = (
        "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].template.spec.template.spec"
        ".schedulerName"
    )
    text = (
        "is absent, so the default scheduler decides about each pod alone, unless it has the coscheduling plugin; "
        "name the scheduler that has it, even default-scheduler"
    )
    assert review.errors == ()
    assert [str(warning) for warning in review.warnings] == ([f"{field}: {text}"] if warned else [])


def test_without_the_crd() -> None:
    """A TrainJob is refused as long as there are no PodGroups, and built once there are."""
    reader = StaticReader(unserved=[POD_GROUPS])
    plugins, blueprint = pipeline(reader), runtime(scheduled(), **GANG)
    message = (
        "ClusterTrainingRuntime/blueprint spec.podGroupPolicy.coscheduling: Forbidden: the cluster does not have "
        "podgroups.scheduling.x-k8s.io; install Kubernetes scheduler-plugins with its CRD"
    )
    assert [str(error) for error in plugins.review(train_job(), blueprint).errors] == [message]
    with pytest.raises(BuildError, match=r"install Kubernetes scheduler-plugins"):
        plugins.build(train_job(), blueprint)
    assert plugins.build(train_job(), runtime(scheduled())) != []

    reader.unserved.clear()

    assert len(plugins.build(train_job(), blueprint)) == 2


def test_a_runtime_without_trainer_is_refused() -> None:
    """There is no gang without nodes."""
    review = pipeline().review(train_job(), runtime(replicated_job("initializer"), **GANG))
    assert any("none of them is the trainer" in str(error) for error in review.errors)
