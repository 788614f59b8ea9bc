"""LimitRanges, ResourceQuotas, and what they do to pods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created, make_context
from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.strategy import WriteContext
from trainer_devcluster.apiserver.kinds.limit_range import LimitRangeStrategy, admit_limits
from trainer_devcluster.apiserver.kinds.resource_quota import ResourceQuotaStrategy, check_quota

COUNTED = (
    "the dev cluster counts only pods, requests.*, limits.*, cpu, memory and ephemeral-storage: leave it out, or use "
    "a real cluster"
)


def make_stored(*objects: Object) -> WriteContext:
    def listed(resource: Resource) -> list[Object]:
        return [obj for obj in objects if obj["kind"] == resource.kind]

    return replace(make_context(), listed=listed)


def make_limits(*items: Object) -> Object:
    obj: Object = {"kind": "LimitRange", "metadata": {"name": "l", "namespace": "n"}, "spec": {"limits": list(items)}}
    LimitRangeStrategy().default(obj, make_context())
    return obj


def make_quota(**hard: str) -> Object:
    named = {name.replace("_", "."): amount for name, amount in hard.items()}
    return {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "n"}, "spec": {"hard": named}}


def make_pod(name: str = "p", phase: str = "Pending", **resources: Any) -> Object:
    spec = {"containers": [{"name": "c", **({"resources": resources} if resources else {})}]}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "n"}, "spec": spec, "status": {"phase": phase}}


def test_containers_get_what_they_leave_out() -> None:
    """The annotation says what has been set."""
    pod = make_pod(requests={"cpu": "1"})
    admit_limits(pod, make_stored(make_limits({"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}})))
    assert pod["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"},
    }  # fmt: skip
    assert pod["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": (
            "LimitRanger plugin set: memory request for container c; cpu, memory limit for container c"
        )
    }


@pytest.mark.parametrize(
    ("item", "resources", "problem"),
    [
        pytest.param(
            {"type": "Container", "max": {"cpu": "1"}},
            {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}},
            "maximum cpu usage per Container is 1, but limit is 2",
            id="container above",
        ),
        pytest.param(
            {"type": "Container", "min": {"cpu": "500m"}},
            {"requests": {"cpu": "100m"}},
            "minimum cpu usage per Container is 500m, but request is 100m",
            id="container below",
        ),
        pytest.param(
            {"type": "Pod", "max": {"memory": "1Gi"}},
            {},
            "maximum memory usage per Pod is 1Gi.  No limit is specified",
            id="pod without limit",
        ),
    ],
)
def test_pods_out_of_range_are_refused(item: Object, resources: Object, problem: str) -> None:
    """The text is that of the real admission plugin."""
    with pytest.raises(ApiError) as caught:
        admit_limits(make_pod(**resources), make_stored(make_limits(item)))
    assert (caught.value.code, caught.value.message) == (403, f'pods "p" is forbidden: {problem}')


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param({}, ["spec.limits[0].type: Required value"], id="type"),
        pytest.param(
            {"type": "Pod", "default": {"cpu": "1"}},
            ["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"],
            id="default of pods",
        ),
    ],
)
def test_wrong_limit_ranges_are_refused(item: Object, expected: list[str]) -> None:
    """Types and the order of amounts are checked."""
    causes = created(LimitRangeStrategy(), {"metadata": {"name": "l"}, "spec": {"limits": [item]}})[1]
    assert [str(cause) for cause in causes][:1] == expected


@pytest.mark.parametrize(
    ("quota", "pods", "problem"),
    [
        pytest.param(make_quota(pods="2"), [make_pod("a")], "", id="room"),
        pytest.param(
            make_quota(requests_cpu="3"),
            [make_pod("a", requests={"cpu": "2"})],
            "exceeded quota: q, requested: requests.cpu=1500m, used: requests.cpu=2, limited: requests.cpu=3",
            id="requests",
        ),
        pytest.param(
            make_quota(limits_memory="1Gi"), [], "failed quota: q: must specify limits.memory for: c", id="not said"
        ),
    ],
)
def test_quota(quota: Object, pods: list[Object], problem: str) -> None:
    """A pod that its namespace has no room for is refused with what there is; finished ones do not count."""
    pod, context = make_pod(requests={"cpu": "1500m"}), make_stored(quota, *pods)
    if not problem:
        check_quota(pod, context)
        return
    with pytest.raises(ApiError) as caught:
        check_quota(pod, context)
    assert (caught.value.code, caught.value.message) == (403, f'pods "p" is forbidden: {problem}')


def test_quotas_that_are_not_enforced_are_refused() -> None:
    """Nothing is ignored in silence."""
    causes = created(ResourceQuotaStrategy(), make_quota(services="1"))[1]
    assert [str(cause) for cause in causes] == [f"spec.hard[services]: Forbidden: {COUNTED}"]
