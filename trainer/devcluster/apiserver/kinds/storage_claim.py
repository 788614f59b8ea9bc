"""PersistentVolumeClaims: directories that the kubelet provides on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.devcluster.apiserver.definitions import ResourceDefinition
from trainer.devcluster.apiserver.kinds.editing import fill, section
from trainer.devcluster.apiserver.strategy import StoreOnlyStrategy
from trainer.kube.field_errors import forbidden, required
from trainer.kube.resource import PERSISTENT_VOLUME_CLAIMS

if TYPE_CHECKING:
    from trainer.devcluster.apiserver.strategy import WriteContext
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

_MUTABLE = ("resources", "volumeName", "volumeAttributesClassName")


class PersistentVolumeClaimStrategy(StoreOnlyStrategy):
    """core/v1 PersistentVolumeClaim."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in the specification."""
        fill(section(obj, "spec"), volumeMode="Filesystem")

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Start it as not bound."""
        obj["status"] = {"phase": "Pending"}

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check the fields that a claim cannot do without."""
        causes = [] if obj["spec"].get("accessModes") else [required("spec.accessModes", "at least 1 access mode")]
        if not ((obj["spec"].get("resources") or {}).get("requests") or {}).get("storage"):
            causes.append(required("spec.resources[storage]"))
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the claim, and that it asks for the same volume."""
        causes = self.validate(obj, context)
        if _fixed(obj) != _fixed(old):
            causes.append(forbidden("spec", "spec is immutable after creation except resources.requests"))
        return causes


def _fixed(obj: Object) -> Object:
    return {field: value for field, value in obj["spec"].items() if field not in _MUTABLE}


PERSISTENT_VOLUME_CLAIM = ResourceDefinition(
    PERSISTENT_VOLUME_CLAIMS,
    PersistentVolumeClaimStrategy(),
    singular="persistentvolumeclaim",
    short_names=("pvc",),
    status_subresource=True,
    generation=False,
)
