"""What a TrainJob costs: requests, and calls of our functions."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

import trainer
from tests.controllers.conftest import Cluster
from tests.framework.samples import train_job_object
from trainer.api.trainingruntime import Runtime
from trainer.api.trainjob import TrainJob
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.component import Component
from trainer.kube.objects import name_of
from trainer.workloads import JOBSETS
from trainer_kube_testing import settle

_ROOT = f"{Path(trainer.__file__).parent}/"
_API_SERVER = (f"{_ROOT}kube/testing/", f"{_ROOT}kube/api_semantics/")
_ACTIVE = {"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
_WORKERS = 10
_COMPLETED = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "jobset completed"}


def writes(cluster: Cluster) -> Counter[str]:
    """The requests of the manager by verb and kind, reads left out."""
    return Counter(
        f"{each.verb} {each.resource.plural}{'/status' if each.subresource else ''}" for each in cluster.writes
    )


async def test_requests_of_a_life(cluster: Cluster) -> None:
    """Each object is written once, each state is one write, and success has no event."""
    async with cluster.managed():
        await cluster.put(train_job_object())
        assert writes(cluster) == {
            "create configmaps": 1,
            "apply jobsets": 1,
            "apply trainjobs/status": 1,
        }
        cluster.forget_requests()
        await cluster.run_jobset("Completed", _COMPLETED, succeeded=1)
        assert writes(cluster) == {"apply trainjobs/status": 1}


async def test_requests_of_a_burst(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Jobs report at once is part of the first status; if that is their end, nothing is built again for it."""
    count = 30
    async with cluster.managed():
        hold = cluster.client.faults.hold(verb="apply", resource=JOBSETS)
        for number in range(count):
            metadata = {"name": f"job-{number}", "namespace": "default", "uid": f"uid-{number}"}
            cluster.client.add(train_job_object() | {"metadata": metadata})
        await settle()
        hold.release(1)
        await settle()
        (jobset,) = cluster.jobsets
        builds: list[str] = []
        build = Pipeline.build

        def count_builds(pipeline: Pipeline, train_job: TrainJob, runtime: Runtime) -> list[Component]:
            builds.append(train_job.metadata.name)
            return build(pipeline, train_job, runtime)

        monkeypatch.setattr(Pipeline, "build", count_builds)
        status = {"conditions": [_COMPLETED], "terminalState": "Completed", "replicatedJobsStatus": []}
        await cluster.put(jobset | {"status": status})
        hold.release()
        await settle()
        for each in cluster.jobsets:
            if name_of(each) != name_of(jobset):
                cluster.client.add(each | {"status": {"replicatedJobsStatus": [_ACTIVE]}})
        await settle()
        await cluster.clock.advance(1)
    assert name_of(jobset) not in builds
    written = writes(cluster)
    # Those that come last meet no other that waits.
    assert count <= written.pop("apply trainjobs/status") <= count + _WORKERS
    assert written == {"create configmaps": count, "apply jobsets": count}
    (ended,) = (each for each in cluster.client.objects(cluster.train_jobs) if name_of(each) == name_of(jobset))
    assert [each["type"] for each in ended["status"]["conditions"]] == ["Created", "Complete"]


async def test_calls_of_a_reconcile(cluster: Cluster) -> None:
    """Calls of our functions, from the watch event to the end of a reconcile that has nothing to do, are bounded.

    The bound has headroom for versions of Python, and none for another pass over what is built.
    """
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_ROOT) and not code.co_filename.startswith(_API_SERVER):
            calls[f"{code.co_filename.removeprefix(_ROOT)}:{code.co_name}"] += 1

    async with cluster.managed():
        await cluster.put(train_job_object())
        await cluster.run_jobset(active=1, ready=1)
        await cluster.resync()
        sys.setprofile(count)
        try:
            await cluster.resync()
        finally:
            sys.setprofile(None)
    assert calls["controllers/trainjob.py:reconcile"] == 1
    assert calls.total() < 1400, calls.most_common(60)
