"""Compute resources of runtime and TrainJob, joined."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.api.corev1 import ResourceRequirements
from trainer.framework.building.resources import Devices, devices_of, is_exclusive, merged
from trainer.framework.plugin_api.runtime_info import Container

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("runtime", "job", "expected"),
    [
        pytest.param({}, {"requests": {GPU: 2}}, {"requests": {GPU: 2}, "limits": {GPU: 2}}, id="only-requested"),
        pytest.param(
            {"limits": {GPU: 1}}, {"requests": {GPU: 2}}, {"requests": {GPU: 2}, "limits": {GPU: 2}}, id="limit-follows"
        ),
        pytest.param(
            {"requests": {GPU: 1}, "limits": {GPU: 1}},
            {"limits": {GPU: 4}},
            {"requests": {GPU: 4}, "limits": {GPU: 4}},
            id="request-follows",
        ),
        pytest.param({"limits": {GPU: 1}}, {"limits": {GPU: 4}}, {"limits": {GPU: 4}}, id="limit-alone-is-enough"),
        pytest.param(
            {},
            {"requests": {GPU: 2}, "limits": {GPU: 3}},
            {"requests": {GPU: 2}, "limits": {GPU: 3}},
            id="what-contradicts-itself-is-left-to-validation",
        ),
        pytest.param(
            {"limits": {"cpu": 1, "memory": "1Gi"}},
            {"requests": {"cpu": 2}},
            {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": 2}},
            id="cpu-can-be-shared",
        ),
        pytest.param(
            {"claims": [{"name": "a"}]}, {"claims": [{"name": "b"}]}, {"claims": [{"name": "b"}]}, id="claims-replace"
        ),
    ],
)
def test_merged(runtime: Any, job: Any, expected: Any) -> None:
    """Amounts join by name; request and limit of a device stay equal."""
    before = {kind: dict(amounts) if isinstance(amounts, dict) else amounts for kind, amounts in runtime.items()}
    assert merged(runtime, ResourceRequirements.from_object(job)) == expected
    assert runtime == before


@pytest.mark.parametrize(
    ("name", "exclusive"),
    [
        pytest.param("cpu", False, id="native"),
        pytest.param("hugepages-2Mi", True, id="huge-pages"),
        pytest.param("kubernetes.io/x", False, id="kubernetes"),
        pytest.param("pod.kubernetes.io/x", False, id="of-kubernetes"),
        pytest.param("nvidia.com/gpu", True, id="gpu"),
    ],
)
def test_is_exclusive(name: str, exclusive: bool) -> None:
    """Devices have the domain of their maker in the name; huge pages are set aside as well."""
    assert is_exclusive(name) is exclusive


@pytest.mark.parametrize(
    ("amounts", "count"),
    [
        pytest.param({"nvidia.com/gpu": 8}, 8, id="nvidia"),
        pytest.param({"nvidia.com/gpu.shared": 2}, 2, id="nvidia-time-slices"),
        pytest.param({"nvidia.com/mig-1g.5gb": 3}, 3, id="nvidia-mig"),
        pytest.param({"nvidia.com/mig-1g.10gb.me": 1}, 1, id="nvidia-mig-with-media"),
        pytest.param({"nvidia.com/mig-1g.5gb": 1, "nvidia.com/mig-2g.10gb": 1}, 2, id="kinds-of-slices-add-up"),
        pytest.param({"nvidia.com/gpu": 2, "nvidia.com/mig-1g.5gb": 1}, 2, id="whole-ones-before-slices"),
        pytest.param({"amd.com/gpu": 4}, 4, id="amd"),
        pytest.param({"gpu.intel.com/i915": 1, "gpu.intel.com/memory.max": "8G"}, 1, id="intel"),
        pytest.param({"gpu.intel.com/i915_monitoring": 1}, 0, id="intel-monitoring"),
        pytest.param({"volcano.sh/vgpu-number": 2, "volcano.sh/vgpu-cores": 50}, 2, id="volcano"),
        pytest.param({"volcano.sh/vgpu-cores": 50, "volcano.sh/vgpu-memory": 8000}, 0, id="volcano-shares"),
        pytest.param({"nvidia.com/gpumem": 8000, "nvidia.com/gpucores": 30}, 0, id="hami-shares"),
        pytest.param({"koordinator.sh/gpu": 50}, 0, id="koordinator-hundredths"),
        pytest.param({"aliyun.com/gpu-mem": 8}, 0, id="aliyun-memory"),
        pytest.param({"custom.com/gpu": 3}, 3, id="somebody-elses"),
        pytest.param({"example.com/gpu-operator-license": 3}, 0, id="something-with-gpu-in-it"),
        pytest.param({"nvidia.com/gpu": "1500m"}, 2, id="part-of-one"),
        pytest.param({"cpu": 8, "memory": "1Gi"}, 0, id="none"),
    ],
)
def test_gpus(amounts: dict[str, object], count: int) -> None:
    """Whole devices and slices count, shares of one device do not, whatever letters are in their names."""
    assert devices_of(Container("c", resources={"limits": amounts})) == Devices(count)


@pytest.mark.parametrize(
    "name",
    [
        "habana.ai/gaudi", "huawei.com/Ascend910", "huawei.com/Ascend310P", "huawei.com/Ascend910B4",
        "huawei.com/Ascend910-16c", "huawei.com/npu", "google.com/tpu", "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice", "cambricon.com/mlu", "cambricon.com/mlu370",
        "enflame.com/gcu", "kunlunxin.com/xpu",
    ],
)  # fmt: skip
def test_other_devices(name: str) -> None:
    """Devices that are no GPUs count as well; torchrun does not find them by itself."""
    assert devices_of(Container("c", resources={"limits": {name: 4}})) == Devices(4, seen_by_torchrun=False)


@pytest.mark.parametrize("name", ["huawei.com/Ascend910A-memory", "cambricon.com/mlu370.smlu.vcore"])
def test_shares_of_other_devices(name: str) -> None:
    """Their memory and cores are no devices."""
    assert devices_of(Container("c", resources={"limits": {name: 4}})) == Devices()


def test_cores_before_devices() -> None:
    """Who asks for cores of Neuron devices trains on cores."""
    amounts = {"aws.amazon.com/neuron": 1, "aws.amazon.com/neuroncore": 8}
    assert devices_of(Container("c", resources={"limits": amounts})).count == 8


def test_requests_before_limits() -> None:
    """What is requested is what the container has."""
    resources = {"requests": {"nvidia.com/gpu": 2}, "limits": {"amd.com/gpu": 4}}
    assert devices_of(Container("c", resources=resources)).count == 2
