from __future__ import annotations

import pytest

from packages.devcluster.tests.controllers.cached_server import lister_of
from packages.devcluster.tests.controllers.job.samples import NOW, ago, condition, make_job
from trainer.kube.controller.reconcile import Result
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import JOBS
from trainer_devcluster.controllers.job.cleanup import TtlReconciler
from trainer_kube_testing import FakeClient, ManualClock

KEY = ObjectKey("n", "j")


@pytest.mark.parametrize(
    ("seconds_ago", "deleted", "result"),
    [
        pytest.param(10, False, Result(requeue_after=20), id="not yet"),
        pytest.param(30, True, None, id="due"),
    ],
)
async def test_finished_job_is_deleted_when_its_time_is_over(
    seconds_ago: float, deleted: bool, result: Result | None
) -> None:
    """The deletion is one in the foreground, so that the pods go first."""
    job = make_job({"conditions": [condition("Complete", since=ago(seconds_ago))]}, ttlSecondsAfterFinished=30)
    server = FakeClient(job)
    reconciler = TtlReconciler(server, lister_of(job), ManualClock(NOW))

    assert await reconciler.reconcile(KEY) == result

    [found] = server.objects(JOBS)
    assert found["metadata"].get("finalizers") == (["foregroundDeletion"] if deleted else None)
