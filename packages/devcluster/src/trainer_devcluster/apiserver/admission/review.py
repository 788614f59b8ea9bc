"""Reviews: the documents that go to a webhook and come back (AdmissionReview, admission.k8s.io)."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import msgspec

from trainer.kube.errors import ApiError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.admission.attributes import Attributes, GroupVersionKind, RuleTarget
from trainer_kube_testing.api_semantics import statuses

REVIEW_VERSION: Final = "v1"
"""The version of AdmissionReview that is spoken."""
_GROUP: Final = "admission.k8s.io"
_KIND: Final = "AdmissionReview"
_JSON_PATCH: Final = "JSONPatch"


class ResponseError(Exception):
    """A webhook has answered with something that is no proper AdmissionReview."""


@dataclass(frozen=True, slots=True)
class WebhookDecision:
    """The decision of a webhook."""

    allowed: bool
    result: Object
    """The metav1.Status that explains a denial; {} when there is none."""
    patch: bytes = b""
    """A JSON patch for the object; only mutating webhooks may send one."""
    warnings: tuple[str, ...] = ()


class _Cause(msgspec.Struct):
    reason: str | None = None
    message: str | None = None
    field: str | None = None


class _Details(msgspec.Struct, rename="camel"):
    name: str | None = None
    group: str | None = None
    kind: str | None = None
    uid: str | None = None
    causes: list[_Cause] | None = None
    retry_after_seconds: int | None = None


class _Result(msgspec.Struct):
    """The members of a metav1.Status that reach clients."""

    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: _Details | None = None


def request_of(attributes: Attributes, endpoint: RuleTarget, uid: str) -> Object:
    """The `request` of a review.

    Args:
        attributes: the request that is reviewed; its objects are in the version of `endpoint`.
        endpoint: the request as the rules of the webhook name it.
        uid: tells calls apart.
    """
    original, user = attributes.endpoint, attributes.user
    request: Object = {"uid": uid, "kind": _kind(endpoint.kind), "resource": _resource(endpoint.resource)}
    if endpoint.subresource:
        request["subResource"] = endpoint.subresource
    request |= {"requestKind": _kind(original.kind), "requestResource": _resource(original.resource)}
    if original.subresource:
        request["requestSubResource"] = original.subresource
    request |= {name: value for name in ("name", "namespace") if (value := getattr(attributes, name))}
    return request | {
        "operation": endpoint.operation.value,
        "userInfo": user.info(),
        "object": attributes.object,
        "oldObject": attributes.old,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }


def encode(request: Object) -> bytes:
    """The body that is posted to a webhook."""
    return msgspec.json.encode({"kind": _KIND, "apiVersion": f"{_GROUP}/{REVIEW_VERSION}", "request": request})


def decode(content: bytes, uid: str, *, mutating: bool) -> WebhookDecision:
    """Read a webhook's answer.

    Args:
        content: the body of the answer.
        uid: uid that was sent.
        mutating: whether the webhook may send a patch.

    Raises:
        ResponseError: it is no answer to that request.
    """
    try:
        review = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ResponseError(f"couldn't get version/kind; json parse error: {error}") from error
    except RecursionError as error:
        raise ResponseError("couldn't get version/kind; json parse error: exceeded max depth") from error
    if not isinstance(review, dict):
        raise ResponseError("couldn't get version/kind; json parse error: the answer must be an object")
    response = review.get("response")
    if not isinstance(response, dict):
        raise ResponseError("webhook response was absent")
    if response.get("uid") != uid:
        raise ResponseError(f'expected response.uid="{uid}", got "{response.get("uid") or ""}"')
    found = _described(review)
    expected = f"{_GROUP}/{REVIEW_VERSION}, Kind={_KIND}"
    if found != expected:
        raise ResponseError(f"expected webhook response of {expected}, got {found}")
    return WebhookDecision(
        allowed=_typed(response, "allowed", bool, default=False),
        result=_result(response),
        patch=_patch(response) if mutating else _no_patch(response),
        warnings=tuple(text for text in _typed(response, "warnings", list, default=[]) if isinstance(text, str)),
    )


def denial(webhook: str, result: Object) -> ApiError:
    """The answer to a client whose request a webhook does not allow; its status comes from the webhook."""
    message, reason = str(result.get("message") or ""), str(result.get("reason") or "")
    text = f'admission webhook "{webhook}" denied the request'
    explanation = message or reason
    text += f": {explanation}" if explanation else " without explanation"
    code = result.get("code")
    if not isinstance(code, int) or isinstance(code, bool) or not HTTPStatus.BAD_REQUEST <= code < 600:
        code = HTTPStatus.BAD_REQUEST.value
    details = result.get("details")
    return statuses.failure(code, reason, text, details if isinstance(details, dict) else None)


def _kind(kind: GroupVersionKind) -> Object:
    return kind._asdict()


def _resource(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _described(review: Object) -> str:
    group, slash, version = str(review.get("apiVersion") or "").partition("/")
    return (
        f"{group}/{version}, Kind={review.get('kind') or ''}" if slash else f"/{group}, Kind={review.get('kind') or ''}"
    )


def _typed(response: Object, name: str, wanted: type, *, default: Any) -> Any:
    value = response.get(name)
    if value is None:
        return default
    if not isinstance(value, wanted):
        raise ResponseError(f"response.{name} must be {wanted.__name__}, not {type(value).__name__}")
    return value


def _result(response: Object) -> Object:
    result: Object = _typed(response, "status", dict, default={})
    try:
        msgspec.convert(result, _Result)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        raise ResponseError(f"response.status{place.rstrip('`')}: {problem}") from error
    return result


def _patch(response: Object) -> bytes:
    encoded, kind = _typed(response, "patch", str, default=""), response.get("patchType")
    if encoded and kind is None:
        raise ResponseError("webhook returned response.patch but not response.patchType")
    if not encoded and kind is not None:
        raise ResponseError("webhook returned response.patchType but not response.patch")
    if kind not in (None, _JSON_PATCH):
        raise ResponseError(f'webhook returned invalid response.patchType of "{kind}"')
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise ResponseError(f"response.patch is not base64: {error}") from error


def _no_patch(response: Object) -> bytes:
    for name in ("patch", "patchType"):
        if response.get(name):
            raise ResponseError(f"validating webhook may not return response.{name}")
    return b""
