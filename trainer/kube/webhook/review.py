"""AdmissionReview: requests and answers of webhooks as JSON (admission.k8s.io/v1).

Strict about what makes a request: what is missing or of the wrong type is named, instead of guessing what was meant.
Unknown fields are left alone, since newer API servers add some.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from trainer.kube.errors import KubeError
from trainer.kube.field_errors import not_supported, required, too_long
from trainer.kube.json_text import decode_json
from trainer.kube.objects import Object
from trainer.kube.resource import Resource
from trainer.kube.webhook.admission import AdmissionRequest, AdmissionResponse, Operation
from trainer.kube.webhook.json_patch import json_patch
from trainer.kube.webhook.texts import cut, shortened

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"

MAX_MESSAGE_BYTES = 16 * 1024
"""For the message of a Status: the errors of a denial with the commas between them, or one text."""
_LONGEST_NAME = 1024
"""Characters, more than any name has: most kinds allow 253."""

_T = TypeVar("_T")
_NULL = msgspec.Raw(b"null")


class ReviewError(KubeError):
    """What was sent is no request for admission; the text says what is wrong with it."""


class _Envelope(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: msgspec.Raw = _NULL


class _Kind(msgspec.Struct):
    version: str
    kind: str
    group: str = ""


class _Plural(msgspec.Struct):
    version: str
    resource: str
    group: str = ""


class _UserInfo(msgspec.Struct):
    username: str = ""
    groups: tuple[str, ...] | None = None


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    operation: str
    kind: _Kind
    resource: _Plural
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: _UserInfo = msgspec.field(default_factory=_UserInfo)
    object: msgspec.Raw = _NULL
    old_object: msgspec.Raw = _NULL
    dry_run: bool | None = None
    options: msgspec.Raw = _NULL


_envelopes = msgspec.json.Decoder(_Envelope)
_requests = msgspec.json.Decoder(_Request)
_objects = msgspec.json.Decoder(dict[str, Any] | None)

_known_resource = lru_cache(64)(Resource)
_OPERATIONS = {operation.value: operation for operation in Operation}
_NEEDS_OBJECT = {Operation.CREATE, Operation.UPDATE}
_NEEDS_OLD_OBJECT = {Operation.UPDATE, Operation.DELETE}


class AdmissionReview:
    """One request for admission, and the way to write the answer to it."""

    def __init__(self, request: AdmissionRequest, raw_object: msgspec.Raw) -> None:
        self.request = request
        self._raw_object = raw_object

    @classmethod
    def decode(cls, body: bytes | bytearray) -> AdmissionReview:
        """Read what the API server has sent.

        Raises:
            ReviewError: it is no AdmissionReview v1 with a complete request.
        """
        raw = _decode(_requests, _request_of(body), "request")
        object_ = _decode(_objects, raw.object, "request.object")
        old_object = _decode(_objects, raw.old_object, "request.oldObject")
        for name, obj in (("object", object_), ("oldObject", old_object)):
            if obj is not None and not isinstance(obj.get("metadata"), dict | None):
                raise ReviewError(f"request.{name}.metadata: Expected `object`, got `{type(obj['metadata']).__name__}`")
        operation = _operation(raw.operation)
        _check_names(raw)
        if not raw.uid:
            raise ReviewError(str(required("request.uid")))
        if object_ is None and operation in _NEEDS_OBJECT:
            raise ReviewError(str(required("request.object", f"{operation} has an object")))
        if old_object is None and operation in _NEEDS_OLD_OBJECT:
            raise ReviewError(str(required("request.oldObject", f"{operation} has an old object")))
        request = AdmissionRequest(
            uid=raw.uid,
            operation=operation,
            resource=_resource(raw),
            subresource=raw.sub_resource,
            name=raw.name,
            namespace=raw.namespace,
            object=object_,
            old_object=old_object,
            dry_run=bool(raw.dry_run),
            username=raw.user_info.username,
            groups=raw.user_info.groups or (),
            options=_decode(_objects, raw.options, "request.options"),
        )
        return cls(request, raw.object)

    def encode(self, response: AdmissionResponse) -> bytes:
        """The answer as JSON.

        Raises:
            TypeError, ValueError, OverflowError: the response holds what is no JSON, or an object where none was sent.
        """
        answer: Object = {"uid": self.request.uid, "allowed": response.allowed}
        if not response.allowed:
            answer["status"] = self._refusal(response)
        elif response.message:
            answer["status"] = {"metadata": {}, "message": response.message, "code": response.status_code}
        if response.allowed and response.object is not None:
            answer |= self._patch(response.object)
        if warnings := shortened(response.warnings):
            answer["warnings"] = warnings
        if response.audit_annotations:
            answer["auditAnnotations"] = dict(response.audit_annotations)
        return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": answer})

    def _refusal(self, response: AdmissionResponse) -> Object:
        details: Object = {"group": self.request.resource.group, "kind": self.request.resource.kind}
        if self.request.name:
            details["name"] = self.request.name
        if response.causes:
            details["causes"] = [cause.to_object() for cause in response.causes]
        return status(response.status_code, response.reason, response.message, details=details)

    def _patch(self, mutated: Object) -> Object:
        # Decoded anew: the handler may have changed the object that it was given.
        original = _objects.decode(self._raw_object)
        if original is None:
            raise ValueError(f"{self.request.operation} has no object that could be changed")
        operations = json_patch(original, mutated)
        if not operations:
            return {}
        patch = base64.b64encode(msgspec.json.encode(operations)).decode()
        return {"patchType": "JSONPatch", "patch": patch}


def status(code: int, reason: str, message: str, *, details: Object | None = None) -> Object:
    """A metav1.Status for a failure; its message, which may repeat what was sent, is cut."""
    failure: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": cut(message, MAX_MESSAGE_BYTES),
        "reason": reason,
        "code": code,
    }
    return failure if details is None else failure | {"details": details}


def _request_of(body: bytes | bytearray) -> msgspec.Raw:
    if not body or body.isspace():
        raise ReviewError("the request has no body: send an AdmissionReview as JSON")
    envelope = _decode(_envelopes, body, "")
    if envelope.kind != KIND:
        raise ReviewError(str(not_supported("kind", envelope.kind, [KIND])))
    if envelope.api_version != API_VERSION:
        problem = not_supported("apiVersion", envelope.api_version, [API_VERSION])
        raise ReviewError(f"{problem}; set admissionReviewVersions of the webhook to [v1]")
    if envelope.request == _NULL:
        raise ReviewError(str(required("request")))
    return envelope.request


def _decode(decoder: msgspec.json.Decoder[_T], raw: bytes | bytearray | msgspec.Raw, where: str) -> _T:
    """Decode a part of the review, whose place in it is `where`."""
    try:
        return decode_json(decoder, raw)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        path = f"{where}{place.rstrip('`')}".removeprefix(".")
        raise ReviewError(f"{path}: {problem}" if path else problem) from error
    except msgspec.DecodeError as error:
        raise ReviewError(f"{where or 'the body'} is not JSON: {error}") from error


def _check_names(raw: _Request) -> None:
    """No API server sends longer names, which would be repeated in answers and logs."""
    names = {
        "uid": raw.uid, "name": raw.name, "namespace": raw.namespace, "subResource": raw.sub_resource,
        "kind.group": raw.kind.group, "kind.version": raw.kind.version, "kind.kind": raw.kind.kind,
        "resource.group": raw.resource.group, "resource.version": raw.resource.version,
        "resource.resource": raw.resource.resource,
    }  # fmt: skip
    for field, name in names.items():
        if len(name) > _LONGEST_NAME:
            raise ReviewError(str(too_long(f"request.{field}", _LONGEST_NAME)))


def _operation(text: str) -> Operation:
    operation = _OPERATIONS.get(text)
    if operation is None:
        raise ReviewError(str(not_supported("request.operation", text, map(str, Operation))))
    return operation


def _resource(raw: _Request) -> Resource:
    # The API server says of a Namespace that it is in the namespace of its name.
    is_namespace = (raw.kind.group, raw.kind.kind) == ("", "Namespace")
    named = raw.resource.group, raw.resource.version, raw.resource.resource, raw.kind.kind
    return _known_resource(*named, namespaced=bool(raw.namespace) and not is_namespace)
