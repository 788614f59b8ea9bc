"""Gangs: PodGroups of TrainJobs that wait, run and end, on a cluster whose defaults change."""

from __future__ import annotations

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import replicated_job, runtime_object, train_job_object
from trainer.framework.runtimes.runtimes import RUNTIME_DIGEST
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import CONFIG_MAPS, LIMIT_RANGES, RUNTIME_CLASSES, Resource
from trainer.plugins import coscheduling, volcano, workload
from trainer.plugins.coscheduling import POD_GROUP_LABEL
from trainer.plugins.workload.versions import V1ALPHA2, WorkloadVersion
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle, statuses

KINDS = {"coscheduling": coscheduling.POD_GROUPS, "volcano": volcano.POD_GROUPS}

each_scheduler = pytest.mark.parametrize(
    ("scheduler", "kind"), [pytest.param(scheduler, kind, id=scheduler) for scheduler, kind in KINDS.items()]
)


def gang_runtime(scheduler: str) -> Object:
    """A runtime of two nodes in sandboxes."""
    container = {"name": "trainer", "image": "i", "resources": {"requests": {"cpu": 1}}}
    node = replicated_job("node", container, pod={"schedulerName": "gangs", "runtimeClassName": "kata"})
    return runtime_object(node, policy={"numNodes": 2}, podGroupPolicy={scheduler: {}})


def limit_range(memory: str) -> Object:
    """Memory that containers request by default."""
    limits = [{"type": "Container", "defaultRequest": {"memory": memory}}]
    metadata = {"name": "defaults", "namespace": "default"}
    return {"apiVersion": "v1", "kind": LIMIT_RANGES.kind, "metadata": metadata, "spec": {"limits": limits}}


def runtime_class(cpu: str) -> Object:
    """Sandboxes that take some CPU."""
    return {
        "apiVersion": RUNTIME_CLASSES.api_version,
        "kind": RUNTIME_CLASSES.kind,
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": cpu}},
    }


def needs(cluster: Cluster, kind: Resource) -> dict[str, Object]:
    """What each gang must find free, by the name of the TrainJob."""
    return {name_of(group): group["spec"]["minResources"] for group in cluster.client.objects(kind)}


@each_scheduler
async def test_only_what_is_suspended_follows_the_cluster(cluster: Cluster, scheduler: str, kind: Resource) -> None:
    """LimitRange and RuntimeClass change the PodGroups of TrainJobs that wait, with one request for each."""
    cluster.client.serve(kind)
    cluster.client.add(gang_runtime(scheduler))
    async with cluster.managed():
        await cluster.put(train_job_object("waits", suspend=True))
        await cluster.put(train_job_object("runs"))
        assert needs(cluster, kind) == {"waits": {"cpu": "2"}, "runs": {"cpu": "2"}}
        cluster.forget_requests()

        await cluster.put(limit_range("1Gi"))
        assert needs(cluster, kind) == {"waits": {"cpu": "2", "memory": "2Gi"}, "runs": {"cpu": "2"}}

        await cluster.put(runtime_class("250m"))
        assert needs(cluster, kind) == {"waits": {"cpu": "2500m", "memory": "2Gi"}, "runs": {"cpu": "2"}}

        await cluster.put(runtime_class("250m") | {"metadata": {"name": "other"}})
        cluster.client.remove(LIMIT_RANGES, "defaults", "default")
        await cluster.clock.advance(1)
        assert needs(cluster, kind) == {"waits": {"cpu": "2500m"}, "runs": {"cpu": "2"}}

    assert [(request.verb, request.name) for request in cluster.writes] == [("apply", "waits")] * 3


@each_scheduler
async def test_a_gang_of_another_size(cluster: Cluster, scheduler: str, kind: Resource) -> None:
    """A training that is resumed with fewer nodes has a smaller gang before its pods start."""
    cluster.client.serve(kind)
    cluster.client.add(gang_runtime(scheduler))
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
        await cluster.change(cluster.train_job, suspend=True)
        await cluster.run_jobset(suspended=1)
        await cluster.change(cluster.train_job, trainer={"numNodes": 1}, suspend=False)
        (group,) = cluster.client.objects(kind)
        assert group["spec"]["minMember"] == 1
        assert cluster.jobset["metadata"]["deletionTimestamp"]
        await cluster.collect()
        assert cluster.client.objects(kind) == [group]
        assert "deletionTimestamp" not in cluster.jobset["metadata"]


@each_scheduler
async def test_a_gang_whose_jobset_the_cluster_refuses_heals(cluster: Cluster, scheduler: str, kind: Resource) -> None:
    """A PodGroup that exists does not bind its TrainJob to a runtime of which nothing else has come."""
    cluster.client.serve(kind)
    cluster.client.add(gang_runtime(scheduler))
    refusal = cluster.client.faults.fail(
        statuses.invalid("JobSet", JOBSETS.group, "demo", [FieldError("", "no such image")]),
        verb="apply",
        resource=JOBSETS,
        times=None,
    )
    async with cluster.managed():
        await cluster.put(train_job_object())
        assert (len(cluster.client.objects(kind)), cluster.jobsets) == (1, [])
        await cluster.put(runtime_object(replicated_job("node", {"name": "trainer", "image": "fixed"})))
        refusal.end()
        await cluster.clock.advance(60)
        (job,) = cluster.jobset["spec"]["replicatedJobs"]
        assert job["template"]["spec"]["template"]["spec"]["containers"][0]["image"] == "fixed"
        assert cluster.client.objects(kind) == []
        assert cluster.train_job["status"]["state"] == "Created"


