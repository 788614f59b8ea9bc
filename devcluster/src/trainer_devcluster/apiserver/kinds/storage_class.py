"""StorageClasses and PersistentVolumes: stored; the kubelet gives every claim a directory, whatever its class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.kube.field_errors import forbidden, invalid, not_supported, required
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceDefinition
from trainer_devcluster.apiserver.definitions.strategy import StoreOnlyStrategy
from trainer_devcluster.apiserver.kinds.amounts import validate_quantity
from trainer_devcluster.apiserver.kinds.causes import unchanged
from trainer_devcluster.apiserver.kinds.editing import fill, section
from trainer_devcluster.apiserver.kinds.storage_claim import validate_access_modes
from trainer_devcluster.apiserver.objects.names import qualified_name_problems

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.definitions.strategy import WriteContext

_CLASS_POLICIES: Final = ("Delete", "Retain")
_VOLUME_POLICIES: Final = ("Delete", "Recycle", "Retain")
_BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")
_NO_SOURCE: Final = frozenset(
    {
        "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
        "storageClassName", "volumeAttributesClassName", "volumeMode",
    }
)  # fmt: skip
"""Fields of a volume's specification that do not say where its data is."""


class StorageClassStrategy(StoreOnlyStrategy):
    """storage.k8s.io/v1 StorageClass."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002 - the protocol's signature
        """Fill in the policies."""
        fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check provisioner and policies."""
        provisioner = obj.get("provisioner") or ""
        if not provisioner:
            causes = [required("provisioner", provisioner)]
        else:
            problems = qualified_name_problems(provisioner.lower())
            causes = [invalid("provisioner", provisioner, problem) for problem in problems]
        if obj["reclaimPolicy"] not in _CLASS_POLICIES:
            causes.append(not_supported("reclaimPolicy", obj["reclaimPolicy"], _CLASS_POLICIES))
        if obj["volumeBindingMode"] not in _BINDING_MODES:
            causes.append(not_supported("volumeBindingMode", obj["volumeBindingMode"], _BINDING_MODES))
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check it, and that volumes are made as before."""
        causes = self.validate(obj, context)
        causes += [
            forbidden(name, f"updates to {name} are forbidden.")
            for name in ("parameters", "provisioner", "reclaimPolicy")
            if obj.get(name) != old.get(name)
        ]
        return causes + unchanged("volumeBindingMode", obj["volumeBindingMode"], old["volumeBindingMode"])


class PersistentVolumeStrategy(StoreOnlyStrategy):
    """core/v1 PersistentVolume."""

    def default(self, obj: Object, context: WriteContext) -> None:  # noqa: ARG002
        """Fill in policy and mode."""
        fill(section(obj, "spec"), persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        """Start it as not bound, which it stays."""
        obj["status"] = {"phase": "Pending"}
        context.warn("v1 PersistentVolume is only stored: claims of the dev cluster get directories of their own")

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:  # noqa: ARG002
        """Check capacity, access modes and source."""
        spec = obj["spec"]
        causes = validate_access_modes(spec.get("accessModes"), "spec.accessModes")
        capacity = spec.get("capacity") or {}
        if not capacity:
            causes.append(required("spec.capacity"))
        elif list(capacity) != ["storage"]:
            causes.append(not_supported("spec.capacity", capacity, ["storage"]))
        for name, amount in capacity.items():
            causes += validate_quantity(f"spec.capacity[{name}]", amount)
        sources = sorted(name for name in spec if name not in _NO_SOURCE)
        if not sources:
            causes.append(required("spec", "must specify a volume type"))
        causes += [forbidden(f"spec.{name}", "may not specify more than 1 volume type") for name in sources[1:]]
        policy = spec["persistentVolumeReclaimPolicy"]
        if policy not in _VOLUME_POLICIES:
            causes.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, _VOLUME_POLICIES))
        return causes

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        """Check it, and that its data stays where it is."""
        if context.subresource == "status":
            return []
        new, before = ({k: v for k, v in o["spec"].items() if k not in _NO_SOURCE} for o in (obj, old))
        causes = self.validate(obj, context)
        if new != before:
            detail = "spec.persistentvolumesource is immutable after creation"
            causes.append(forbidden("spec.persistentvolumesource", detail))
        return causes + unchanged("spec.volumeMode", obj["spec"]["volumeMode"], old["spec"]["volumeMode"])


STORAGE_CLASS = ResourceDefinition(
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False),
    StorageClassStrategy(),
    singular="storageclass",
    short_names=("sc",),
    generation=False,
)
PERSISTENT_VOLUME = ResourceDefinition(
    Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False),
    PersistentVolumeStrategy(),
    singular="persistentvolume",
    short_names=("pv",),
    status_subresource=True,
    generation=False,
)
