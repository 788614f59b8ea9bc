"""Reviews: the documents that go to a conversion webhook and come back (ConversionReview, apiextensions.k8s.io/v1).

Source: Kubernetes documentation, "Versions in CustomResourceDefinitions"; error texts are those of the API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from trainer.kube.objects import metadata_of, name_of, namespace_of, uid_of
from trainer_devcluster.apiserver.objects.metadata import validate_mutable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object

REVIEW_VERSIONS: Final = ("v1", "v1beta1")
"""Versions of ConversionReview that are spoken, the preferred one first."""
_GROUP: Final = "apiextensions.k8s.io"
_KIND: Final = "ConversionReview"
_CHANGEABLE: Final = ("labels", "annotations")
_GO_TYPES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "bool"), (str, "string"), (int, "int64"), (float, "float64"), (list, "[]interface {}"),
    (dict, "map[string]interface {}"),
)  # fmt: skip


class ReviewError(Exception):
    """A webhook has answered with something that is of no use; the text says what."""


def encode(objects: Sequence[Object], api_version: str, review_version: str, uid: str) -> bytes:
    """The body that is posted to a webhook.

    Args:
        objects: what is to be converted.
        api_version: group and version that is wanted.
        review_version: of the review.
        uid: tells calls apart.
    """
    request = {"uid": uid, "desiredAPIVersion": api_version, "objects": objects}
    return msgspec.json.encode({"kind": _KIND, "apiVersion": f"{_GROUP}/{review_version}", "request": request})


def decode(content: bytes, review_version: str, uid: str) -> list[Any]:
    """The `convertedObjects` of an answer, whatever they are.

    Raises:
        ReviewError: it is no answer to that request, or the webhook says that it has failed.
    """
    review = _decoded(content)
    expected, found = f"{_GROUP}/{review_version}, Kind={_KIND}", described(review)
    if found != expected:
        raise ReviewError(f"expected webhook response of {expected}, got {found}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise ReviewError("no response provided")
    answered = str(response.get("uid") or "")
    if review_version == "v1" and answered != uid:
        raise ReviewError(f'expected response.uid="{uid}", got "{answered}"')
    result = response.get("result")
    result = result if isinstance(result, dict) else {}
    if result.get("status") != "Success":
        message = str(result.get("message") or "")
        raise ReviewError(message or f"response.result.status was '{result.get('status') or ''}', not 'Success'")
    converted = response.get("convertedObjects")
    return converted if isinstance(converted, list) else []


def described(obj: Object) -> str:
    """Group, version and kind of an object as messages show them: `example.com/v1, Kind=Gadget`."""
    api_version = str(obj.get("apiVersion") or "")
    return f"{api_version if '/' in api_version else f'/{api_version}'}, Kind={obj.get('kind') or ''}"


def check_identity(original: Object, converted: Object) -> None:
    """Make sure that two versions are of the same object.

    Raises:
        ReviewError: they differ in kind, name, namespace or uid.
    """
    pairs = (
        ("kind", original.get("kind"), converted.get("kind")),
        ("name", name_of(original), _text(converted, "name")),
        ("namespace", namespace_of(original) or "", _text(converted, "namespace")),
        ("UID", uid_of(original), _text(converted, "uid")),
    )
    for what, before, after in pairs:
        if before != after:
            raise ReviewError(f"must have the same {what}: {before} != {after}")


def with_metadata_of(original: Object, converted: Object) -> Object:
    """The converted object with the metadata of the original, except for labels and annotations.

    Raises:
        ReviewError: what the webhook has made of the metadata is malformed.
    """
    if "metadata" not in converted:
        raise ReviewError("missing metadata in converted object")
    changed = converted["metadata"]
    if not isinstance(changed, dict):
        raise ReviewError(f"invalid metadata of type {go_type(changed)} in converted object")
    kept = dict(metadata_of(original))
    for field in _CHANGEABLE:
        before, after = kept.pop(field, None), changed.get(field)
        if after is None:
            continue
        if not isinstance(after, dict):
            raise ReviewError(f"invalid metadata.{field} of type {go_type(after)} in converted object")
        for key, value in after.items():
            if not isinstance(value, str):
                text = f"metadata.{field}[{key}] must be a string, but is {go_type(value)} in converted object"
                raise ReviewError(text)
        if after != before:
            _raise_first(validate_mutable({field: after}))
        kept[field] = after
    return {**converted, "metadata": kept}


def go_type(value: object) -> str:
    """The type of a JSON value as messages name it."""
    return next((name for kind, name in _GO_TYPES if isinstance(value, kind)), "<nil>")


def _text(obj: Object, field: str) -> str:
    metadata = obj.get("metadata")
    return str(metadata.get(field) or "") if isinstance(metadata, dict) else ""


def _raise_first(causes: Sequence[FieldError]) -> None:
    if len(causes) == 1:
        raise ReviewError(str(causes[0]))
    if causes:
        raise ReviewError(f"[{', '.join(map(str, causes))}]")


def _decoded(content: bytes) -> Object:
    try:
        review = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReviewError(f"couldn't get version/kind; json parse error: {error}") from error
    except RecursionError as error:
        raise ReviewError("couldn't get version/kind; json parse error: exceeded max depth") from error
    if not isinstance(review, dict):
        raise ReviewError("couldn't get version/kind; json parse error: the answer must be an object")
    return review
