from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.http_client import MERGE, Api
from packages.devcluster.tests.apiserver.kinds.context import created, updated
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.pods.pod import PodStrategy, quality_of_service


def make_pod(**spec: Any) -> Object:
    return {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], "automountServiceAccountToken": False, **spec},
    }


def admitted(pod: Object) -> tuple[Object, list[FieldError]]:
    """A new pod in a namespace that has the usual service account."""
    account = {"kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "ns"}}
    return created(PodStrategy(), pod, account)


def test_new_pod_is_admitted_and_pending() -> None:
    """Service account, priority and tolerations are those that the admission plugins give."""
    pod, causes = admitted(make_pod())
    assert causes == []
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod["spec"]["serviceAccountName"] == pod["spec"]["serviceAccount"] == "default"
    assert pod["spec"]["priority"] == 0
    assert [entry["key"] for entry in pod["spec"]["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


def test_pod_of_a_jobset_gets_its_priority_as_a_label() -> None:
    """What JobSet's pod webhook does; other pods are not labelled."""
    pod = make_pod()
    pod["metadata"]["annotations"] = {"jobset.sigs.k8s.io/jobset-name": "js"}
    assert admitted(pod)[0]["metadata"]["labels"] == {"jobset.sigs.k8s.io/priority": "0"}
    assert "labels" not in admitted(make_pod())[0]["metadata"]


def test_gated_pod_says_so() -> None:
    """Scheduling gates keep the pod from the scheduler, visibly."""
    pod, _ = admitted(make_pod(schedulingGates=[{"name": "g"}]))
    [condition] = pod["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


@pytest.mark.parametrize(
    ("condition", "times"),
    [
        pytest.param({}, (None, None), id="absent"),
        pytest.param({"lastTransitionTime": "2026-11-21T12:00:00Z"}, (None, "2026-11-21T12:00:00Z"), id="one"),
    ],
)
def test_times_of_conditions(condition: Object, times: tuple[str | None, str | None]) -> None:
    """Every condition has its times, null when nobody has set them, as Go writes them."""
    old, _ = admitted(make_pod())
    new = deepcopy(old)
    new["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", **condition}]
    assert updated(PodStrategy(), new, old, "status") == []
    [stored] = new["status"]["conditions"]
    assert (stored["lastProbeTime"], stored["lastTransitionTime"]) == times


async def test_times_of_a_patched_condition(api: Api) -> None:
    """A merge patch, in which null deletes a field, leaves the time as null."""
    pods = "/api/v1/namespaces/default/pods"
    await api("POST", pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}})
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastProbeTime": None}
    answer = await api("PATCH", f"{pods}/p/status", {"status": {"conditions": [condition]}}, MERGE)
    assert answer.body["status"]["conditions"] == [{**condition, "lastTransitionTime": None}]


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


def test_node_selector_is_fixed_once_a_pod_may_be_scheduled() -> None:
    """Without gates the scheduler may have looked at it already."""
    old, _ = admitted(make_pod())
    new = deepcopy(old)
    new["spec"]["nodeSelector"] = {"a": "b"}
    assert [str(cause) for cause in updated(PodStrategy(), new, old)] == [FIXED]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="requests"),
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
