"""Decoding of built-in kinds."""

from __future__ import annotations

import pytest

from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.objects.built_in_types import built_in_type
from trainer_devcluster.apiserver.objects.decoding import WrongTypeError, normalize, read_as
from trainer_devcluster.apiserver.objects.value_types import SchemaTyping


def pod_type() -> SchemaTyping:
    typing = built_in_type("v1", "Pod")
    assert typing is not None
    return typing


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        pytest.param(
            {"spec": {"containers": {}}},
            "cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
            id="object for a list",
        ),
        pytest.param(
            {"spec": {"priority": True}},
            "cannot unmarshal bool into Go struct field PodSpec.spec.priority of type int32",
            id="boolean for a number",
        ),
    ],
)
def test_wrong_types_are_named(obj: Object, message: str) -> None:
    """A value of a wrong type is refused as the real server's decoder words it."""
    with pytest.raises(WrongTypeError) as caught:
        normalize(obj, pod_type())
    assert str(caught.value) == f"json: {message}"


def test_quantities_have_a_form() -> None:
    """Amounts that cannot be read are refused when the object is read."""
    with pytest.raises(WrongTypeError, match="quantities must match the regular expression"):
        normalize({"spec": {"overhead": {"cpu": "much"}}}, pod_type())


def test_options_of_another_kind_are_refused() -> None:
    """The body of a deletion may leave its kind out, but not be something else."""
    assert read_as("v1", "DeleteOptions", {"gracePeriodSeconds": 1, "unknown": 2}) == {"gracePeriodSeconds": 1}
    for body in ({"kind": "Pod"}, {"kind": ["DeleteOptions"]}, {"preconditions": "uid"}):
        with pytest.raises(ApiError) as caught:
            read_as("v1", "DeleteOptions", body)
        assert caught.value.code == 400
