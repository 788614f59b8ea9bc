"""Decoding of built-in kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trainer.devcluster.apiserver.decoding import WrongTypeError, normalize, read_as
from trainer.devcluster.apiserver.listtypes import Typing
from trainer.devcluster.apiserver.status import StatusError

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def pod_type() -> Typing:
    typing = Typing.for_built_in("v1", "Pod")
    assert typing is not None
    return typing


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param({"metadata": {"labels": {}, "creationTimestamp": None}}, {"metadata": {}}, id="nothing is absent"),
        pytest.param(
            {"spec": {"containers": [{"name": "c", "args": [], "securityContext": {}}]}},
            {"spec": {"containers": [{"name": "c", "securityContext": {}}]}},
            id="empty lists go, empty structures stay",
        ),
        pytest.param(
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            id="empty volume source",
        ),
        pytest.param(
            {"spec": {"containers": [{"resources": {"limits": {"cpu": 2, "memory": 0.5}}}]}},
            {"spec": {"containers": [{"resources": {"limits": {"cpu": "2", "memory": "0.5"}}}]}},
            id="quantities are text",
        ),
        pytest.param({"spec": {"containers": []}}, {"spec": {"containers": []}}, id="required lists stay"),
        pytest.param({"other": None}, {"other": None}, id="beyond the type"),
    ],
)
def test_normalize(obj: Object, expected: Object) -> None:
    """Objects get the form in which the real server writes them."""
    normalize(obj, pod_type())
    assert obj == expected


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        pytest.param({"spec": "x"}, "spec", id="text for an object"),
        pytest.param({"spec": {"containers": {}}}, "spec.containers", id="object for a list"),
        pytest.param({"spec": {"containers": [{"args": [1]}]}}, "spec.containers[0].args[0]", id="number in a list"),
        pytest.param({"spec": {"priority": True}}, "spec.priority", id="boolean for a number"),
        pytest.param({"spec": {"priority": 1.5}}, "spec.priority", id="fraction for an integer"),
        pytest.param({"metadata": {"labels": {"a": 1}}}, "metadata.labels.a", id="number for a label"),
        pytest.param(
            {"spec": {"containers": [{"resources": {"limits": {"cpu": True}}}]}},
            "spec.containers[0].resources.limits.cpu",
            id="boolean for a quantity",
        ),
    ],
)
def test_wrong_types_are_named(obj: Object, field: str) -> None:
    """A value of a wrong type is refused with its path."""
    with pytest.raises(WrongTypeError, match=f"^{field.replace('[', '.').replace(']', '.')}: expected"):
        normalize(obj, pod_type())


def test_options_of_another_kind_are_refused() -> None:
    """The body of a deletion may leave its kind out, but not be something else."""
    assert read_as("v1", "DeleteOptions", {"gracePeriodSeconds": 1, "unknown": 2}) == {"gracePeriodSeconds": 1}
    for body in ({"kind": "Pod"}, {"kind": ["DeleteOptions"]}, {"preconditions": "uid"}):
        with pytest.raises(StatusError) as caught:
            read_as("v1", "DeleteOptions", body)
        assert caught.value.code == 400
