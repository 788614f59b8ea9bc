"""CustomResourceDefinitions as objects; serving what they define is the business of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS
from trainer_devcluster.apiserver.custom_resources.conditions import is_established
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.kinds.crd_validation import (
    validate_definition,
    validate_stored_versions,
)
from trainer_devcluster.apiserver.kinds.editing import fill, section
from trainer_devcluster.apiserver.kinds.field_checks import unchanged
from trainer_devcluster.apiserver.kinds.pods.pod_spec import dicts

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext


class CustomResourceDefinitionStrategy(StoreOnlyStrategy):
    """apiextensions.k8s.io/v1 CustomResourceDefinition."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Derive the names that are left open from the kind."""
        spec = section(obj, "spec")
        names = section(spec, "names")
        kind = str(names.get("kind") or "")
        fill(names, singular=kind.lower(), listKind=f"{kind}List" if kind else "")
        fill(spec, conversion={"strategy": "None"})

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Start with an empty status, to be filled when the names are accepted."""
        stored = _storage_versions(obj)
        obj["status"] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Remember every version in which objects have been stored."""
        status = obj.setdefault("status", {})
        known = list(status.get("storedVersions") or [])
        status["storedVersions"] = known + [name for name in _storage_versions(obj) if name not in known]

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check names, versions, schemas and conversion."""
        return [*validate_definition(obj), *validate_stored_versions(obj)]

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the definition, and that stored objects keep their place and kind."""
        if context.subresource is not None:
            return list(validate_stored_versions(obj))
        causes: list[FieldError] = []
        if obj["spec"] != old["spec"]:
            causes += validate_definition(obj)
        new_spec, old_spec = obj["spec"], old["spec"]
        if is_established(old):
            causes += unchanged("spec.scope", new_spec.get("scope"), old_spec.get("scope"))
            causes += unchanged("spec.names.kind", new_spec["names"].get("kind"), old_spec["names"].get("kind"))
        causes += unchanged("spec.group", new_spec.get("group"), old_spec.get("group"))
        causes += unchanged("spec.names.plural", new_spec["names"].get("plural"), old_spec["names"].get("plural"))
        return [*causes, *validate_stored_versions(obj)]


def _storage_versions(obj: Object) -> list[str]:
    versions = dicts(obj["spec"].get("versions"))
    return [version["name"] for version in versions if version.get("name") and version.get("storage")]


CUSTOM_RESOURCE_DEFINITION = ResourceDefinition(
    CUSTOM_RESOURCE_DEFINITIONS,
    CustomResourceDefinitionStrategy(),
    singular="customresourcedefinition",
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    status_subresource=True,
    heavy=True,
)
