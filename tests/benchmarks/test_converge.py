from __future__ import annotations

from io import StringIO

import msgspec
import pytest
from rich.console import Console

from benchmarks.converge import run
from benchmarks.converging.load import Load, job_set, train_job
from benchmarks.converging.results import Result, print_result
from trainer.api.trainjob import TrainJob

TINY = Load(
    jobs=3, concurrency=2, pending_seconds=0.1, rate=20, rate_seconds=0.1, quiet_seconds=0.1, settled_seconds=0.5
)


def test_converging_is_measured() -> None:
    """A few TrainJobs on a dev cluster yield numbers that fit together, the targets, and tables."""
    result = run(TINY, None)
    assert result.usage.requests["apply jobsets"] == 1
    assert result.usage.requests["create configmaps"] == 1
    assert 1 <= result.usage.requests["apply trainjobs/status"] <= 2
    assert result.usage.errors == 0
    assert sum(part.reconciles for part in result.parts.values()) == pytest.approx(result.usage.reconciles)
    assert list(result.parts) == ["JobSets are created", "JobSets have no status", "JobSets end"]
    assert result.quiet_requests == {}
    assert 0 < result.latency.p50 <= result.latency.p99
    assert result.restart.requests <= 1, "the event that it leads"
    assert result.has_webhooks
    assert 0 < result.bare.p50 <= result.bare.p99
    runs = result.ours, result.floor, result.null.converged
    assert min(seconds for each in runs for seconds in (each.times.created, each.times.completed)) > 0
    assert all(each.api_server_cpu_seconds is not None for each in runs)
    assert 0 < result.null.cpu_seconds < result.usage.cpu_seconds
    assert result.quiet_cpu_seconds >= 0
    assert len(result.targets) == 12
    assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result
    printed = StringIO()
    print_result(Console(file=printed, width=120), result)
    assert "3 TrainJobs, 2 at once" in printed.getvalue()


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
