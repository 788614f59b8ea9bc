from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from tests.devcluster.apiserver.kinds.context import created, fields, updated
from trainer.devcluster.apiserver.kinds.pod import PodStrategy, quality_of_service

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def make_pod(**spec: Any) -> Object:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec}}


def test_new_pod_is_admitted_and_pending() -> None:
    """Service account, priority and tolerations are those that the admission plugins give."""
    pod, causes = created(PodStrategy(), make_pod())
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
    assert created(PodStrategy(), pod)[0]["metadata"]["labels"] == {"jobset.sigs.k8s.io/priority": "0"}
    assert "labels" not in created(PodStrategy(), make_pod())[0]["metadata"]


def test_gated_pod_says_so() -> None:
    """Scheduling gates keep the pod from the scheduler, visibly."""
    pod, _ = created(PodStrategy(), make_pod(schedulingGates=[{"name": "g"}]))
    [condition] = pod["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        pytest.param({"nodeName": "laptop"}, True, id="binding"),
        pytest.param({"activeDeadlineSeconds": 5}, True, id="deadline"),
        pytest.param({"containers": [{"name": "c", "image": "i:2"}]}, True, id="image"),
        pytest.param({"containers": [{"name": "c", "image": "i:1", "command": ["x"]}]}, False, id="command"),
        pytest.param({"hostname": "h"}, False, id="hostname"),
    ],
)
def test_only_few_fields_may_change(change: dict[str, Any], allowed: bool) -> None:
    """A running process cannot be changed by an update."""
    old, _ = created(PodStrategy(), make_pod())
    new = deepcopy(old)
    new["spec"] |= change
    assert fields(updated(PodStrategy(), new, old)) == ([] if allowed else ["spec"])


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param({}, "BestEffort", id="none"),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="requests"),
        pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed", id="limits"),
        pytest.param(
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "0"}}, "Burstable", id="less requested"
        ),
    ],
)
def test_quality_of_service(resources: dict[str, Any], expected: str) -> None:
    """The class follows from requests and limits."""
    assert quality_of_service({"containers": [{"name": "c", "resources": resources}]}) == expected


def test_limits_are_requests_when_none_are_given() -> None:
    """Only pods have this default, templates do not."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    pod, _ = created(PodStrategy(), make_pod(containers=[container]))
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
