"""`trainer convert`: objects of released Kubeflow Trainer as objects of this project."""

from __future__ import annotations

import typer

from trainer.api.v1alpha1.decode import Decoded, decode, is_decodable
from trainer.cli.console import complain, note, output
from trainer.cli.documents import DocumentError, UnknownKindError, checked, items_in
from trainer.cli.errors import ExitCode
from trainer.cli.offline.workspace import Files  # noqa: TC001 - typer reads annotations
from trainer.kube.objects import Object, annotations_of, metadata_of
from trainer.kubernetes_yaml import dump, join

_SERVER_SET = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionTimestamp"}
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def convert(*, file: Files) -> None:
    """Print TrainJobs and runtimes of trainer.kubeflow.org/v1alpha1 as v2alpha1; other objects are printed as they are.

    Each member without a counterpart is a line on standard error, and so is each mistake in the result.

    Exit code: 0 when all objects are valid, 1 when one is not, 2 when a file cannot be read.
    """
    texts: list[str] = []
    errors: list[DocumentError] = []
    for item in (item for source in file for item in items_in(source)):
        if isinstance(item, DocumentError):
            raise item
        content, place = item
        decoded = decode(_as_written(content)) if is_decodable(content) else Decoded(content)
        found = checked(decoded.object, place)
        if isinstance(found, DocumentError) and not isinstance(found, UnknownKindError):
            errors.append(found)
        for loss in decoded.losses:
            note(f"{place}: {loss}", kind="warning")
        texts.append(dump(decoded.object))
    output().file.write(join(texts))
    for error in errors:
        complain(str(error))
    if errors:
        raise typer.Exit(ExitCode.FAILED)


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
