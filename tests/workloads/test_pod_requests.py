"""Effective requests of pods."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.kube.objects import Object
from trainer.workloads.pod_requests import pod_requests


def container(*, sidecar: bool = False, limits: Object | None = None, **requests: Any) -> Object:
    """A container with requests by name."""
    resources = {"requests": requests} | ({"limits": limits} if limits else {})
    return {"name": "c", "resources": resources} | ({"restartPolicy": "Always"} if sidecar else {})


def pod(*containers: Object, init: list[Object] | None = None, **spec: Any) -> Object:
    """A pod spec."""
    return {"containers": list(containers) or [{"name": "c"}], "initContainers": init or []} | spec


def limit_range(name: str, *limits: Object) -> Object:
    """A LimitRange."""
    return {"kind": "LimitRange", "metadata": {"name": name, "namespace": "default"}, "spec": {"limits": list(limits)}}


def shown(spec: Object, *limit_ranges: Object, runtime_class: Object | None = None) -> dict[str, str]:
    """The requests as Kubernetes writes them."""
    requests = pod_requests(spec, limit_ranges=limit_ranges, runtime_class=runtime_class)
    return {name: str(amount) for name, amount in requests.items()}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(pod(), {}, id="nothing"),
        pytest.param(
            pod(container(cpu="500m", memory="1Gi"), container(cpu=1)), {"cpu": "1500m", "memory": "1Gi"}, id="sum"
        ),
        pytest.param(
            pod(container(limits={"cpu": "2", "nvidia.com/gpu": 1}, memory="1Gi")),
            {"cpu": "2", "nvidia.com/gpu": "1", "memory": "1Gi"},
            id="limits-in-place-of-requests",
        ),
        pytest.param(pod(container(cpu=1, limits={"cpu": 4})), {"cpu": "1"}, id="requests-before-limits"),
        pytest.param(
            pod(container(cpu=2, memory="1Gi"), init=[container(cpu=3), container(cpu=1, memory="4Gi")]),
            {"cpu": "3", "memory": "4Gi"},
            id="largest-init-container",
        ),
        pytest.param(
            pod(container(cpu=2), init=[container(sidecar=True, cpu=1)]), {"cpu": "3"}, id="sidecar-keeps-running"
        ),
        pytest.param(
            pod(container(cpu=1), init=[container(sidecar=True, cpu=2), container(cpu=3)]),
            {"cpu": "5"},
            id="sidecar-before-an-init-container",
        ),
        pytest.param(
            pod(container(cpu=1), init=[container(cpu=3), container(sidecar=True, cpu=2)]),
            {"cpu": "3"},
            id="sidecar-after-an-init-container",
        ),
        pytest.param(
            pod(container(cpu=1), init=[container(sidecar=True, cpu=1), container(sidecar=True, cpu=1)]),
            {"cpu": "3"},
            id="sidecars-add-up",
        ),
        pytest.param(
            pod(container(cpu=1), init=[container(memory="2Gi")]), {"cpu": "1", "memory": "2Gi"}, id="other-resource"
        ),
        pytest.param(
            pod(container(cpu=1, gpu=1), resources={"requests": {"cpu": 3, "memory": "1Gi"}}),
            {"cpu": "3", "memory": "1Gi", "gpu": "1"},
            id="pod-requests-replace-those-of-containers",
        ),
        pytest.param(
            pod(container(cpu=1), resources={"limits": {"cpu": 4, "memory": "2Gi"}}),
            {"cpu": "1", "memory": "2Gi"},
            id="pod-limits-count-where-no-container-requests",
        ),
        pytest.param(
            pod(container(cpu=1), resources={"requests": {"nvidia.com/gpu": 4, "hugepages-2Mi": "4Mi"}}),
            {"cpu": "1", "hugepages-2Mi": "4Mi"},
            id="pods-request-no-devices",
        ),
        pytest.param(
            pod(container(cpu=1), overhead={"cpu": "250m", "memory": "120Mi"}),
            {"cpu": "1250m", "memory": "120Mi"},
            id="overhead",
        ),
    ],
)
def test_pod(spec: Object, expected: dict[str, str]) -> None:
    """Requests of a pod are computed as by the API server and the scheduler."""
    assert shown(spec) == expected


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param([{"type": "Container", "defaultRequest": {"cpu": "200m"}}], "200m", id="default-request"),
        pytest.param([{"type": "Container", "default": {"cpu": 1}}], "1", id="default-limit"),
        pytest.param(
            [{"type": "Container", "default": {"cpu": 2}, "defaultRequest": {"cpu": 1}}], "1", id="request-before-limit"
        ),
        pytest.param([{"type": "Container", "max": {"cpu": 4}}], "4", id="maximum"),
        pytest.param([{"type": "Container", "min": {"cpu": "100m"}}], "100m", id="minimum"),
        pytest.param(
            [{"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": 4}}], "4", id="maximum-before-minimum"
        ),
        pytest.param([{"type": "Pod", "max": {"cpu": 4}}], None, id="for-pods"),
    ],
)
def test_limit_range(limits: list[Object], expected: str | None) -> None:
    """A container that says nothing gets what the LimitRange of its namespace has for containers."""
    assert shown(pod(), limit_range("a", *limits)).get("cpu") == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(pod(container(cpu=1)), {"cpu": "1", "memory": "1Gi"}, id="requests"),
        pytest.param(pod(container(limits={"cpu": 2})), {"cpu": "2", "memory": "1Gi"}, id="limits"),
        pytest.param(pod(container(), container()), {"cpu": "400m", "memory": "2Gi"}, id="each-container"),
        pytest.param(
            pod(container(), init=[container(sidecar=True)]), {"cpu": "400m", "memory": "2Gi"}, id="init-containers"
        ),
        pytest.param(
            pod(container(), resources={"requests": {"cpu": 1}}), {"cpu": "1", "memory": "1Gi"}, id="pod-requests"
        ),
        pytest.param(
            pod(container(cpu=1), container(), resources={"limits": {"cpu": 4}}),
            {"cpu": "1", "memory": "2Gi"},
            id="pod-requests-are-filled-in-before",
        ),
    ],
)
def test_what_is_stated_counts_before_a_limit_range(spec: Object, expected: dict[str, str]) -> None:
    """Only what neither requests nor limits say comes from the LimitRange."""
    defaults = {"type": "Container", "defaultRequest": {"cpu": "200m", "memory": "1Gi"}}
    assert shown(spec, limit_range("a", defaults)) == expected


def test_several_limit_ranges() -> None:
    """The first by name that has a resource decides, whatever the order in which they are listed."""
    ranges = [
        limit_range("b", {"type": "Container", "defaultRequest": {"cpu": 2, "memory": "1Gi"}}),
        limit_range("a", {"type": "Container", "max": {"cpu": 1}}),
    ]
    assert shown(pod(), *ranges) == shown(pod(), *reversed(ranges)) == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "runtime_class", "expected"),
    [
        pytest.param(pod(container(cpu=1)), {"overhead": {"podFixed": {"cpu": "250m"}}}, "1250m", id="added"),
        pytest.param(
            pod(container(cpu=1), overhead={"cpu": "100m"}),
            {"overhead": {"podFixed": {"cpu": "250m"}}},
            "1100m",
            id="template-has-its-own",
        ),
        pytest.param(pod(container(cpu=1)), {"handler": "runc"}, "1", id="none"),
        pytest.param(
            pod(container(cpu=1), resources={"requests": {"cpu": 2}}),
            {"overhead": {"podFixed": {"cpu": "250m"}}},
            "2250m",
            id="beside-pod-requests",
        ),
    ],
)
def test_runtime_class(spec: Object, runtime_class: Object, expected: str) -> None:
    """The overhead of the pod's RuntimeClass is added once for the pod."""
    assert shown(spec, runtime_class=runtime_class)["cpu"] == expected
