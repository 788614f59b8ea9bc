"""`trainer convert`: objects of one version of the API as objects of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from trainer.api.v1alpha1.decode import Decoded, decode, is_decodable
from trainer.api.v1alpha1.encode import Encoded, encode, is_encodable
from trainer.cli.console import complain, note, output
from trainer.cli.documents import DocumentError, UnknownKindError, checked, items_in, valid
from trainer.cli.errors import ExitCode
from trainer.cli.offline.workspace import Files  # noqa: TC001 - typer reads annotations
from trainer.cli.options import ApiVersion  # noqa: TC001 - typer reads annotations
from trainer.kube.objects import Object, annotations_of, metadata_of
from trainer.kubernetes_yaml import dump, join

if TYPE_CHECKING:
    from trainer.api.v1alpha1.discovery import Version

_SERVER_SET = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionTimestamp"}
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def convert(*, file: Files, api_version: ApiVersion = "v2alpha1") -> None:
    """Print TrainJobs and runtimes of the other version of the API as this one; other objects are printed as they are.

    Each member without a counterpart is a line on standard error, and so is each mistake in the result.

    Exit code: 0 when all objects are valid, 1 when one is not, 2 when a file cannot be read.
    """
    texts: list[str] = []
    errors: list[DocumentError] = []
    for content, place in (item for source in file for item in valid(items_in(source))):
        obj = converted(content, place, api_version)
        found = checked(obj, place)
        if isinstance(found, DocumentError) and not isinstance(found, UnknownKindError):
            errors.append(found)
        texts.append(dump(obj))
    output().file.write(join(texts))
    for error in errors:
        complain(str(error))
    if errors:
        raise typer.Exit(ExitCode.FAILED)


def converted(obj: Object, place: str, version: Version) -> Object:
    """A TrainJob or runtime of the other version as this one, anything else as it is; says what has no counterpart."""
    if version == "v2alpha1" and is_decodable(obj):
        result: Decoded | Encoded = decode(_as_written(obj))
    elif version == "v1alpha1" and is_encodable(obj):
        result = encode(_as_written(obj))
    else:
        return obj
    for loss in result.losses:
        note(f"{place}: {loss}", kind="warning")
    return result.object


def _as_written(obj: Object) -> Object:
    """An object as its author wrote it, if it was exported from a cluster, where kubectl could not create it again."""
    if not isinstance(obj.get("metadata"), dict):
        return obj
    metadata = {name: value for name, value in metadata_of(obj).items() if name not in _SERVER_SET}
    if _LAST_APPLIED in annotations_of(obj):
        annotations = {name: value for name, value in annotations_of(obj).items() if name != _LAST_APPLIED}
        metadata = {name: value for name, value in metadata.items() if name != "annotations"}
        metadata |= {"annotations": annotations} if annotations else {}
    return obj | {"metadata": metadata}
