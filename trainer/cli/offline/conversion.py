"""Objects of another version, of the Training Operator or of Katib as objects of this one, with what is lost."""

from __future__ import annotations

from trainer.api.kubeflow_v1 import becomes
from trainer.api.kueue import MANAGER, queued_as_jobset
from trainer.api.losses import Losses
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.offline.converted import Converted
from trainer.cli.offline.v1_jobs import installed_v1_jobs
from trainer.kube.objects import Object, mapping_at, metadata_of, objects_in
from trainer.v1alpha1.decode import decode, is_decodable
from trainer.v1alpha1.discovery import Version
from trainer.v1alpha1.encode import encode, is_encodable

_SERVER_SET = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionTimestamp"}
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def converted(obj: Object, place: str, version: Version) -> Converted:
    """An object for a cluster that serves a version; one of another kind, or of this version, is as it was.

    Raises:
        CommandError: it is a job of the Training or MPI Operator, or an Experiment, that these or Katib would have
            refused or that cannot be converted, or no installed distribution converts its kind.
    """
    if becomes(obj):
        return installed_v1_jobs().converted(_as_written(obj), place, version)
    if version == "v2alpha1" and is_decodable(obj):
        decoded = decode(_as_written(obj))
        if decoded.object["kind"] != TRAIN_JOBS.kind:
            return Converted(place, (decoded.object,), decoded.losses)
        losses = Losses([*decoded.losses])
        train_job = queued_as_jobset(decoded.object, losses)
        return Converted(place, (train_job,), tuple(losses.found))
    if version == "v1alpha1" and is_encodable(obj):
        result = encode(_as_written(obj))
        return Converted(place, (result.object,), result.losses)
    return Converted(place, (obj,))


def _as_written(obj: Object) -> Object:
    """An object as its author wrote it, if it was exported from a cluster, where kubectl could not create it again."""
    if not isinstance(obj.get("metadata"), dict):
        return obj
    metadata = {name: value for name, value in metadata_of(obj).items() if name not in _SERVER_SET}
    written = mapping_at(metadata, "annotations")
    if _LAST_APPLIED in written:
        annotations = {name: value for name, value in written.items() if name != _LAST_APPLIED}
        metadata = {name: value for name, value in metadata.items() if name != "annotations"}
        metadata |= {"annotations": annotations} if annotations else {}
    return _without_queueing(obj | {"metadata": metadata})


def _without_queueing(obj: Object) -> Object:
    """An object without the patches that Kueue has written into it at its admission."""
    spec = mapping_at(obj, "spec")
    patches = objects_in(spec.get("runtimePatches"))
    if kept := [patch for patch in patches if patch.get("manager") != MANAGER]:
        return obj | {"spec": spec | {"runtimePatches": kept}}
    return obj | {"spec": {name: value for name, value in spec.items() if name != "runtimePatches"}} if patches else obj
