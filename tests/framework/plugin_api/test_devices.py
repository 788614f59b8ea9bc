"""What counts as a device of a container."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from trainer.framework import StaticReader
from trainer.framework.building.extraction import extract
from trainer.framework.plugin_api.devices import KINDS, USUAL_DEVICES, DeviceKind, Devices, DeviceTable, Unit

NONE = Devices()
GPU = Devices(1)


@pytest.mark.parametrize(
    ("amounts", "count"),
    [
        pytest.param({"nvidia.com/gpu": 8}, 8, id="nvidia"),
        pytest.param({"aliyun.com/gpu-mem": 8}, 1, id="aliyun-memory"),
        pytest.param({"nvidia.com/gpu": "1500m"}, 2, id="part-of-one"),
        pytest.param({"nvidia.com/gpu": 0, "nvidia.com/mig-1g.5gb": 1}, 1, id="zero-is-none"),
        pytest.param({"rdma/hca_shared_devices_a": 1, "vpc.amazonaws.com/efa": 4}, 0, id="network"),
    ],
)
def test_gpus(amounts: dict[str, object], count: int) -> None:
    """Whole devices and slices count, a share is one device, whatever its amount and the letters of its name."""
    assert USUAL_DEVICES.devices_of({"limits": amounts}, {}, "") == Devices(count)


@pytest.mark.parametrize(
    "name",
    [
        "habana.ai/gaudi", "huawei.com/Ascend910", "huawei.com/Ascend310P", "huawei.com/Ascend910B4",
        "huawei.com/Ascend910B4-1", "huawei.com/Ascend910-16c", "huawei.com/Ascend310P-4c.3cpu", "huawei.com/npu",
        "google.com/tpu", "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice", "cambricon.com/mlu", "cambricon.com/mlu370",
        "cambricon.com/mlu370.share", "cambricon.com/mlu370.mim-2m.8gb", "enflame.com/gcu", "enflame.com/drs-gcu",
        "kunlunxin.com/xpu", "kunlunxin.com/vxpu",
    ],
)  # fmt: skip
def test_other_devices(name: str) -> None:
    """Devices that are no GPUs count as well; torchrun does not find them by itself."""
    assert USUAL_DEVICES.devices_of({"limits": {name: 4}}, {}, "") == Devices(4, seen_by_torchrun=False)


@pytest.mark.parametrize("name", ["huawei.com/Ascend910A-memory", "cambricon.com/mlu370.smlu.vcore"])
def test_shares_of_other_devices(name: str) -> None:
    """Their memory and cores are no devices."""
    assert USUAL_DEVICES.devices_of({"limits": {name: 4}}, {}, "") == NONE


def test_cores_of_ascend() -> None:
    """Who asks for cores of an Ascend chip gets one device that has them."""
    assert USUAL_DEVICES.devices_of({"limits": {"huawei.com/npu-core": 8}}, {}, "") == Devices(1, False)


def test_sources() -> None:
    """Each row of the table says where its names come from."""
    assert all(kind.source and (kind.resources or kind.classes) for kind in KINDS)


@pytest.mark.parametrize(
    ("amounts", "count"),
    [
        pytest.param({"example.com/gpu-a100": 4}, 4, id="gpu-in-the-name"),
        pytest.param({"a.com/gpus": 0, "b.com/gpus": 2}, 2, id="zero-is-none"),
        pytest.param({"example.com/gpus": 4, "nvidia.com/gpu": 2}, 2, id="the-table-comes-first"),
        pytest.param({"volcano.sh/vgpu-cores": 50}, 1, id="share"),
        pytest.param({"cpu": 3}, 0, id="none"),
    ],
)
def test_by_name(amounts: dict[str, object], count: int) -> None:
    """By name, what Kubeflow Trainer (Go) takes for a GPU counts as well."""
    assert USUAL_DEVICES.devices_of({"limits": amounts}, {}, "", by_name=True) == Devices(count)


def template(name: str, *requests: Any) -> dict[str, Any]:
    """A ResourceClaimTemplate of the namespace of `train_job`."""
    spec = {"spec": {"devices": {"requests": list(requests)}}}
    return {"kind": "ResourceClaimTemplate", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def request(device_class: str, name: str = "r", **more: Any) -> dict[str, Any]:
    """A request of a template."""
    return {"name": name, "exactly": {"deviceClassName": device_class} | more}


def one_of(*alternatives: Any) -> dict[str, Any]:
    """A request with alternatives."""
    found = [{"name": device_class, "deviceClassName": device_class, "count": n} for device_class, n in alternatives]
    return {"name": "r", "firstAvailable": found}


NVIDIA = "gpu.nvidia.com"
NEURON = "neuron.aws.com"
TWO = [request(NVIDIA, "a"), request(NVIDIA, "b", count=2)]
OWN = r"example\.com/a"


@pytest.mark.parametrize(
    ("requests", "claim", "expected"),
    [
        pytest.param([request(NVIDIA)], {}, GPU, id="one"),
        pytest.param([request(NVIDIA, count=4)], {}, Devices(4), id="several"),
        pytest.param([request("mig.nvidia.com", count=2)], {}, Devices(2), id="slices"),
        pytest.param([request("gpu.example.com")], {}, GPU, id="gpu-of-somebody-else"),
        pytest.param([request(NEURON, count=4)], {}, Devices(4, seen_by_torchrun=False), id="neuron"),
        pytest.param([request("tpu.google.com", count=4)], {}, Devices(4, seen_by_torchrun=False), id="tpu"),
        pytest.param([request("tpu.google.com", allocationMode="All")], {}, Devices(1, False), id="all-of-a-node"),
        pytest.param(TWO, {}, Devices(3), id="requests-add-up"),
        pytest.param(TWO, {"request": "b"}, Devices(2), id="one-of-them"),
        pytest.param([one_of((NVIDIA, 4), (NVIDIA, 2))], {}, Devices(2), id="fewest-of-alternatives"),
        pytest.param([one_of((NVIDIA, 4), (NVIDIA, 2))], {"request": f"r/{NVIDIA}"}, Devices(2), id="an-alternative"),
        pytest.param([request("rdma.example.com", count=8)], {}, NONE, id="network"),
        pytest.param([request(NVIDIA, adminAccess=True)], {}, NONE, id="monitoring"),
        pytest.param([request(NVIDIA, count=10**18)], {}, Devices(32), id="more-than-a-claim-can-have"),
        pytest.param([], {}, NONE, id="nothing"),
    ],
)
def test_claims(requests: Any, claim: Any, expected: Devices) -> None:
    """Devices that a container claims count by the class of the request."""
    table = DeviceTable(reader=StaticReader(template("t", *requests)))
    pod = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}
    assert table.devices_of({"claims": [{"name": "c"} | claim]}, pod, "default") == expected


@pytest.mark.parametrize("pod_claim", [{"resourceClaimTemplateName": "later"}, {"resourceClaimName": "shared"}])
def test_unknown_claims(pod_claim: Any) -> None:
    """A claim that cannot be read is one GPU, and nothing by name, nor beside a known device."""
    pod, claims = {"resourceClaims": [{"name": "c"} | pod_claim]}, [{"name": "c"}]
    for table in (USUAL_DEVICES, DeviceTable(reader=StaticReader())):
        assert table.devices_of({"claims": claims}, pod, "default") == GPU
        assert table.devices_of({"claims": claims}, pod, "default", by_name=True) == NONE
        assert table.devices_of({"claims": claims, "limits": {"google.com/tpu": 4}}, pod, "default").count == 4


def test_devices_of_a_container() -> None:
    """The claims of a container are those of its own pod, in the namespace of the TrainJob."""
    container = {"name": "trainer", "image": "i", "resources": {"claims": [{"name": "c"}]}}
    pod = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}
    table = DeviceTable(reader=StaticReader(template("t", request(NVIDIA, count=2))))
    info = extract(train_job(), runtime(replicated_job("node", container, pod=pod)), devices=table)
    assert info.devices_of(info.main_container) == Devices(2)
    copy = deepcopy(info)
    assert copy.devices_of(copy.main_container) == Devices(2)


@pytest.mark.parametrize(
    ("kind", "amounts", "expected"),
    [
        pytest.param(DeviceKind("s", OWN, seen_by_torchrun=False), {"example.com/a": 2}, Devices(2, False), id="own"),
        pytest.param(DeviceKind("s", OWN), {"nvidia.com/gpu": 4}, Devices(4), id="usual-ones-remain"),
        pytest.param(DeviceKind("s", OWN, unit=Unit.HUNDREDTH), {"example.com/a": 150}, Devices(2), id="unit"),
        pytest.param(DeviceKind("s", classes=OWN), {"example.com/a": 2}, NONE, id="a-class-is-no-resource"),
    ],
)
def test_own_kinds(kind: DeviceKind, amounts: Any, expected: Devices) -> None:
    """Kinds of the configuration come before the usual ones."""
    assert DeviceTable([kind]).devices_of({"limits": amounts}, {}, "") == expected


def test_bad_amounts() -> None:
    """An amount that cannot be read is a ValueError, which admission turns into the error of its field."""
    with pytest.raises(ValueError, match="must be a quantity"):
        USUAL_DEVICES.devices_of({"limits": {"nvidia.com/gpu": "many"}}, {}, "")
