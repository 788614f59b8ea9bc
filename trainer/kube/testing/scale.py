"""The scale subresource: `spec.replicas` and `status.replicas` in the shape that all scalable kinds share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.kube.objects import Object, metadata_of
from trainer.kube.testing import statuses

if TYPE_CHECKING:
    from trainer.kube.resource import Resource


def scale_of(obj: Object) -> Object:
    """The Scale (autoscaling/v1) of an object."""
    metadata = metadata_of(obj)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": (obj.get("spec") or {}).get("replicas", 0)},
        "status": {"replicas": (obj.get("status") or {}).get("replicas", 0)},
    }


def scaled(resource: Resource, obj: Object, scale: Object) -> Object:
    """The object with the replicas, and for a check of conflicts the resource version, of the Scale.

    Raises:
        InvalidError: the Scale names no number of replicas.
    """
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    metadata = metadata_of(obj)
    if not isinstance(replicas, int) or replicas < 0:
        raise statuses.invalid(
            resource, str(metadata.get("name")), "spec.replicas: Invalid value: must be 0 or a positive number"
        )
    version = metadata_of(scale).get("resourceVersion", metadata["resourceVersion"])
    spec = (obj.get("spec") or {}) | {"replicas": replicas}
    return obj | {"metadata": metadata | {"resourceVersion": version}, "spec": spec}
