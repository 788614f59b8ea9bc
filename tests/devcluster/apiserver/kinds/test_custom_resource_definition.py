from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from tests.devcluster.apiserver.kinds.context import created, fields, updated
from trainer.devcluster.apiserver.kinds.custom_resource_definition import CustomResourceDefinitionStrategy

if TYPE_CHECKING:
    from trainer.kube.objects import Object


SCHEMA = {"openAPIV3Schema": {"type": "object"}}


def make_crd(**spec: Any) -> Object:
    version = {"name": "v1", "served": True, "storage": True, "schema": SCHEMA}
    names = {"plural": "widgets", "kind": "Widget"}
    defaults = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "widgets.example.com"}, "spec": {**defaults, **spec}}


def test_names_of_a_definition_follow_from_its_kind() -> None:
    """Singular and list kind may be left out."""
    crd, causes = created(CustomResourceDefinitionStrategy(), make_crd())
    assert causes == []
    assert (crd["spec"]["names"]["singular"], crd["spec"]["names"]["listKind"]) == ("widget", "WidgetList")
    assert crd["status"]["storedVersions"] == ["v1"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"group": "other.com"}, "metadata.name", id="name"),
        pytest.param({"scope": "Global"}, "spec.scope", id="scope"),
        pytest.param({"versions": []}, "spec.versions", id="no version"),
        pytest.param(
            {"versions": [{"name": "v1", "storage": True}]}, "spec.versions[0].schema.openAPIV3Schema", id="no schema"
        ),
        pytest.param({"versions": [{"storage": True, "schema": SCHEMA}]}, "spec.versions[0].name", id="no name"),
        pytest.param({"conversion": {"strategy": "Webhook"}}, "spec.conversion.strategy", id="conversion"),
    ],
)
def test_wrong_definitions_are_refused(spec: dict[str, Any], field: str) -> None:
    """The cause names the field."""
    assert fields(created(CustomResourceDefinitionStrategy(), make_crd(**spec))[1]) == [field]


def test_scope_of_a_definition_is_immutable() -> None:
    """Stored objects are keyed by it."""
    old, _ = created(CustomResourceDefinitionStrategy(), make_crd())
    new = deepcopy(old)
    new["spec"]["scope"] = "Cluster"
    assert fields(updated(CustomResourceDefinitionStrategy(), new, old)) == ["spec.scope"]
