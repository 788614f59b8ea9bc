"""No order of events runs a training twice."""

from __future__ import annotations

import pytest

from tests.controllers.conftest import Cluster
from tests.framework.samples import runtime_object, train_job_object
from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.framework.runtimes.runtimes import RUNTIME_DIGEST, digest_of, make_snapshot
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

FIELD = "ClusterTrainingRuntime/blueprint spec.template.spec.ttlSecondsAfterFinished: Forbidden: "
SHORT_LIVED = runtime_object(jobset={"ttlSecondsAfterFinished": 0})


async def test_a_stored_runtime_whose_jobsets_delete_themselves(cluster: Cluster) -> None:
    """Nothing is built of one that was stored before admission refused it; the condition names field and remedy."""
    cluster.client.add(SHORT_LIVED)
    async with cluster.managed():
        await cluster.put(train_job_object())
        assert cluster.jobsets == []
        created = cluster.condition("Created")
        assert created is not None
        assert created[:2] == ("False", "JobsBuildFailed")
        assert FIELD in created[2]
        await cluster.put(runtime_object())
        assert len(cluster.jobsets) == 1


async def built_by_an_older_manager(cluster: Cluster, *, records: bool) -> None:
    """A TrainJob whose JobSet deletes itself.

    Args:
        cluster: where.
        records: whether that manager recorded the digest of the runtime.
    """
    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
    for obj in (SHORT_LIVED, make_snapshot(cluster.train_job, CLUSTER_TRAINING_RUNTIMES, SHORT_LIVED)):
        cluster.client.add(obj)
    jobset, train_job = cluster.jobset, cluster.train_job
    if records:
        train_job["status"]["runtimeDigest"] = digest_of(SHORT_LIVED)
    else:
        del train_job["status"]["runtimeDigest"]
        del jobset["metadata"]["annotations"][RUNTIME_DIGEST]
        cluster.client.add(jobset)
    cluster.client.add(train_job)
    del jobset["metadata"]["resourceVersion"], jobset["status"]
    spec = jobset["spec"] | {"ttlSecondsAfterFinished": 0}
    await cluster.client.apply(JOBSETS, jobset | {"spec": spec}, field_manager="trainer", force=True)


@pytest.mark.parametrize("records", [True, False])
async def test_a_jobset_of_an_older_manager_lives_on(cluster: Cluster, records: bool) -> None:
    """It loses its time to live while it runs, and its end is seen whenever the manager comes back."""
    await built_by_an_older_manager(cluster, records=records)
    async with cluster.managed():
        assert len(cluster.jobsets) == 1
        assert "ttlSecondsAfterFinished" not in cluster.jobset["spec"]
        assert cluster.train_job["status"]["state"] == "Running"
        cluster.forget_requests()
        await cluster.resync()
        assert cluster.writes == []
    await cluster.run_jobset("Completed", succeeded=1)
    async with cluster.managed():
        assert cluster.train_job["status"]["state"] == "Complete"


@pytest.mark.parametrize("records", [True, False])
@pytest.mark.parametrize("loses_status", [False, True])
async def test_a_jobset_that_has_deleted_itself(cluster: Cluster, records: bool, loses_status: bool) -> None:
    """Nobody knows how it ended, so it is not run again: the condition says why."""
    await built_by_an_older_manager(cluster, records=records)
    cluster.client.remove(JOBSETS, "demo", "default")
    if loses_status:
        untold = cluster.train_job
        del untold["status"]
        cluster.client.add(untold)
    async with cluster.managed():
        await settle()
        await cluster.clock.advance(60)
        assert cluster.jobsets == []
        created = cluster.condition("Created")
        assert created is not None
        assert FIELD in created[2]
        assert cluster.train_job["status"]["state"] == "Blocked"
