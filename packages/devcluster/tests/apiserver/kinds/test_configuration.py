from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created, fields, updated
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.configuration import ConfigMapStrategy, SecretStrategy


def make_object(**content: Any) -> Object:
    return {"metadata": {"name": "o"}, **content}


def test_string_data_is_encoded() -> None:
    """`stringData` is written, never read, and wins over `data`."""
    secret, causes = created(SecretStrategy(), make_object(data={"a": "eA==", "b": "eQ=="}, stringData={"a": "z"}))
    assert causes == []
    assert secret["data"] == {"a": "eg==", "b": "eQ=="}
    assert "stringData" not in secret
    assert secret["type"] == "Opaque"


def test_value_of_a_secret_is_not_repeated() -> None:
    """The message of a refusal may end up in a log."""
    _, [cause] = created(SecretStrategy(), make_object(data={"key": "hunter2!"}))
    assert cause.field == "data[key]"
    assert "hunter2" not in cause.message
    assert "stringData" in cause.message


@pytest.mark.parametrize(
    ("content", "field"),
    [
        pytest.param({"data": {"bad!key": "v"}}, "data[bad!key]", id="key"),
        pytest.param({"data": {"n": 1}}, "data[n]", id="number"),
        pytest.param({"data": ["a"]}, "data", id="list"),
        pytest.param({"data": {"k": "x" * (1024 * 1024 + 1)}}, "[]", id="too large"),
    ],
)
def test_wrong_config_maps_are_refused(content: dict[str, Any], field: str) -> None:
    """The cause names the key."""
    assert fields(created(ConfigMapStrategy(), make_object(**content))[1]) == field.split()


def test_empty_maps_are_not_stored() -> None:
    """A ConfigMap without entries has no `data`, as a real API server answers."""
    assert "data" not in created(ConfigMapStrategy(), make_object(data={}))[0]


def test_immutable_objects_stay_as_they_are() -> None:
    """Neither the entries nor the mark itself may change."""
    old, _ = created(ConfigMapStrategy(), make_object(data={"k": "v"}, immutable=True))
    new = deepcopy(old)
    new["data"]["k"] = "w"
    assert fields(updated(ConfigMapStrategy(), new, old)) == ["data"]
    new = deepcopy(old)
    del new["immutable"]
    assert fields(updated(ConfigMapStrategy(), new, old)) == ["immutable"]


def test_type_of_a_secret_is_immutable() -> None:
    """Consumers rely on it."""
    old, _ = created(SecretStrategy(), make_object())
    new = {**deepcopy(old), "type": "other"}
    assert fields(updated(SecretStrategy(), new, old)) == ["type"]
