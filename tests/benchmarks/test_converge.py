from __future__ import annotations

import pytest

from benchmarks.converging.load import job_set, train_job
from trainer.api.trainjob import TrainJob


@pytest.mark.parametrize("name", ["job-1", "job-2"])
def test_the_floor_creates_what_the_manager_would(name: str) -> None:
    """The JobSet has the nodes, the image and the environment of torchrun, and belongs to the benchmark."""
    TrainJob.from_object(train_job("ns", name))
    jobset = job_set("ns", name)
    (job,) = jobset["spec"]["replicatedJobs"]
    assert job["template"]["spec"]["parallelism"] == 2
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    assert "PET_NNODES" in {variable["name"] for variable in container["env"]}
    assert jobset["spec"]["managedBy"].startswith("trainer.kubeflow.org/")
