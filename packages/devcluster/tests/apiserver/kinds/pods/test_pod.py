from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created, make_context, updated
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.pods.pod import PodStrategy, quality_of_service
from trainer_devcluster.feature_gates import FeatureGates


def make_pod(**spec: Any) -> Object:
    return {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], "automountServiceAccountToken": False, **spec},
    }


def admitted(pod: Object) -> tuple[Object, list[FieldError]]:
    """A new pod in a namespace that has the usual service account."""
    account = {"kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "ns"}}
    return created(PodStrategy(), pod, account)


@pytest.mark.parametrize("served", [pytest.param(True, id="gate on"), pytest.param(False, id="gate off")])
def test_scheduling_group(served: bool) -> None:
    """A pod may name a PodGroup where the Workload API is served; else the field is dropped in silence."""
    pod, context = (
        make_pod(schedulingGroup={"podGroupName": "g"}),
        make_context(gates=FeatureGates(generic_workload=served)),
    )
    PodStrategy().default(pod, context)
    pod["spec"]["priority"] = 0
    PodStrategy().prepare_for_create(pod, context)
    assert ("schedulingGroup" in pod["spec"]) == served


FIXED = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
GATED = {"schedulingGates": [{"name": "a"}, {"name": "b"}], "activeDeadlineSeconds": 10}


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        pytest.param({"activeDeadlineSeconds": 5}, [], id="shorter deadline"),
        pytest.param({"nodeName": "laptop"}, [FIXED], id="binding by an update"),
        pytest.param({"containers": [{"name": "c"}]}, ["spec.containers[0].image: Required value"], id="no image"),
        pytest.param(
            {"initContainers": [{"name": "i", "image": "i"}]},
            ["spec.initContainers: Forbidden: pod updates may not add or remove containers"],
            id="another container",
        ),
        pytest.param(
            {"activeDeadlineSeconds": None},
            ["spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"],
            id="no deadline",
        ),
        pytest.param(
            {"schedulingGates": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
            ["spec.schedulingGates: Forbidden: only deletion is allowed, but found new scheduling gate 'c'"],
            id="another gate",
        ),
    ],
)
def test_only_few_fields_may_change(change: dict[str, Any], messages: list[str]) -> None:
    """A running process cannot be changed by an update."""
    old, _ = admitted(make_pod(**GATED))
    new = deepcopy(old)
    new["spec"] |= change
    if "tolerations" in change:
        new["spec"]["tolerations"] += old["spec"]["tolerations"]
    assert [str(cause) for cause in updated(PodStrategy(), new, old)] == messages


def test_tolerations_stay() -> None:
    """Only the time for which a pod tolerates something may change."""
    old, _ = admitted(make_pod())
    new = deepcopy(old)
    new["spec"]["tolerations"][0]["tolerationSeconds"] = 1
    assert updated(PodStrategy(), new, old) == []
    new["spec"]["tolerations"].pop()
    assert [str(cause) for cause in updated(PodStrategy(), new, old)] == [
        "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    ]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort", id="only a GPU"),
        pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed", id="limits"),
    ],
)
def test_quality_of_service(resources: dict[str, Any], expected: str) -> None:
    """The class follows from requests and limits."""
    assert quality_of_service({"containers": [{"name": "c", "resources": resources}]}) == expected


def test_limits_are_requests_when_none_are_given() -> None:
    """Only pods have this default, templates do not."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    pod, _ = admitted(make_pod(containers=[container]))
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
