from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devcluster.tests.controllers.cached_server import cached_server
from devcluster.tests.controllers.job.samples import JOB_UID, NOW, condition, make_job, make_pod
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.objects import controller_of, is_controlled_by, name_of
from trainer.kube.resource import JOBS, PODS
from trainer_devcluster.controllers.job.claims import PodClaims, may_adopt, stray_in
from trainer_devcluster.controllers.job.pods import is_tracked

if TYPE_CHECKING:
    from trainer.kube.objects import Object

SELECTOR = {"matchLabels": {"app": "web"}}


def job_with_selector(status: Object | None = None, **spec: Any) -> Object:
    return make_job(status, **{"selector": SELECTOR, **spec})


def pod_of(owner: str | None, app: str = "web", *, deleting: bool = False) -> Object:
    """A pod with this label, controlled by the object with this uid if any."""
    pod = make_pod("p", "Running", tracked=owner == JOB_UID, deleting=deleting)
    pod["metadata"]["labels"] = {"app": app}
    if owner is None:
        del pod["metadata"]["ownerReferences"]
    else:
        pod["metadata"]["ownerReferences"][0]["uid"] = owner
    return pod


@pytest.mark.parametrize(
    ("job", "pod", "changed", "owned"),
    [
        pytest.param(job_with_selector(), pod_of(None), True, True, id="stray pod is adopted"),
        pytest.param(job_with_selector(), pod_of(None, "x"), False, False, id="stray pod of somebody else"),
        pytest.param(job_with_selector(), pod_of(None, deleting=True), False, False, id="stray pod that goes"),
        pytest.param(job_with_selector(), pod_of("another"), False, False, id="pod of another Job"),
        pytest.param(job_with_selector(), pod_of(JOB_UID), False, True, id="pod of its own"),
        pytest.param(job_with_selector(), pod_of(JOB_UID, "x"), True, False, id="pod whose labels have changed"),
        pytest.param(
            job_with_selector({"conditions": [condition("Complete")]}), pod_of(None), False, False, id="finished"
        ),
    ],
)
async def test_pods_are_adopted_and_let_go_by_their_labels(
    job: Object, pod: Object, changed: bool, owned: bool
) -> None:
    """An adopted pod is tracked like those that the Job has made."""
    async with cached_server(NOW, (JOBS, PODS), job, pod) as cluster:
        assert await PodClaims(cluster.client, cluster.lister(PODS)).settle(job) is changed
        [found] = cluster.server.objects(PODS)
    assert is_controlled_by(found, job) is owned
    assert is_tracked(found) is owned


async def test_job_that_is_being_deleted_adopts_nothing() -> None:
    """The cache may not know of the deletion yet, whose orphans would be taken in again."""
    job = job_with_selector()
    gone = {**job, "metadata": {**job["metadata"], "deletionTimestamp": "2026-11-21T12:00:00Z"}}
    async with cached_server(NOW, (JOBS, PODS), gone, pod_of(None)) as cluster:
        assert not await PodClaims(cluster.client, cluster.lister(PODS)).settle(job)
        [found] = cluster.server.objects(PODS)
    assert controller_of(found) is None


async def test_pods_that_stay_where_they_are_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace may have thousands of them, and each reconcile of each Job looks at them all."""
    decoded: list[CachedObject] = []
    monkeypatch.setattr(CachedObject, "decode", decoded.append)
    other = pod_of(None, "x")
    other["metadata"]["name"] = "other"
    async with cached_server(NOW, (JOBS, PODS), job_with_selector(), pod_of(JOB_UID), other) as cluster:
        assert not await PodClaims(cluster.client, cluster.lister(PODS)).settle(job_with_selector())
    assert decoded == []


@pytest.mark.parametrize(
    ("job", "adopts"),
    [
        pytest.param(job_with_selector(), True, id="matches"),
        pytest.param(job_with_selector(selector={"matchLabels": {"app": "x"}}), False, id="does not match"),
        pytest.param(job_with_selector(managedBy="example.com/other"), False, id="not ours"),
        pytest.param(make_job(), False, id="no selector"),
    ],
)
def test_who_may_adopt(job: Object, adopts: bool) -> None:
    """Jobs of other controllers do as those please."""
    assert may_adopt(job, {"app": "web"}) is adopts


@pytest.mark.parametrize(
    ("pod", "namespaces"), [pytest.param(pod_of(None), ("n",), id="stray"), pytest.param(pod_of("a"), (), id="owned")]
)
def test_stray_pods_are_found_by_namespace(pod: Object, namespaces: tuple[str, ...]) -> None:
    """Without looking at all the others."""
    assert stray_in(CachedObject.of(pod)) == namespaces
    assert name_of(pod) == "p"
