"""PersistentVolumeClaims: directories that the kubelet provides on demand."""

from __future__ import annotations

from typing import Any, Final

from trainer.kube.field_errors import FieldError, forbidden, invalid, not_supported, required
from trainer.kube.objects import Object
from trainer.kube.quantity import parse_quantity
from trainer.kube.resource import PERSISTENT_VOLUME_CLAIMS
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import Strategy, WriteContext
from trainer_devcluster.apiserver.kinds.fields import fill, section, validate_quantity

_MUTABLE: Final = ("resources", "volumeName", "volumeAttributesClassName")
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_IMMUTABLE_TEXT: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


class PersistentVolumeClaimStrategy(Strategy):
    """core/v1 PersistentVolumeClaim."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in the specification."""
        fill(section(obj, "spec"), volumeMode="Filesystem")
        section(obj["spec"], "resources")

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Start it as not bound."""
        obj["status"] = {"phase": "Pending"}

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check the fields that a claim cannot do without, and those that choose its volume."""
        spec = obj["spec"]
        causes = validate_access_modes(spec.get("accessModes"), "spec.accessModes")
        amount = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
        if amount is None:
            causes.append(required("spec.resources[storage]"))
        else:
            wrong = validate_quantity("spec.resources[storage]", amount)
            if not wrong and parse_quantity(amount) == 0:
                wrong = [invalid("spec.resources[storage]", amount, "must be greater than zero")]
            causes += wrong
        if spec["volumeMode"] not in _VOLUME_MODES:
            causes.append(not_supported("spec.volumeMode", spec["volumeMode"], _VOLUME_MODES))
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check the claim, and that it asks for the same volume."""
        if context.subresource == "status":
            return []
        causes = self.validate(obj, context)
        if _fixed(obj) != _fixed(old):
            causes.append(forbidden("spec", _IMMUTABLE_TEXT))
        elif not causes and _storage(obj) < _storage(old):
            causes.append(forbidden("spec.resources.requests.storage", "field can not be less than previous value"))
        return causes


def validate_access_modes(modes: Any, path: str) -> list[FieldError]:
    """What is wrong with the ways in which a volume is to be mounted."""
    if not modes:
        return [required(path, "at least 1 access mode is required")]
    causes = [not_supported(path, mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        causes.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return causes


def _storage(obj: Object) -> Any:
    return parse_quantity(obj["spec"]["resources"]["requests"]["storage"])


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
