"""Bounds of what people write."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.test_crds import walk
from tests.definitions import DEFINITIONS
from trainer.api import patterns
from trainer.api.bounds import bounded
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.pod_template import pod_template_errors
from trainer.api.trainjob import TrainJob
from trainer.kube.objects import Object

PARTS = ("spec", "status")


@pytest.mark.parametrize("crd", DEFINITIONS, ids=lambda crd: crd["metadata"]["name"])
def test_everything_has_a_bound(crd: Object) -> None:
    """The API server stores no text, list, map or amount of any size, whatever fields are added later."""
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for part in PARTS:
        for path, node in walk(schema["properties"].get(part, {}), f".{part}"):
            if node.get("x-kubernetes-int-or-string"):
                assert "maxLength" in node, path
            elif node.get("type") == "string":
                assert "maxLength" in node or "enum" in node, path
            elif node.get("type") == "array":
                assert "maxItems" in node, path
            if "additionalProperties" in node:
                assert "maxProperties" in node, path
            assert node.get("pattern") != patterns.ANY_QUANTITY, path


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({"type": "string", "maxLength": 7}, {"maxLength": 7}, id="text-with-one"),
        pytest.param({"type": "array", "maxItems": 7}, {"maxItems": 7}, id="list-with-one"),
        pytest.param({"type": "string", "enum": ["a"]}, {}, id="choice"),
    ],
)
def test_bounds_that_are_there_stay(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    """Only what has no bound gets one."""
    assert bounded(schema) == schema | expected


@pytest.mark.parametrize(
    ("trainer", "problem"),
    [
        pytest.param(
            {"resourcesPerNode": {"limits": {"nvidia.com/gpu": "1e999999"}}},
            'limits[nvidia.com/gpu]: Invalid value: "1e999999": must be a quantity such as 2, 500m or 4Gi, with an '
            "exponent of at most 2 digits",
            id="exponent",
        ),
        pytest.param(
            {"resourcesPerNode": {"limits": {"nvidia.com/gpu": "1e99"}}},
            'limits[nvidia.com/gpu]: Invalid value: "1e99": must be a quantity below 8Ei',
            id="size",
        ),
        pytest.param(
            {"resourcesPerNode": {"requests": {f"example.com/{index}": 1 for index in range(129)}}},
            "requests: Too many: 129: must have at most 128 items",
            id="resources",
        ),
        pytest.param(
            {"resourcesPerNode": {"claims": [{"name": f"c{index}"} for index in range(1025)]}},
            "claims: Too many: 1025: must have at most 1024 items",
            id="claims",
        ),
        pytest.param({"args": ["a"] * 4097}, "args: Too many: 4097: must have at most 4096 items", id="args"),
        pytest.param({"command": ["a" * 131073]}, "command[0]: Too long: may not be more than 131072", id="word"),
        pytest.param(
            {"env": [{"name": "A", "value": "a" * 131073}]}, "env[0].value: Too long: may not be more", id="variable"
        ),
    ],
)
def test_a_train_job_is_bounded(trainer: Object, problem: str) -> None:
    """The error names the field that is too large, and how much is allowed."""
    spec = {"runtimeRef": {"name": "torch"}, "trainer": trainer}
    with pytest.raises(InvalidObjectError) as refusal:
        TrainJob.from_object({"metadata": {"name": "t"}, "spec": spec}, strict=True)
    assert problem in str(refusal.value)


@pytest.mark.parametrize("amount", ["1e999999", "1e1999999", "1e99", "9" * 65])
def test_amounts_of_pod_templates_are_bounded(amount: str) -> None:
    """The amounts of a pod template have the same bounds as those of a TrainJob, in every place."""
    container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": amount}}}
    spec = {
        "containers": [container],
        "overhead": {"cpu": amount},
        "resources": {"requests": {"cpu": amount}},
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": amount}}],
    }
    fields = {error.field for error in pod_template_errors({"spec": spec}, "t")}
    assert fields == {
        "t.spec.containers[0].resources.limits[nvidia.com/gpu]",
        "t.spec.overhead[cpu]",
        "t.spec.resources.requests[cpu]",
        "t.spec.volumes[0].emptyDir.sizeLimit",
    }


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_containers_of_pod_templates_are_bounded(kind: str) -> None:
    """Each container costs more than an entry of any other list."""
    many = [{"name": f"c{index}", "image": "i"} for index in range(65)]
    [error] = pod_template_errors({"spec": {"containers": [{"name": "node", "image": "i"}]} | {kind: many}}, "t")
    assert str(error) == f"t.spec.{kind}: Too many: 65: must have at most 64 items"
