"""Reads jobs as the operator does: role names in any case, templates as the API server stores them."""

from __future__ import annotations

from typing import Any

from trainer.api.invalid_object import InvalidObjectError
from trainer.kube.field_errors import duplicate, first_errors
from trainer.kube.objects import Object, mapping_at
from trainer_v1_jobs.api.kinds import KINDS, Job, JobKind
from trainer_v1_jobs.api.validation import errors_of

_TEMPLATE_METADATA = frozenset({"labels", "annotations"})


def kind_of(obj: Any) -> JobKind | None:
    """The kind of an object; None if it is of no kind of the Training or MPI Operator."""
    if not isinstance(obj, dict):
        return None
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    return KINDS.get((api_version, kind)) if isinstance(api_version, str) and isinstance(kind, str) else None


def normalised(obj: Object, kind: JobKind) -> Object:
    """A copy with the names of roles as the operator writes them, so that `worker` is Worker; nothing is checked.

    Raises:
        InvalidObjectError: two roles have one name.
    """
    spec = obj.get("spec")
    specs = spec.get(kind.replicas_field) if isinstance(spec, dict) else None
    if not isinstance(specs, dict):
        return obj
    names = {role.lower(): role for role in kind.roles}
    result: dict[Any, Any] = {}
    for name, replica in specs.items():
        role = names.get(name.lower(), name) if isinstance(name, str) else name
        if role in result:
            subject = f"{kind.resource.kind} {mapping_at(obj, 'metadata').get('name', '')}".strip()
            raise InvalidObjectError(subject, (duplicate(f"spec.{kind.replicas_field}[{role}]", role),))
        result[role] = replica
    return obj | {"spec": mapping_at(obj, "spec") | {kind.replicas_field: result}}


def read_job(obj: Object, kind: JobKind) -> Job:
    """The model of a job that `normalised` has returned, strictly checked, in the words of admission.

    Raises:
        InvalidObjectError: fields are wrong; the message has a line for each.
    """
    model = kind.model.from_object(_without_ignored(obj, kind), strict=True)
    errors = first_errors(errors_of(model, kind))
    if errors:
        raise InvalidObjectError(f"{kind.resource.kind} {model.metadata.name}", errors)
    return model


def _without_ignored(obj: Object, kind: JobKind) -> Object:
    """Without members of pod templates that the operator overwrites, which may have any value, and the status."""
    specs = {
        name: replica | {"template": _template(replica["template"])}
        if isinstance(replica, dict) and isinstance(replica.get("template"), dict)
        else replica
        for name, replica in mapping_at(obj, "spec", kind.replicas_field).items()
    }
    rest = {name: value for name, value in obj.items() if name != "status"}
    if not isinstance(rest.get("spec"), dict) or kind.replicas_field not in rest["spec"]:
        return rest
    return rest | {"spec": rest["spec"] | ({kind.replicas_field: specs} if specs else {})}


def _template(template: Object) -> Object:
    result = dict(template)
    if isinstance(template.get("metadata"), dict):
        result["metadata"] = {name: value for name, value in template["metadata"].items() if name in _TEMPLATE_METADATA}
    if isinstance(template.get("spec"), dict):
        result["spec"] = {name: value for name, value in template["spec"].items() if name != "restartPolicy"}
    return result
