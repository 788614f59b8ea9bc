"""The setting gangScheduling, in the life of TrainJobs whose runtime has no podGroupPolicy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.framework.startup.discovery import PluginsConfiguration, bundled_plugins, load_plugins
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import CONFIG_MAPS
from trainer.plugins import BUILT_IN, coscheduling, volcano
from trainer.plugins.workload.versions import SCHEDULING_GROUP, V1ALPHA2, V1BETA1, WorkloadVersion
from trainer.v1alpha1.discovery import Served
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle


def pod_spec(cluster: Cluster, name: str = "demo") -> Object:
    """What the pods of a TrainJob are made from."""
    jobset = next(each for each in cluster.jobsets if name_of(each) == name)
    spec: Object = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return spec


def gang_of(cluster: Cluster, name: str = "demo") -> str:
    """The gang scheduler that the pods of a TrainJob are marked for."""
    jobset = next(each for each in cluster.jobsets if name_of(each) == name)
    metadata = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"].get("metadata") or {}
    marks = {
        "workload": "schedulingGroup" in pod_spec(cluster, name),
        "volcano": volcano.GROUP_NAME_ANNOTATION in (metadata.get("annotations") or {}),
        "coscheduling": coscheduling.POD_GROUP_LABEL in (metadata.get("labels") or {}),
    }
    return "+".join(scheduler for scheduler, is_marked in marks.items() if is_marked)


def snapshot_of(cluster: Cluster) -> Object:
    """The runtime in the only snapshot."""
    (snapshot,) = cluster.client.objects(CONFIG_MAPS)
    runtime: Object = json.loads(snapshot["data"]["runtime"])
    return runtime


def serve(cluster: Cluster, *versions: WorkloadVersion) -> None:
    """Serve PodGroups of all schedulers, those of Kubernetes in these versions."""
    for kind in (coscheduling.POD_GROUPS, volcano.POD_GROUPS):
        cluster.client.serve(kind)
    for version in versions:
        cluster.client.serve(version.pod_groups)
        cluster.client.serve(version.workloads)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        pytest.param({}, ("", None), id="default"),
        pytest.param({"gangScheduling": "none"}, ("", None), id="none"),
        pytest.param({"gangScheduling": "workload"}, ("workload", None), id="workload"),
        pytest.param({"gangScheduling": "auto"}, ("workload", None), id="auto"),
        pytest.param({"gangScheduling": "volcano"}, ("volcano", "volcano"), id="volcano"),
        pytest.param(
            {"gangScheduling": "coscheduling", "gangSchedulerName": "gangs"}, ("coscheduling", "gangs"), id="named"
        ),
    ],
)
async def test_one_setting_for_all_runtimes(cluster: Cluster, setting: Any, expected: tuple[str, str | None]) -> None:
    """Pods, PodGroup and snapshot are those of a runtime with the policy; the runtime itself is not changed."""
    serve(cluster, V1BETA1)
    async with cluster.managed(**setting):
        await cluster.put(train_job_object())
        assert (gang_of(cluster), pod_spec(cluster).get("schedulerName")) == expected
        assert snapshot_of(cluster)["spec"].get("podGroupPolicy") == ({expected[0]: {}} if expected[0] else None)
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")
        (runtime,) = cluster.client.objects(CLUSTER_TRAINING_RUNTIMES)
        assert runtime["spec"] == runtime_object()["spec"]
        cluster.forget_requests()
        await cluster.resync()
        assert cluster.writes == []


async def test_the_policy_of_a_runtime_wins(cluster: Cluster) -> None:
    """Also that of no gang."""
    serve(cluster, V1BETA1)
    async with cluster.managed(gangScheduling="workload"):
        policies: dict[str, Object] = {"coscheduling": {"coscheduling": {}}, "": {}}
        for expected, policy in policies.items():
            name = expected or "none"
            await cluster.put(runtime_object(podGroupPolicy=policy) | {"metadata": {"name": name}})
            await cluster.put(train_job_object(name, runtimeRef={"name": name}))
            assert gang_of(cluster, name) == expected


@pytest.mark.parametrize("version", [pytest.param(V1BETA1, id="v1beta1"), pytest.param(V1ALPHA2, id="v1alpha2")])
async def test_auto_follows_the_cluster(cluster: Cluster, version: WorkloadVersion) -> None:
    """New TrainJobs are gangs while the Workload API is served; others stay as they were built."""
    async with cluster.managed(gangScheduling="auto"):
        await cluster.put(train_job_object("before"))
        serve(cluster, version)
        await cluster.clock.advance(60)
        await cluster.put(train_job_object("while"))
        assert (gang_of(cluster, "before"), gang_of(cluster, "while")) == ("", "workload")
        before = [each["spec"] for each in cluster.jobsets]

        cluster.client.withdraw(version.pod_groups)
        cluster.client.withdraw(version.workloads)
        await cluster.clock.advance(60)
        await cluster.put(train_job_object("after"))
        assert gang_of(cluster, "after") == ""
        assert [each["spec"] for each in cluster.jobsets if name_of(each) != "after"] == before


async def test_auto_with_an_old_jobset(cluster: Cluster) -> None:
    """Its pods would be in no group, so that new TrainJobs are gangs once it is another one."""
    serve(cluster, V1BETA1)
    field = SCHEDULING_GROUP.field
    cluster.client.close_gate(JOBSETS, field, drops=True)
    async with cluster.managed(gangScheduling="auto"):
        await cluster.put(train_job_object("before"))
        assert (gang_of(cluster, "before"), cluster.client.objects(V1BETA1.pod_groups)) == ("", [])
        cluster.client.open_gate(JOBSETS, field)
        await cluster.clock.advance(301)
        await cluster.put(train_job_object("after"))
        assert (gang_of(cluster, "before"), gang_of(cluster, "after")) == ("", "workload")


async def test_auto_without_plugin(cluster: Cluster) -> None:
    """Where people do without the plugin, nothing is a gang."""
    serve(cluster, V1BETA1)
    plugins = load_plugins(bundled_plugins(BUILT_IN), PluginsConfiguration(disabled=["workload"]))
    async with cluster.managed(plugins, gangScheduling="auto"):
        await cluster.put(train_job_object())
        assert (gang_of(cluster), cluster.client.objects(V1BETA1.pod_groups)) == ("", [])


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param("none", "workload", id="on"),
        pytest.param("workload", "none", id="off"),
        pytest.param("coscheduling", "workload", id="from-coscheduling"),
        pytest.param("volcano", "auto", id="from-volcano"),
    ],
)
@pytest.mark.parametrize("has_snapshot", [pytest.param(True, id="snapshot"), pytest.param(False, id="lost-snapshot")])
async def test_another_setting(cluster: Cluster, first: str, then: str, *, has_snapshot: bool) -> None:
    """What was built keeps its gang, suspended or not; what is submitted later has the other one."""
    serve(cluster, V1BETA1)
    async with cluster.managed(gangScheduling=first):
        await cluster.put(train_job_object())
        await cluster.put(train_job_object("waits", suspend=True))
    before = {name_of(each): each["spec"] for each in cluster.jobsets}
    if not has_snapshot:
        for name in ("demo", "waits"):
            cluster.client.remove(CONFIG_MAPS, f"{name}-runtime-snapshot", "default")
    cluster.forget_requests()

    async with cluster.managed(gangScheduling=then):
        changed = [each for each in cluster.writes if each.resource != CONFIG_MAPS]
        assert changed == []
        await cluster.put(train_job_object("later"))
        assert gang_of(cluster, "later") == ("workload" if then == "auto" else then.replace("none", ""))
    assert {name_of(each): each["spec"] for each in cluster.jobsets if name_of(each) != "later"} == before


async def test_a_runtime_that_moves_from_coscheduling(cluster: Cluster) -> None:
    """Trainings that exist end as they began; new ones on the runtime of the same name have the new policy."""
    serve(cluster, V1BETA1)
    node = replicated_job("node", pod={"schedulerName": "scheduler-plugins-scheduler"})
    cluster.client.add(runtime_object(node, podGroupPolicy={"coscheduling": {}}))
    async with cluster.managed(gangScheduling="workload"):
        await cluster.put(train_job_object())
        before = cluster.jobset["spec"]
        await cluster.client.delete(CLUSTER_TRAINING_RUNTIMES, "blueprint")
        await cluster.put(runtime_object())
        await cluster.put(train_job_object("later"))
        assert (gang_of(cluster), gang_of(cluster, "later")) == ("coscheduling", "workload")
        cluster.client.withdraw(coscheduling.POD_GROUPS)
        await cluster.clock.advance(60)
        assert next(each["spec"] for each in cluster.jobsets if name_of(each) == "demo") == before


async def test_a_jobset_that_is_made_anew(cluster: Cluster) -> None:
    """It is that of the setting with which the TrainJob was first built."""
    serve(cluster, V1BETA1)
    async with cluster.managed(gangScheduling="volcano"):
        await cluster.put(train_job_object())
        before = cluster.jobset["spec"]
    async with cluster.managed(gangScheduling="workload"):
        cluster.client.remove(JOBSETS, "demo", "default")
        await settle()
        assert cluster.jobset["spec"] == before


async def test_a_setting_that_the_cluster_lacks(cluster: Cluster) -> None:
    """The condition names the setting, since the runtime has no such field, and what to install."""
    async with cluster.managed(gangScheduling="volcano"):
        await cluster.put(train_job_object())
        assert cluster.condition("Created") == (
            "False",
            "JobsBuildFailed",
            (
                "Failed to build Jobs: gangScheduling of the manager's configuration: Forbidden: the cluster does not "
                "have podgroups.scheduling.volcano.sh; install Volcano with its CRD"
            ),
        )
        serve(cluster)
        await cluster.clock.advance(60)
        assert gang_of(cluster) == "volcano"


async def test_released_trainings(cluster: Cluster) -> None:
    """TrainJobs of v1alpha1 get it, too; their snapshot is one of v1alpha1."""
    cluster = Cluster(Served("v1alpha1"))
    serve(cluster, V1BETA1)
    container = {"name": "node", "image": "i"}
    node = replicated_job("node", container)
    node["template"]["metadata"] = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    cluster.client.add(runtime_object(node) | {"apiVersion": "trainer.kubeflow.org/v1alpha1"})
    async with cluster.managed(gangScheduling="auto"):
        await cluster.put(train_job_object() | {"apiVersion": "trainer.kubeflow.org/v1alpha1"})
        assert gang_of(cluster) == "workload"
        snapshot = snapshot_of(cluster)
        assert (snapshot["apiVersion"], snapshot["spec"]["podGroupPolicy"]) == (
            "trainer.kubeflow.org/v1alpha1",
            {"workload": {}},
        )
    async with cluster.managed():
        assert gang_of(cluster) == "workload"