VERSION = workload.VERSIONS[0]
FINALIZER = "scheduling.k8s.io/podgroup-protection"


OF_KUBERNETES = runtime_object(replicated_job("node"), policy={"numNodes": 2}, podGroupPolicy={"workload": {}})


def serve_workloads(cluster: Cluster, blueprint: Object = OF_KUBERNETES, version: WorkloadVersion = VERSION) -> None:
    """The cluster serves the Workload API, and has a runtime for it or another."""
    for resource in (version.pod_groups, version.workloads):
        cluster.client.serve(resource)
    cluster.client.add(blueprint)


async def protect(cluster: Cluster) -> None:
    """The controller of PodGroups keeps those that have members."""
    (group,) = cluster.client.objects(VERSION.pod_groups)
    metadata = group["metadata"] | {"finalizers": [FINALIZER]}
    await cluster.put(group | {"metadata": metadata})


async def unprotect(cluster: Cluster) -> None:
    """No pod is a member any more."""
    (group,) = cluster.client.objects(VERSION.pod_groups)
    cluster.client.remove(VERSION.pod_groups, name_of(group), "default")
    await settle()


def sizes(cluster: Cluster) -> list[tuple[int, bool]]:
    """How many pods each gang needs, and whether it is being deleted."""
    return [
        (group["spec"]["schedulingPolicy"]["gang"]["minCount"], "deletionTimestamp" in group["metadata"])
        for group in cluster.client.objects(VERSION.pod_groups)
    ]


async def test_a_group_that_fits_before_pods_start(cluster: Cluster) -> None:
    """A training is resumed with fewer nodes once a PodGroup of that size exists; meanwhile it says who is awaited."""
    serve_workloads(cluster)
    async with cluster.managed():
        await cluster.put(train_job_object())
        await protect(cluster)
        await cluster.run_jobset(active=1, ready=1)
        await cluster.change(cluster.train_job, suspend=True)
        await cluster.run_jobset(suspended=1)
        assert sizes(cluster) == [(2, False)]

        await cluster.change(cluster.train_job, trainer={"numNodes": 1}, suspend=False)
        await cluster.collect()
        assert (sizes(cluster), cluster.jobsets) == ([(2, True)], [])
        awaited = (
            "Succeeded to create Jobs; PodGroup is made anew once kube-controller-manager has taken its finalizer off, "
            "which it does when no pod is a member any more"
        )
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", awaited)

        # Kubernetes 1.36 creates no PodGroup while the Workload that it names is being deleted.
        (of_train_job,) = cluster.client.objects(VERSION.workloads)
        assert "deletionTimestamp" not in of_train_job["metadata"]
        await unprotect(cluster)
        (job,) = cluster.jobset["spec"]["replicatedJobs"]
        assert (sizes(cluster), job["template"]["spec"]["parallelism"]) == ([(1, False)], 1)
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")
        (template,) = of_train_job["spec"]["podGroupTemplates"]
        assert template["schedulingPolicy"] == {"gang": {"minCount": 1}}


async def test_the_group_of_a_gang_that_runs_stays(cluster: Cluster) -> None:
    """Nothing of it is changed or deleted while pods run, whatever the TrainJob asks for; and all of it at the end."""
    serve_workloads(cluster)
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
        before = cluster.client.objects(VERSION.pod_groups), cluster.client.objects(VERSION.workloads)
        await cluster.put(runtime_object(replicated_job("node"), policy={"numNodes": 3}))
        await cluster.put(cluster.train_job | {"spec": cluster.train_job["spec"] | {"trainer": {"numNodes": 4}}})
        await cluster.resync()
        assert (cluster.client.objects(VERSION.pod_groups), cluster.client.objects(VERSION.workloads)) == before

        await cluster.run_jobset("Completed", succeeded=1)
        assert (cluster.client.objects(VERSION.pod_groups), cluster.client.objects(VERSION.workloads)) == ([], [])


async def test_a_group_that_others_delete(cluster: Cluster) -> None:
    """A training that was never created waits for the end of the deletion, and one that runs gets another group."""
    serve_workloads(cluster)
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
        await unprotect(cluster)
        assert sizes(cluster) == [(2, False)]
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")


