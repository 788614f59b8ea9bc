"""The failures that an API server answers with, as the typed errors that a client makes of them.

Reasons and their codes: Kubernetes API conventions, "Response Status Kind".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trainer.kube.errors import ApiError, error_from_status
from trainer.kube.field_errors import FieldError
from trainer.kube.objects import Object
from trainer.kube.resource import Resource

STALE_OBJECT = "the object has been modified; please apply your changes to the latest version and try again"
INITIAL_DELAY_SECONDS = 1


def failure(
    code: int, reason: str, message: str, details: Object | None = None, *, metadata: Object | None = None
) -> ApiError:
    """The typed error for a Status with these fields.

    The reason, such as `NotFound`, decides the type of the error; without one the code does. The metadata hold the
    continue token of an expired list.
    """
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": metadata or {}, "status": "Failure"}
    optional = {"message": message or None, "reason": reason or None, "details": details}
    status |= {name: value for name, value in optional.items() if value is not None}
    return error_from_status(code, status | {"code": code})


def bad_request(message: str) -> ApiError:
    """400: the request cannot be understood."""
    return failure(400, "BadRequest", message)


def not_found(resource: Resource, name: str) -> ApiError:
    """404: no object of this name."""
    return failure(404, "NotFound", f'{resource.qualified_name} "{name}" not found', details_of(resource, name))


def no_such_resource(message: str = "the server could not find the requested resource") -> ApiError:
    """404: no resource or path of this name."""
    return failure(404, "NotFound", message, {})


def already_exists(resource: Resource, name: str) -> ApiError:
    """409 on create: the name is taken."""
    return failure(
        409, "AlreadyExists", f'{resource.qualified_name} "{name}" already exists', details_of(resource, name)
    )


def conflict(resource: Resource, name: str, message: str = STALE_OBJECT) -> ApiError:
    """409: a precondition (resource version or uid) does not hold."""
    text = f'Operation cannot be fulfilled on {resource.qualified_name} "{name}": {message}'
    return failure(409, "Conflict", text, details_of(resource, name))


def apply_conflict(causes: Sequence[FieldError], message: str) -> ApiError:
    """409: a server-side apply touches fields that other managers own."""
    return failure(409, "Conflict", message, {"causes": [cause.to_object() for cause in causes]})


def expired(message: str = "too old resource version", *, continue_token: str = "") -> ApiError:
    """410: a resource version or continue token older than the history.

    With the continue token a list can go on inconsistently.
    """
    return failure(410, "Expired", message, metadata={"continue": continue_token} if continue_token else {})


def request_entity_too_large(message: str) -> ApiError:
    """413: the body, or a patch in it, is too large."""
    return failure(413, "RequestEntityTooLarge", message)


def unsupported_media_type(accepted: Iterable[str]) -> ApiError:
    """415: the body is in a format that the resource does not read."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return failure(415, "UnsupportedMediaType", message)


def invalid(kind: str, group: str, name: str, causes: Sequence[FieldError]) -> ApiError:
    """422: fields are wrong; every one is listed.

    The kind may be that of options; there is at least one cause.
    """
    texts = list(dict.fromkeys(str(cause) for cause in causes))  # each once, as Go's aggregates print them
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: Object = {field: value for field, value in (("name", name), ("group", group), ("kind", kind)) if value}
    details["causes"] = [cause.to_object() for cause in causes]
    return failure(422, "Invalid", f'{f"{kind}.{group}" if group else kind} "{name}" is invalid: {listed}', details)


def unprocessable() -> ApiError:
    """422: a patch operation that fails on this object, such as a JSON patch `test`."""
    return failure(422, "Invalid", "the server rejected our request due to an error in our request", {})


def too_many_requests(retry_after: int | None = 1) -> ApiError:
    """429: come back later."""
    return failure(429, "TooManyRequests", "too many requests, try again later", _retry_after(retry_after))


def internal_error(message: str = "scripted by the test") -> ApiError:
    """500: the server failed."""
    return failure(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})


def unavailable(retry_after: int | None = None) -> ApiError:
    """503: the server is starting or stopping."""
    message = "the server is currently unable to handle the request"
    return failure(503, "ServiceUnavailable", message, _retry_after(retry_after))


def timeout(message: str = "request did not complete within the allotted timeout") -> ApiError:
    """504: the request took too long."""
    return failure(504, "Timeout", f"Timeout: {message}", {})


def resource_version_too_large(requested: int, current: int) -> ApiError:
    """504: a resource version that the server has not reached."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    details: Object = {"causes": causes, "retryAfterSeconds": INITIAL_DELAY_SECONDS}
    message = f"Timeout: Too large resource version: {requested}, current: {current}"
    return failure(504, "Timeout", message, details)


def details_of(resource: Resource, name: str) -> Object:
    """`details` of a failure that is about one object."""
    details = {"name": name, "group": resource.group}
    return {field: value for field, value in details.items() if value} | {"kind": resource.plural}


def _retry_after(seconds: int | None) -> Object | None:
    return None if seconds is None else {"retryAfterSeconds": seconds}
