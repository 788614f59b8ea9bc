"""The failures that an API server answers with, as the typed errors that a client makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.kube.errors import ApiError, error_from_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.kube.resource import Resource


def failure(
    code: int,
    reason: str,
    message: str,
    *,
    resource: Resource | None = None,
    name: str = "",
    retry_after: int | None = None,
    causes: Sequence[str] = (),
) -> ApiError:
    """The typed error for a Status with these fields.

    Args:
        code: HTTP status.
        reason: such as `NotFound`; it decides the type of the error.
        message: for people.
        resource: what the request was about, for `details`.
        name: the object that it was about, for `details`.
        retry_after: seconds after which the client should come back; default: the server does not say.
        causes: reason of each entry of `details.causes`.
    """
    details: dict[str, Any] = {"name": name} if name else {}
    if resource is not None:
        details |= {"group": resource.group, "kind": resource.plural}
    if causes:
        details["causes"] = [{"reason": cause, "message": message} for cause in causes]
    if retry_after is not None:
        details["retryAfterSeconds"] = retry_after
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }
    return error_from_status(code, status)


def not_found(resource: Resource, name: str) -> ApiError:
    """404: there is no such object."""
    return failure(404, "NotFound", f'{resource.qualified_name} "{name}" not found', resource=resource, name=name)


def not_served() -> ApiError:
    """404: the server does not know the resource."""
    return failure(404, "NotFound", "the server could not find the requested resource")


def already_exists(resource: Resource, name: str) -> ApiError:
    """409: the name is taken."""
    message = f'{resource.qualified_name} "{name}" already exists'
    return failure(409, "AlreadyExists", message, resource=resource, name=name)


def conflict(resource: Resource, name: str, why: str = "the object has been modified") -> ApiError:
    """409: written from a stale copy, or a precondition failed."""
    message = f'Operation cannot be fulfilled on {resource.qualified_name} "{name}": {why}'
    return failure(409, "Conflict", message, resource=resource, name=name)


def invalid(resource: Resource, name: str, problem: str) -> ApiError:
    """422: a field is wrong; the problem names it."""
    message = f'{resource.kind} "{name}" is invalid: {problem}'
    return failure(422, "Invalid", message, resource=resource, name=name)


def bad_request(message: str) -> ApiError:
    """400: the request makes no sense."""
    return failure(400, "BadRequest", message)


def unauthorized() -> ApiError:
    """401: no credentials, or expired ones."""
    return failure(401, "Unauthorized", "Unauthorized")


def expired(message: str = "too old resource version") -> ApiError:
    """410: the history does not reach back so far."""
    return failure(410, "Expired", message)


def too_many_requests(retry_after: int | None = 1) -> ApiError:
    """429: come back later."""
    return failure(429, "TooManyRequests", "too many requests, try again later", retry_after=retry_after)


def internal_error(message: str = "Internal error occurred: scripted by the test") -> ApiError:
    """500."""
    return failure(500, "InternalError", message)


def unavailable(retry_after: int | None = None) -> ApiError:
    """503: the server is starting or stopping."""
    message = "the server is currently unable to handle the request"
    return failure(503, "ServiceUnavailable", message, retry_after=retry_after)


def timed_out() -> ApiError:
    """504: the server did not find an answer in time."""
    return failure(504, "Timeout", "request did not complete within the allotted timeout")


def too_large_resource_version(version: int, current: int) -> ApiError:
    """504: the version that was asked for has not reached this server, which lags or was restored."""
    message = f"Too large resource version: {version}, current: {current}"
    return failure(504, "Timeout", message, retry_after=1, causes=["ResourceVersionTooLarge"])
