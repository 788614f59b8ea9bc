"""CustomResourceDefinitions as objects; serving what they define is the business of the server.

The server keeps what all versions have in common (schemas, subresources, columns) at the top of the specification, and
names it there in the texts of its validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainer.kube.field_errors import FieldError, forbidden, invalid, not_supported, required
from trainer.kube.names import subdomain_problems
from trainer.kube.objects import Object, name_of
from trainer.kube.resource import CUSTOM_RESOURCE_DEFINITIONS
from trainer_devcluster.apiserver.custom_resources.controller import is_established
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import dicts, fill, section, unchanged
from trainer_devcluster.apiserver.objects.names import service_label_problems
from trainer_devcluster.apiserver.schema.schema_check import schema_at
from trainer_devcluster.apiserver.schema.structural import SchemaError, StructuralSchema
from trainer_devcluster.apiserver.tables.json_path import JSONPath, JSONPathError

_SCOPES: Final = ("Cluster", "Namespaced")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_SELECTABLE_TYPES: Final = ("string", "boolean", "integer")


def validate_definition(crd: Object) -> Iterator[FieldError]:
    """What is wrong with a definition, defaults filled in."""
    spec = crd["spec"]
    if name_of(crd) != f"{spec['names'].get('plural') or ''}.{spec.get('group') or ''}":
        yield invalid("metadata.name", name_of(crd), 'must be spec.names.plural+"."+spec.group')
    yield from _group(spec.get("group") or "")
    scope = spec.get("scope")
    if not scope:
        yield required("spec.scope")
    elif scope not in _SCOPES:
        yield not_supported("spec.scope", scope, _SCOPES)
    yield from _versions(spec)
    yield from _names(spec["names"])
    yield from _conversion(spec.get("conversion") or {})
    if spec.get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield invalid("spec.preserveUnknownFields", True, detail)


def validate_stored_versions(crd: Object) -> Iterator[FieldError]:
    """What is wrong with `status.storedVersions`: no version in which objects may be stored can go."""
    path, stored = "status.storedVersions", list((crd.get("status") or {}).get("storedVersions") or [])
    if not stored:
        yield invalid(path, stored, "must have at least one stored version")
        return
    versions = dicts(crd["spec"].get("versions"))
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            yield invalid(path, stored, f"must have the storage version {version.get('name')}")
    known = {version.get("name") for version in versions}
    for index, name in enumerate(stored):
        if name not in known:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions"
                f" until a storage migration ensures no data remains persisted in {name} and removes {name} from "
                "status.storedVersions"
            )
            yield invalid(f"{path}[{index}]", name, detail)


def _group(group: str) -> Iterator[FieldError]:
    if not group:
        yield required("spec.group")
    elif problems := subdomain_problems(group):
        yield invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _versions(spec: Object) -> Iterator[FieldError]:
    versions = dicts(spec.get("versions"))
    shared = {field: _is_shared(versions, field) for field in ("schema", "subresources", "additionalPrinterColumns")}
    for index, version in enumerate(versions):
        if not isinstance((version.get("schema") or {}).get("openAPIV3Schema"), dict):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")
    for index, version in enumerate(versions):
        path, name = f"spec.versions[{index}]", version.get("name") or ""
        if problems := service_label_problems(name):
            yield invalid(f"{path}.name", name, ",".join(problems))
        for field, check in (
            ("schema", _schema),
            ("subresources", _subresources),
            ("additionalPrinterColumns", _columns),
        ):
            if not shared[field]:
                yield from check(version, f"{path}.{field}")
        yield from _selectable_fields(version, path)
    if versions and shared["schema"]:
        yield from _schema(versions[0], "spec.validation")
    if versions and shared["subresources"]:
        yield from _subresources(versions[0], "spec.subresources")
    if versions and shared["additionalPrinterColumns"]:
        yield from _columns(versions[0], "spec.additionalPrinterColumns")
    names = [version.get("name") for version in versions]
    if len(set(names)) < len(names):
        yield invalid("spec.versions", versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid("spec.versions", versions, "must have exactly one version marked as storage version")


def _is_shared(versions: list[Object], field: str) -> bool:
    return bool(versions) and all(version.get(field) == versions[0].get(field) for version in versions)


def _schema(version: Object, path: str) -> list[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not isinstance(schema, dict):
        return []
    try:
        StructuralSchema.from_crd(schema, f"{path}.openAPIV3Schema")
    except SchemaError as error:
        return error.causes
    return []


def _subresources(version: Object, path: str) -> Iterator[FieldError]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for field, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        value, at = scale.get(field) or "", f"{path}.scale.{field}"
        if not value:
            yield required(at)
        elif problem := _path_problem(value):
            yield invalid(at, value, problem)
        elif not value.startswith(root):
            yield invalid(at, value, f"should be a json path under {root.rstrip('.')}")
    selector = scale.get("labelSelectorPath") or ""
    if selector and (problem := _path_problem(selector)):
        yield invalid(f"{path}.scale.labelSelectorPath", selector, problem)
    elif selector and not selector.startswith((".spec.", ".status.")):
        detail = "should be a json path under either .spec or .status"
        yield invalid(f"{path}.scale.labelSelectorPath", selector, detail)


def _columns(version: Object, path: str) -> Iterator[FieldError]:
    for index, column in enumerate(dicts(version.get("additionalPrinterColumns"))):
        at, kind, json_path = f"{path}[{index}]", column.get("type") or "", column.get("jsonPath") or ""
        if not column.get("name"):
            yield required(f"{at}.name")
        if kind not in _COLUMN_TYPES:
            yield invalid(f"{at}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}")
        if not json_path:
            yield required(f"{at}.JSONPath")
        elif problem := _path_problem(json_path):
            yield invalid(f"{at}.JSONPath", json_path, problem)
        else:
            yield from _unreadable(json_path, f"{at}.JSONPath")


def _unreadable(json_path: str, path: str) -> Iterator[FieldError]:
    try:
        JSONPath.parse(json_path)
    except JSONPathError as error:
        yield invalid(path, json_path, str(error))


def _path_problem(path: str) -> str:
    return "" if path.startswith(".") else "must be a simple json path starting with ."


def _selectable_fields(version: Object, path: str) -> Iterator[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    for index, entry in enumerate(dicts(version.get("selectableFields"))):
        at, json_path = f"{path}.selectableFields[{index}].jsonPath", entry.get("jsonPath") or ""
        found = schema_at(json_path, schema) if isinstance(schema, dict) else None
        if found is None:
            yield invalid(at, json_path, "is an invalid path: does not refer to a valid field")
        elif found.get("type") not in _SELECTABLE_TYPES:
            detail = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
                "are allowed."
            )
            yield invalid(at, json_path, detail)


def _names(names: Object) -> Iterator[FieldError]:
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            yield required(f"spec.names.{field}")
    for field in ("plural", "singular"):
        yield from _label(names.get(field) or "", f"spec.names.{field}")
    for field in ("kind", "listKind"):
        problems = service_label_problems((names.get(field) or "").lower())
        if names.get(field) and problems:
            detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            yield invalid(f"spec.names.{field}", names[field], detail)
    for field in ("shortNames", "categories"):
        for index, name in enumerate(names.get(field) or ()):
            yield from _label(name or " ", f"spec.names.{field}[{index}]")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _label(name: str, path: str) -> Iterator[FieldError]:
    problems = service_label_problems(name) if name else ()
    if problems:
        yield invalid(path, name, ",".join(problems))


def _conversion(conversion: Object) -> Iterator[FieldError]:
    path, strategy = "spec.conversion", conversion.get("strategy")
    if strategy == "Webhook":
        yield forbidden(f"{path}.strategy", "the dev cluster calls no conversion webhooks: use None, or a real cluster")
    elif not strategy:
        yield required(f"{path}.strategy")
    elif strategy != "None":
        yield not_supported(f"{path}.strategy", strategy, ("None", "Webhook"))
    elif conversion.get("webhook") is not None:
        yield forbidden(f"{path}.webhookClientConfig", "should not be set when strategy is not set to Webhook")


class CustomResourceDefinitionStrategy(Strategy):
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