async def test_a_group_that_goes_before_jobs_are_created(cluster: Cluster) -> None:
    """The condition says that there are no Jobs yet, and why."""
    serve_workloads(cluster)
    refusal = cluster.client.faults.fail(
        statuses.invalid("JobSet", JOBSETS.group, "demo", [FieldError("", "no such image")]),
        verb="apply",
        resource=JOBSETS,
        times=None,
    )
    async with cluster.managed():
        await cluster.put(train_job_object())
        await protect(cluster)
        (group,) = cluster.client.objects(VERSION.pod_groups)
        await cluster.client.delete(VERSION.pod_groups, name_of(group), "default")
        refusal.end()
        await cluster.clock.advance(60)
        found = cluster.condition("Created")
        assert found is not None
        assert (cluster.jobsets, found[:2]) == ([], ("False", "JobsCreationFailed"))
        assert found[2].startswith("No Jobs yet: PodGroup is made anew once kube-controller-manager")

        await unprotect(cluster)
        assert len(cluster.jobsets) == 1
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")


@pytest.mark.parametrize("runs", [pytest.param(True, id="runs"), pytest.param(False, id="suspended")])
async def test_another_gang_scheduler(cluster: Cluster, runs: bool) -> None:
    """A gang whose snapshot is lost moves to another scheduler while it is suspended; one that runs keeps its own."""
    cluster.client.serve(KINDS["coscheduling"])
    serve_workloads(cluster, gang_runtime("coscheduling"))
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
        (snapshot,) = cluster.client.objects(CONFIG_MAPS)
        if not runs:
            await cluster.change(cluster.train_job, suspend=True)
            await cluster.run_jobset(suspended=1)
        await cluster.put(OF_KUBERNETES)
        cluster.client.remove(CONFIG_MAPS, name_of(snapshot), "default")
        await settle()
        await cluster.collect()
        assert len(cluster.client.objects(KINDS["coscheduling"])) == runs

        (job,) = cluster.jobset["spec"]["replicatedJobs"]
        pod = job["template"]["spec"]["template"]
        (group,) = cluster.client.objects(VERSION.pod_groups)
        assert (pod.get("metadata") == {"labels": {POD_GROUP_LABEL: "demo"}}) == runs
        assert pod["spec"].get("schedulingGroup") == (None if runs else {"podGroupName": name_of(group)})


@pytest.mark.parametrize("runs", [pytest.param(True, id="runs"), pytest.param(False, id="suspended")])
async def test_an_upgrade_of_kubernetes(cluster: Cluster, runs: bool) -> None:
    """The groups of the old version go with it; those of the new one are made for gangs that run, too."""
    serve_workloads(cluster, version=V1ALPHA2)
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
        if not runs:
            await cluster.change(cluster.train_job, suspend=True)
            await cluster.run_jobset(suspended=1)
        (before,) = cluster.client.objects(V1ALPHA2.pod_groups)
        jobset = cluster.jobset
        for resource in (V1ALPHA2.pod_groups, V1ALPHA2.workloads):
            cluster.client.withdraw(resource)
        serve_workloads(cluster)
        await cluster.clock.advance(60)

        (group,) = cluster.client.objects(VERSION.pod_groups)
        assert (before["apiVersion"], group["apiVersion"]) == (
            "scheduling.k8s.io/v1alpha2",
            "scheduling.k8s.io/v1beta1",
        )
        assert name_of(group) == name_of(before)
        assert group["spec"]["workloadRef"] == {"workloadName": "demo", "templateName": "trainer"}
        assert cluster.jobset == jobset
        assert cluster.condition("Created") == ("True", "JobsCreationSucceeded", "Succeeded to create Jobs")


FOREIGN: Object = {
    "apiVersion": VERSION.workloads.api_version,
    "kind": "Workload",
    "metadata": {"name": "demo", "namespace": "default"},
    "spec": {},
}


@pytest.mark.parametrize("is_foreign", [pytest.param(True, id="foreign"), pytest.param(False, id="refused")])
async def test_suspension_needs_no_group(cluster: Cluster, is_foreign: bool) -> None:
    """Who deletes what belongs to the gang, and lets nothing take its place, cannot keep its pods running."""
    serve_workloads(cluster)
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
        lost = VERSION.workloads if is_foreign else VERSION.pod_groups
        if not is_foreign:
            error = statuses.invalid("PodGroup", lost.group, "demo", [FieldError("", "exceeded quota")])
            cluster.client.faults.fail(error, verb="apply", resource=lost, times=None)
        (found,) = cluster.client.objects(lost)
        cluster.client.remove(lost, name_of(found), "default")
        if is_foreign:
            cluster.client.add(FOREIGN)
        digest = cluster.jobset["metadata"]["annotations"][RUNTIME_DIGEST]
        await cluster.change(cluster.train_job, suspend=True)
        assert cluster.jobset["spec"]["suspend"]
        assert cluster.jobset["metadata"]["annotations"][RUNTIME_DIGEST] == digest
        created = cluster.condition("Created")
        assert created is not None
        assert ("does not belong" if is_foreign else "exceeded quota") in created[2]

        cluster.forget_requests()
        await cluster.clock.advance(20)
        assert [each for each in cluster.writes if each.resource == JOBSETS] == []
