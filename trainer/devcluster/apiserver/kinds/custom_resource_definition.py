"""CustomResourceDefinitions as objects; serving what they define is the business of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.devcluster.apiserver.definitions import ResourceDefinition
from trainer.devcluster.apiserver.kinds.causes import unchanged
from trainer.devcluster.apiserver.kinds.editing import fill, section
from trainer.devcluster.apiserver.kinds.pod_spec import dicts
from trainer.devcluster.apiserver.strategy import StoreOnlyStrategy
from trainer.devcluster.apiserver.structural import SchemaError, StructuralSchema
from trainer.kube.field_errors import duplicate, invalid, not_supported, required
from trainer.kube.objects import name_of
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS

if TYPE_CHECKING:
    from trainer.devcluster.apiserver.strategy import WriteContext
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_SCOPES = ("Cluster", "Namespaced")


class CustomResourceDefinitionStrategy(StoreOnlyStrategy):
    """apiextensions.k8s.io/v1 CustomResourceDefinition."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Derive the names that are left open from the kind."""
        spec = section(obj, "spec")
        names = section(spec, "names")
        kind = str(names.get("kind") or "")
        fill(names, singular=kind.lower(), listKind=f"{kind}List")
        fill(spec, conversion={"strategy": "None"})

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Start with an empty status, to be filled when the names are accepted."""
        versions = dicts(obj["spec"].get("versions"))
        stored = [version["name"] for version in versions if version.get("name") and version.get("storage")]
        obj["status"] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check names, versions and schemas."""
        spec, names = obj["spec"], obj["spec"]["names"]
        causes = [required(f"spec.{field}") for field in ("group", "scope", "versions") if not spec.get(field)]
        causes += [required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)]
        wanted = f"{names.get('plural')}.{spec.get('group')}"
        if name_of(obj) != wanted:
            detail = f'must be spec.names.plural+"."+spec.group ({wanted})'
            causes.append(invalid("metadata.name", name_of(obj), detail))
        if spec.get("scope") and spec["scope"] not in _SCOPES:
            causes.append(not_supported("spec.scope", spec["scope"], sorted(_SCOPES)))
        if spec["conversion"].get("strategy") != "None":
            causes.append(not_supported("spec.conversion.strategy", spec["conversion"].get("strategy"), ("None",)))
        return causes + _validate_versions(dicts(spec.get("versions")))

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the definition, and that stored objects keep their group, scope and kind."""
        if context.subresource is not None:
            return []
        causes = self.validate(obj, context)
        for field in ("group", "scope"):
            causes += unchanged(f"spec.{field}", obj["spec"].get(field), old["spec"].get(field))
        return causes + unchanged("spec.names.plural", obj["spec"]["names"]["plural"], old["spec"]["names"]["plural"])


def _validate_versions(versions: list[Object]) -> list[FieldError]:
    causes: list[FieldError] = []
    names: set[str] = set()
    for index, version in enumerate(versions):
        path, name = f"spec.versions[{index}]", version.get("name")
        if not name:
            causes.append(required(f"{path}.name"))
        elif name in names:
            causes.append(duplicate(f"{path}.name", name))
        else:
            names.add(name)
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        causes += _validate_schema(schema, f"{path}.schema.openAPIV3Schema")
    if versions and sum(bool(version.get("storage")) for version in versions) != 1:
        causes.append(
            invalid("spec.versions", sorted(names), "must have exactly one version marked as storage version")
        )
    return causes


def _validate_schema(schema: object, path: str) -> list[FieldError]:
    if not isinstance(schema, dict):
        return [required(path, "schemas are required")]
    try:
        StructuralSchema.from_crd(schema, path)
    except SchemaError as error:
        return error.causes
    return []


CUSTOM_RESOURCE_DEFINITION = ResourceDefinition(
    CUSTOM_RESOURCE_DEFINITIONS,
    CustomResourceDefinitionStrategy(),
    singular="customresourcedefinition",
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    status_subresource=True,
    heavy=True,
)
