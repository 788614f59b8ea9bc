"""The scale subresource of custom resources: replicas in the shape that autoscalers and `kubectl scale` know."""

from __future__ import annotations

from typing import Any

from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object, name_of, resource_version_of, uid_of
from trainer.kube.selectors import LabelSelector
from trainer_devcluster.apiserver.definitions.resource_definition import ScalePaths
from trainer_devcluster.apiserver.objects.decoding import read_as
from trainer_kube_testing.api_semantics import statuses

_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


_UNSET = -(2**31)
"""Stands for replicas that the object does not have, in the Scale that a patch is applied to."""


def scale_of(obj: Object, paths: ScalePaths) -> Object:
    """The autoscaling/v1 Scale of an object; it wants no replicas where the object says nothing."""
    metadata = {name: obj["metadata"][name] for name in _METADATA if name in obj["metadata"]}
    scale_status: Object = {"replicas": _value(obj, paths.status_replicas_path) or 0}
    if paths.label_selector_path and (selector := _value(obj, paths.label_selector_path)):
        # Built-in kinds have a selector object where custom resources say it as text.
        scale_status["selector"] = str(LabelSelector.from_object(selector) if isinstance(selector, dict) else selector)
    spec = {"replicas": _value(obj, paths.spec_replicas_path) or 0}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": scale_status}


def read_scale(obj: Object, paths: ScalePaths) -> Object:
    """The Scale that a GET shows.

    Raises:
        ApiError: 500, the object does not say how many replicas it wants; autoscalers need that number.
    """
    if _value(obj, paths.spec_replicas_path) is None:
        raise statuses.internal_error(f'the spec replicas field "{paths.spec_replicas_path}" does not exist')
    return scale_of(obj, paths)


def scale_to_change(obj: Object, paths: ScalePaths) -> Object:
    """The Scale that a PATCH changes: it tells whether the object says how many replicas it wants."""
    scale = scale_of(obj, paths)
    if _value(obj, paths.spec_replicas_path) is None:
        scale["spec"]["replicas"] = _UNSET
    return scale


def scaled(obj: Object, scale: Object, paths: ScalePaths) -> Object:
    """The object, changed in place to have the replicas of a Scale; the fields on the way to them are made.

    Raises:
        ApiError: 400 or 422, it is not a proper Scale; 409 is left to the preconditions that are copied over.
    """
    replicas = (read_as("autoscaling/v1", "Scale", scale).get("spec") or {}).get("replicas", 0)
    if replicas == _UNSET:
        raise statuses.bad_request(f'the spec replicas field "{paths.spec_replicas_path}" cannot be empty')
    if replicas < 0:
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        cause = FieldError("spec.replicas", message)
        raise statuses.invalid("Scale", "autoscaling", name_of(obj), [cause])
    *parents, last = _names(paths.spec_replicas_path)
    holder = obj
    for name in parents:
        holder = holder.setdefault(name, {})
    holder[last] = replicas
    obj["metadata"]["uid"] = uid_of(scale) or uid_of(obj)
    obj["metadata"]["resourceVersion"] = resource_version_of(scale) or resource_version_of(obj)
    return obj


def _value(obj: Object, path: str) -> Any:
    value: Any = obj
    for name in _names(path):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _names(path: str) -> list[str]:
    return [name for name in path.split(".") if name]
