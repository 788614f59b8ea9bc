"""Owners of the code of `trainer run`."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.controllers.conftest import Cluster
from tests.framework.samples import train_job_object
from tests.v1alpha1.test_admission import job as v1alpha1_job
from tests.v1alpha1.test_admission import runtime
from trainer.api.trainjob import CODE_VOLUME
from trainer.kube.errors import ForbiddenError, ServiceUnavailableError
from trainer.kube.objects import Object, name_of, owner_references_of, uid_of
from trainer.kube.resource import CONFIG_MAPS
from trainer.v1alpha1.discovery import Served

CODE = "first-code-0123456789"
FIRST = {"apiVersion": "trainer.kubeflow.org/v2alpha1", "kind": "TrainJob", "name": "first", "uid": "first-uid"}


def code(*owners: Object, **fields: Any) -> Object:
    """The ConfigMap of a script."""
    metadata = {"name": CODE, "namespace": "default", "ownerReferences": list(owners)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "immutable": True, "metadata": metadata, "data": {}, **fields}


def copy(name: str = "demo", *, config_map: str = CODE, volume: str = CODE_VOLUME) -> Object:
    """A suspended copy of a TrainJob that `trainer run` has made."""
    volumes = [{"name": volume, "configMap": {"name": config_map}}]
    job = train_job_object(suspend=True, podSpecOverrides=[{"targetJobs": [{"name": "node"}], "volumes": volumes}])
    return job | {"metadata": {"name": name, "namespace": "default"}}


def owners(cluster: Cluster) -> list[str]:
    (found,) = [each for each in cluster.client.objects(CONFIG_MAPS) if name_of(each) == CODE]
    return [each["uid"] for each in owner_references_of(found)]


def asked(cluster: Cluster, verb: str) -> list[str]:
    """The ConfigMaps that such requests were about."""
    return [each.name for each in cluster.client.requests_of(verb) if each.resource == CONFIG_MAPS]


async def test_copies(cluster: Cluster) -> None:
    """Each copy becomes an owner beside the original and the other copies, once, and the controller of nothing."""
    cluster.client.add(code(FIRST))
    async with cluster.managed():
        await cluster.put(copy())
        await cluster.put(copy("other"))
        jobs = [uid_of(each) for each in cluster.client.objects(cluster.train_jobs)]
        assert owners(cluster) == ["first-uid", *jobs]
        (found,) = [each for each in cluster.client.objects(CONFIG_MAPS) if name_of(each) == CODE]
        assert [each.get("controller") for each in owner_references_of(found)] == [None] * 3
        await cluster.change(cluster.client.objects(cluster.train_jobs)[0], suspend=False)
    assert len(asked(cluster, "patch")) == 2


async def test_a_copy_that_waits(cluster: Cluster) -> None:
    """One whose runtime does not exist yet owns the code already."""
    cluster.client.add(code(FIRST))
    job = copy()
    job["spec"]["runtimeRef"]["name"] = "missing"
    async with cluster.managed():
        await cluster.put(job)
        assert cluster.jobsets == []
        assert len(owners(cluster)) == 2


@pytest.mark.parametrize(
    ("config_map", "job"),
    [
        pytest.param(code(), copy(), id="of nobody"),
        pytest.param(code({**FIRST, "apiVersion": "batch/v1", "kind": "Job"}), copy(), id="of something else"),
        pytest.param(code(FIRST), copy(config_map="missing"), id="missing"),
        pytest.param(code(FIRST), copy(config_map="a/b"), id="no name"),
    ],
)
async def test_other_config_maps(cluster: Cluster, config_map: Object, job: Object) -> None:
    """Any other ConfigMap stays as it is, and holds nothing up."""
    cluster.client.add(config_map)
    async with cluster.managed():
        await cluster.put(job)
        assert cluster.jobset["spec"]["suspend"] is True
    assert asked(cluster, "patch") == []


async def test_sweep(cluster: Cluster) -> None:
    """The trials of a sweep go with it, and with them its code; a copy of a trial keeps the code."""
    sweep = FIRST | {"kind": "OptimizationJob", "uid": "sweep-uid"}
    cluster.client.add(code(sweep))
    trial = copy("first-trial-1")
    trial["metadata"]["ownerReferences"] = [sweep | {"controller": True}]
    async with cluster.managed():
        await cluster.put(trial)
        assert owners(cluster) == ["sweep-uid"]
        await cluster.put(copy("again"))
    (again,) = [uid_of(each) for each in cluster.client.objects(cluster.train_jobs) if name_of(each) == "again"]
    assert owners(cluster) == ["sweep-uid", again]


async def test_an_original_asks_once(cluster: Cluster) -> None:
    """The TrainJob that was submitted with the code costs one request for it in its life."""
    async with cluster.managed():
        cluster.client.add(code())
        await cluster.put(copy())
        await cluster.change(cluster.train_job, suspend=False)
    assert asked(cluster, "get") == [CODE]


async def test_refused(cluster: Cluster) -> None:
    """Where a policy is against it the training starts all the same, and the log says what was refused."""
    cluster.client.add(code(FIRST))
    cluster.client.faults.fail(ForbiddenError(403, "not you"), verb="patch", resource=CONFIG_MAPS)
    with capture_logs() as logs:
        async with cluster.managed():
            await cluster.put(copy())
            assert cluster.jobset["spec"]["suspend"] is True
    (entry,) = [each for each in logs if each["event"] == "could not become an owner of the code"]
    assert (entry["config_map"], entry["error"]) == (CODE, "not you")


async def test_retried(cluster: Cluster) -> None:
    """A failure of the API server delays the build, so that no copy is left out."""
    cluster.client.add(code(FIRST))
    cluster.client.faults.fail(ServiceUnavailableError(503, "later"), verb="get", resource=CONFIG_MAPS)
    async with cluster.managed():
        await cluster.put(copy())
        await cluster.clock.advance(60)
        assert len(owners(cluster)) == 2


async def test_v1alpha1() -> None:
    """Patches of v1alpha1 mount it as well, and the owner is named in the version that the cluster serves."""
    cluster = Cluster(Served("v1alpha1"))
    cluster.client.add(code(FIRST))
    pods = {"spec": {"volumes": [{"name": CODE_VOLUME, "configMap": {"name": CODE}}]}}
    jobs = [{"name": "node", "template": {"spec": {"template": pods}}}]
    patch = {"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}, "manager": "example.io/x"}
    async with cluster.managed():
        await cluster.put(runtime("torch", {"torch": {}}))
        await cluster.put(v1alpha1_job(runtimePatches=[patch]))
        assert owners(cluster) == ["first-uid", uid_of(cluster.train_job)]
    (found,) = [each for each in cluster.client.objects(CONFIG_MAPS) if name_of(each) == CODE]
    assert owner_references_of(found)[-1]["apiVersion"] == "trainer.kubeflow.org/v1alpha1"


async def test_many_of_them() -> None:
    """A TrainJob that mounts hundreds of them under the name of the code has a few requests made for it."""
    cluster = Cluster(Served("v1alpha1"))
    volumes = [[{"name": CODE_VOLUME, "configMap": {"name": f"code-{number}"}}] for number in range(200)]
    jobs = [
        {"name": f"node-{number}", "template": {"spec": {"template": {"spec": {"volumes": each}}}}}
        for number, each in enumerate(volumes)
    ]
    patch = {"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}, "manager": "example.io/x"}
    async with cluster.managed():
        await cluster.put(runtime("torch", {"torch": {}}))
        await cluster.put(v1alpha1_job(runtimePatches=[patch]))
        await cluster.clock.advance(1)
    assert len(set(asked(cluster, "get"))) == 16
