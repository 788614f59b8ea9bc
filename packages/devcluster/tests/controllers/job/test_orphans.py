from __future__ import annotations

import pytest

from packages.devcluster.tests.controllers.cached_server import lister_of
from packages.devcluster.tests.controllers.job.samples import make_job, make_pod
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import PODS
from trainer_devcluster.controllers.job.cleanup import OrphanReconciler
from trainer_devcluster.controllers.job.pods import is_tracked
from trainer_kube_testing import FakeClient

KEY = ObjectKey("n", "p")


def without_owner(pod: Object) -> Object:
    return pod | {"metadata": {name: value for name, value in pod["metadata"].items() if name != "ownerReferences"}}


def owned_by(pod: Object, api_version: str, kind: str) -> Object:
    [owner] = pod["metadata"]["ownerReferences"]
    owners = [owner | {"apiVersion": api_version, "kind": kind}]
    return pod | {"metadata": pod["metadata"] | {"ownerReferences": owners}}


@pytest.mark.parametrize(
    ("pod", "jobs", "cached_jobs", "released"),
    [
        pytest.param(make_pod("p", "Running"), [make_job()], [], False, id="the-cache-has-not-seen-its-job-yet"),
        pytest.param(
            without_owner(make_pod("p", "Running")), [make_job()], [make_job()], True, id="orphaned-on-purpose"
        ),
        pytest.param(owned_by(make_pod("p", "Running"), "apps/v1", "ReplicaSet"), [], [], False, id="no-job-at-all"),
    ],
)
async def test_tracked_pods_that_nobody_counts_are_released(
    pod: Object, jobs: list[Object], cached_jobs: list[Object], released: bool
) -> None:
    """Otherwise the pods of a Job that was deleted in the background would stay forever."""
    server = FakeClient(pod, *jobs)
    await OrphanReconciler(server, lister_of(*cached_jobs), lister_of(pod)).reconcile(KEY)
    [found] = server.objects(PODS)
    assert is_tracked(found) is not released
