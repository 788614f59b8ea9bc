"""What is wrong with custom resource definitions, as the API server's validation words it.

The server keeps what all versions have in common (schemas, subresources, columns) at the top of the specification, and
names it there in its texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.kube.field_errors import duplicate, forbidden, invalid, not_supported, required, too_many
from trainer.kube.objects import annotations_of, name_of
from trainer_devcluster.apiserver.custom_resources.conditions import APPROVAL_ANNOTATION, approval_of, is_protected
from trainer_devcluster.apiserver.kinds.pods.pod_spec import dicts
from trainer_devcluster.apiserver.objects.names import service_label_problems, subdomain_problems
from trainer_devcluster.apiserver.schema.rule_entries import schema_at
from trainer_devcluster.apiserver.schema.structural import SchemaError, StructuralSchema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_SCOPES: Final = ("Cluster", "Namespaced")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES: Final = ("string", "boolean", "integer")
_MAX_SELECTABLE: Final = 8
_MAX_WARNING: Final = 256


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


def validate_approval(crd: Object, old: Object | None) -> Iterator[FieldError]:
    """Whether a definition may be in a group of the Kubernetes project; what was there before may stay."""
    if not is_protected(str(crd["spec"].get("group") or "")):
        return
    approval = approval_of(crd)
    if old is not None and approval_of(old).reason == approval.reason:
        return
    path = f"metadata.annotations[{APPROVAL_ANNOTATION}]"
    if approval.reason == "MissingAnnotation":
        yield required(path, approval.message)
    elif approval.reason == "InvalidAnnotation":
        yield invalid(path, annotations_of(crd)[APPROVAL_ANNOTATION], approval.message)


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
        yield from _deprecation(version, path)
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


def _deprecation(version: Object, path: str) -> Iterator[FieldError]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    problems = []
    if not version.get("deprecated"):
        problems.append("can only be set for deprecated versions")
    elif len(warning.encode()) > _MAX_WARNING:
        problems.append(f"must be <= {_MAX_WARNING} characters long")
    elif not warning:
        problems.append("must not be an empty string")
    elif not warning.isprintable():
        at = next(index for index, character in enumerate(warning) if not character.isprintable())
        problems.append(f"must only contain printable UTF-8 characters; non-printable character found at index {at}")
    for problem in problems:
        yield invalid(f"{path}.deprecationWarning", warning, problem)


def _schema(version: Object, path: str) -> list[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not isinstance(schema, dict):
        return []
    has_status = (version.get("subresources") or {}).get("status") is not None
    try:
        StructuralSchema.from_crd(schema, f"{path}.openAPIV3Schema", status_subresource=has_status)
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
        at, kind, shape, json_path = (
            f"{path}[{index}]",
            *(column.get(name) or "" for name in ("type", "format", "jsonPath")),
        )
        if not column.get("name"):
            yield required(f"{at}.name")
        detail = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not kind:
            yield required(f"{at}.type", detail)
        elif kind not in _COLUMN_TYPES:
            yield invalid(f"{at}.type", kind, detail)
        if shape and shape not in _COLUMN_FORMATS:
            yield invalid(f"{at}.format", shape, f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not json_path:
            yield required(f"{at}.JSONPath")
        elif problem := _path_problem(json_path):
            yield invalid(f"{at}.JSONPath", json_path, problem)


def _path_problem(path: str) -> str:
    return "" if path.startswith(".") else "must be a simple json path starting with ."


def _selectable_fields(version: Object, path: str) -> Iterator[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    seen: set[str] = set()
    for index, entry in enumerate(dicts(version.get("selectableFields"))):
        at, json_path = f"{path}.selectableFields[{index}].jsonPath", entry.get("jsonPath") or ""
        if not json_path:
            yield required(at)
            continue
        found = schema_at(json_path, schema) if isinstance(schema, dict) else None
        if found is None:
            yield invalid(at, json_path, "is an invalid path: does not refer to a valid field")
            continue
        if json_path.startswith(".metadata"):
            yield invalid(at, json_path, "must not point to fields in metadata")
        if found.get("type") not in _SELECTABLE_TYPES:
            detail = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
                "are allowed."
            )
            yield invalid(at, json_path, detail)
        if json_path in seen:
            yield duplicate(at, json_path)
        seen.add(json_path)
    if len(seen) > _MAX_SELECTABLE:
        yield too_many(f"{path}.selectableFields", len(seen), _MAX_SELECTABLE)


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
