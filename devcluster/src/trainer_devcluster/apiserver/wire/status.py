"""Failures as the API reports them: a Status object with a code, a reason and machine-readable details.

Reasons and their codes: Kubernetes API conventions, "Response Status Kind".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trainer.kube.field_errors import FieldError
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource

STALE_OBJECT = "the object has been modified; please apply your changes to the latest version and try again"
INITIAL_DELAY_SECONDS = 1


class StatusError(Exception):
    """A request that fails; the server turns it into an HTTP answer with a Status body."""

    def __init__(
        self, code: int, reason: str, message: str, details: Object | None = None, *, warnings: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.warnings = tuple(warnings)

    def __str__(self) -> str:
        return self.message

    def to_status(self) -> Object:
        """The Status object; `details` is left out when there are none, as the real server does."""
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        if self.message:
            status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def success(resource: Resource, name: str, uid: str) -> Object:
    """The Status that answers a deletion after which the object is gone."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {**_details(resource, name), "uid": uid},
    }


def bad_request(message: str) -> StatusError:
    """400: the request cannot be understood."""
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    """401: no or unknown credentials."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource, name: str, message: str, causes: Iterable[FieldError] = ()) -> StatusError:
    """403: understood, but not allowed."""
    details = _details(resource, name)
    entries = [cause.to_object() for cause in causes]
    if entries:
        details["causes"] = entries
    quoted = f' "{name}"' if name else ""
    return StatusError(403, "Forbidden", f"{resource.qualified_name}{quoted} is forbidden: {message}", details)


def not_found(resource: Resource, name: str) -> StatusError:
    """404: no object of this name."""
    return StatusError(404, "NotFound", f'{resource.qualified_name} "{name}" not found', _details(resource, name))


def no_such_resource() -> StatusError:
    """404: no resource or path of this name."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed(
    message: str = "the server does not allow this method on the requested resource",
) -> StatusError:
    """405: the resource exists but not this verb."""
    return StatusError(405, "MethodNotAllowed", message, {})


def not_acceptable(accepted: Iterable[str]) -> StatusError:
    """406: none of the media types in the Accept header can be produced."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return StatusError(406, "NotAcceptable", message)


def already_exists(resource: Resource, name: str) -> StatusError:
    """409 on create: the name is taken."""
    message = f'{resource.qualified_name} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _details(resource, name))


def generate_name_conflict(resource: Resource, name: str) -> StatusError:
    """409 on create: the names that the server has made up are taken, which another attempt can overcome."""
    message = (
        f'{resource.qualified_name} "{name}" already exists, the server was not able to generate a unique name for the '
        "object"
    )
    details = {**_details(resource, name), "retryAfterSeconds": INITIAL_DELAY_SECONDS}
    return StatusError(409, "AlreadyExists", message, details)


def conflict(resource: Resource, name: str, message: str = STALE_OBJECT) -> StatusError:
    """409: a precondition (resource version or uid) does not hold."""
    text = f'Operation cannot be fulfilled on {resource.qualified_name} "{name}": {message}'
    return StatusError(409, "Conflict", text, _details(resource, name))


def apply_conflict(causes: Sequence[FieldError], message: str) -> StatusError:
    """409: a server-side apply touches fields that other managers own."""
    details: Object = {"causes": [cause.to_object() for cause in causes]}
    return StatusError(409, "Conflict", message, details)


def expired(message: str, *, continue_token: str = "") -> StatusError:
    """410: a resource version or continue token older than the history.

    Args:
        message: what is too old.
        continue_token: a token with which a list can go on inconsistently.
    """
    return _ExpiredError(410, "Expired", message, continue_token=continue_token)


class _ExpiredError(StatusError):
    def __init__(self, code: int, reason: str, message: str, *, continue_token: str) -> None:
        super().__init__(code, reason, message)
        self.continue_token = continue_token

    def to_status(self) -> Object:
        status = super().to_status()
        if self.continue_token:
            status["metadata"] = {"continue": self.continue_token}
        return status


def request_entity_too_large(message: str) -> StatusError:
    """413: the body, or a patch in it, is too large."""
    return StatusError(413, "RequestEntityTooLarge", message)


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    """415: the body is in a format that the resource does not read."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return StatusError(415, "UnsupportedMediaType", message)


def invalid(kind: str, group: str, name: str, causes: Sequence[FieldError]) -> StatusError:
    """422: fields are wrong; every one is listed.

    Args:
        kind: kind of the object (or of the options) that is wrong.
        group: its API group; "" is the core group.
        name: its name, "" when it has none.
        causes: at least one.
    """
    texts = list(dict.fromkeys(str(cause) for cause in causes))  # each once, as Go's aggregates print them
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    details: Object = {"name": name} if name else {}
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details["causes"] = [cause.to_object() for cause in causes]
    return StatusError(422, "Invalid", f'{qualified} "{name}" is invalid: {listed}', details)


def unprocessable() -> StatusError:
    """422: a patch operation that fails on this object, such as a JSON patch `test`."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def internal_error(message: str) -> StatusError:
    """500: our own fault."""
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})


def timeout(message: str) -> StatusError:
    """504: the request took too long."""
    return StatusError(504, "Timeout", f"Timeout: {message}", {})


def resource_version_too_large(requested: int, current: int) -> StatusError:
    """504: a resource version that the server has not reached."""
    message = f"Too large resource version: {requested}, current: {current}"
    details: Object = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": INITIAL_DELAY_SECONDS,
    }
    return StatusError(504, "Timeout", f"Timeout: {message}", details)


def _details(resource: Resource, name: str) -> Object:
    details: Object = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.plural
    return details
