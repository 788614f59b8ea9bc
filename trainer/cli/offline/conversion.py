"""Objects of another version, or of the Training Operator, as objects of this one, with what is lost on the way."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.kubeflow_v1.reading import kind_of
from trainer.api.kueue import MANAGER, queued_as_jobset, without_admission
from trainer.api.losses import Losses
from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.console import note, printable
from trainer.cli.documents import DocumentError
from trainer.cli.manifests import runtimes
from trainer.conversion import convert
from trainer.conversion.encoding import encoded
from trainer.kube.objects import Object, mapping_at, metadata_of, name_of, objects_in
from trainer.kubernetes_yaml import dump, join
from trainer.v1alpha1.decode import decode, is_decodable
from trainer.v1alpha1.encode import encode, is_encodable

if TYPE_CHECKING:
    from trainer.api.kubeflow_v1.kinds import JobKind
    from trainer.kube.field_errors import FieldError
    from trainer.v1alpha1.discovery import Version

_SERVER_SET = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionTimestamp"}
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class Converted:
    """What one object has become."""

    place: str
    """Where it was read, such as `job.yaml, document 2`."""
    objects: tuple[Object, ...]
    """A runtime comes before the TrainJob that refers to it."""
    losses: tuple[FieldError, ...] = ()
    """What is lost, with what to do instead; fields are paths in the object that was converted."""

    def to_yaml(self) -> str:
        """The objects as YAML documents, the first after a comment for each loss."""
        comments = "".join(f"# {printable(str(loss))}\n" for loss in self.losses)
        return comments + join(dump(obj) for obj in self.objects)

    def report(self) -> None:
        """Print each loss to standard error."""
        for loss in self.losses:
            note(f"{self.place}: {loss}", kind="warning")


def converted(obj: Object, place: str, version: Version) -> Converted:
    """An object for a cluster that serves a version; one of another kind, or of this version, is as it was.

    Raises:
        DocumentError: it is of a kind of the Training or MPI Operator, which would have refused it.
    """
    kind = kind_of(obj)
    if kind is not None:
        return _from_operator(_as_written(obj), kind, place, version)
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


def _from_operator(obj: Object, kind: JobKind, place: str, version: Version) -> Converted:
    try:
        result = convert(obj, kind, version=version, runtimes=shipped_runtimes(version))
    except InvalidObjectError as error:
        subject = f"{kind.resource.kind} {name_of(obj)}" if isinstance(metadata_of(obj), dict) else kind.resource.kind
        raise DocumentError(place, *error.errors, subject=subject) from None
    result = encoded(result, version)
    objects = [each for each in (result.runtime, result.train_job) if each is not None]
    return Converted(place, tuple(objects), result.findings)


@functools.cache
def shipped_runtimes(version: Version) -> tuple[Object, ...]:
    """The runtimes that we ship for a version, in the shape of v2alpha1."""
    return tuple(decode(each).object if version == "v1alpha1" else each for each in runtimes(version))


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
    """An object without what Kueue has written into it at its admission, but for node selectors and tolerations."""
    spec, kind = mapping_at(obj, "spec"), kind_of(obj)
    if kind is not None:
        roles = mapping_at(spec, kind.replicas_field)
        cleaned = {
            name: role | {"template": without_admission(role["template"])}
            for name, role in roles.items()
            if isinstance(mapping_at(roles, name).get("template"), dict)
        }
        return obj | {"spec": spec | {kind.replicas_field: roles | cleaned}} if cleaned else obj
    patches = objects_in(spec.get("runtimePatches"))
    if kept := [patch for patch in patches if patch.get("manager") != MANAGER]:
        return obj | {"spec": spec | {"runtimePatches": kept}}
    return obj | {"spec": {name: value for name, value in spec.items() if name != "runtimePatches"}} if patches else obj
