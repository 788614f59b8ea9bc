"""TrainJobs that the CRDs of v1alpha1 accept and the model does not."""

from __future__ import annotations

from tests.controllers.conftest import Cluster
from tests.v1alpha1.test_admission import LAUNCHER, MPI, job, replicated_job, runtime
from trainer.v1alpha1.discovery import Served

V1ALPHA1 = Served("v1alpha1")


async def test_a_train_job_that_cannot_be_read() -> None:
    """Nothing is built of it, and an event names the field."""
    cluster = Cluster(V1ALPHA1)
    problem = "spec.trainer.numProcPerNode: Invalid value: 0: must be auto, cpu, gpu or a positive integer"
    async with cluster.managed():
        await cluster.put(runtime("torch", {"torch": {}}))
        await cluster.put(job(trainer={"numProcPerNode": 0}))
        assert cluster.events == [("Warning", "JobsBuildFailed", f"Failed to build Jobs: {problem}")]
        assert cluster.jobsets == []


async def test_more_patched_jobs_than_overrides_of_the_model() -> None:
    """All patches are applied."""
    labels = [f"label-{number}" for number in range(9)]
    patches = []
    for label in labels:
        pods = {"metadata": {"labels": {label: "x"}}}
        jobs = [{"name": name, "template": {"spec": {"template": pods}}} for name in ("node", "launcher")]
        spec = {"template": {"spec": {"replicatedJobs": jobs}}}
        patches.append({"manager": f"example.io/{label}", "trainingRuntimeSpec": spec})
    cluster = Cluster(V1ALPHA1)
    async with cluster.managed():
        await cluster.put(runtime("mpi", {"mpi": MPI}, replicated_job("node", "node"), LAUNCHER))
        await cluster.put(job("mpi", runtimePatches=patches))
        for each in cluster.jobset["spec"]["replicatedJobs"]:
            assert {*labels} <= {*each["template"]["spec"]["template"]["metadata"]["labels"]}
