"""What can go wrong when talking to an API server; a closed set that says who retries.

| error | cause | who retries |
|---|---|---|
| `TransportError` | no answer: refused, reset, TLS | the client if idempotent, then the work queue |
| `TooManyRequestsError`, `ServiceUnavailableError` | 429 and 503 | the client after Retry-After, then the queue |
| `ServerTimeoutError`, `InternalError` | 504 and 500 | the work queue |
| `ConflictError` | written from a stale copy (409) | the work queue, after the cache has caught up |
| `GoneError` | resource version or continue token too old (410) | the reflector lists again |
| `TerminalError` | a reconcile found what no repetition can mend | nobody, until the object changes |
| `CacheSyncError` | an informer did not get its first list in time | nobody: the manager stops |
| all others | the request itself, or what it is about | nobody: the caller decides |
"""

from __future__ import annotations

from typing import Any, ClassVar


class KubeError(Exception):
    """Base of all errors of this package."""


class ConfigurationError(KubeError):
    """No usable kubeconfig or in-cluster configuration; the message names the file and the remedy."""


class TerminalError(KubeError):
    """Raised by a reconcile whose failure repetition cannot mend; only a change leads to the next attempt."""


class CacheSyncError(KubeError):
    """Informers did not sync in time; the message names each resource with the reason and the remedy."""


class TransportError(KubeError):
    """The request got no answer from an API server; it may or may not have been carried out."""


class ApiError(KubeError):
    """The API server answered with a failure Status (Kubernetes API conventions, "Response Status Kind")."""

    reason: ClassVar[str] = ""

    def __init__(self, code: int, message: str, *, reason: str = "", status: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status_reason = reason or self.reason
        self.status = status or {}

    def __str__(self) -> str:
        return self.message

    @property
    def causes(self) -> list[dict[str, Any]]:
        """`details.causes`: one entry per wrong field, with reason, message and field."""
        causes: list[dict[str, Any]] = (self.status.get("details") or {}).get("causes") or []
        return causes

    @property
    def retry_after_seconds(self) -> float | None:
        """`details.retryAfterSeconds`, when the server asked for a pause."""
        seconds = (self.status.get("details") or {}).get("retryAfterSeconds")
        return float(seconds) if seconds else None


class BadRequestError(ApiError):
    """400: the request is malformed."""

    reason = "BadRequest"


class UnauthorizedError(ApiError):
    """401: no or unknown credentials."""

    reason = "Unauthorized"


class ForbiddenError(ApiError):
    """403: the credentials do not allow the request."""

    reason = "Forbidden"


class NotFoundError(ApiError):
    """404: no such object or resource."""

    reason = "NotFound"


class MethodNotAllowedError(ApiError):
    """405: the resource does not support the verb."""

    reason = "MethodNotAllowed"


class AlreadyExistsError(ApiError):
    """409 on create: the name is taken."""

    reason = "AlreadyExists"


class ConflictError(ApiError):
    """409: the object has changed since it was read, or another field manager owns a field."""

    reason = "Conflict"


class GoneError(ApiError):
    """410: the resource version or continue token is older than the server's history (reasons Gone and Expired)."""

    reason = "Gone"


class UnsupportedMediaTypeError(ApiError):
    """415: the server does not read this content type."""

    reason = "UnsupportedMediaType"


class InvalidError(ApiError):
    """422: fields are wrong; see `causes`."""

    reason = "Invalid"


class TooManyRequestsError(ApiError):
    """429: the server sheds load."""

    reason = "TooManyRequests"


class InternalError(ApiError):
    """500: the server, or a webhook that it called, failed."""

    reason = "InternalError"


class ServiceUnavailableError(ApiError):
    """503: the server is starting, stopping or overloaded."""

    reason = "ServiceUnavailable"


class ServerTimeoutError(ApiError):
    """504: the server could not answer in time (reasons Timeout and ServerTimeout)."""

    reason = "Timeout"


_BY_REASON: dict[str, type[ApiError]] = {
    error.reason: error
    for error in (
        BadRequestError, UnauthorizedError, ForbiddenError, NotFoundError, MethodNotAllowedError, AlreadyExistsError,
        ConflictError, GoneError, UnsupportedMediaTypeError, InvalidError, TooManyRequestsError, InternalError,
        ServiceUnavailableError, ServerTimeoutError,
    )
}  # fmt: skip
_BY_REASON |= {"Expired": GoneError, "ServerTimeout": ServerTimeoutError}

_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequestError, 401: UnauthorizedError, 403: ForbiddenError, 404: NotFoundError, 405: MethodNotAllowedError,
    409: ConflictError, 410: GoneError, 415: UnsupportedMediaTypeError, 422: InvalidError, 429: TooManyRequestsError,
    500: InternalError, 503: ServiceUnavailableError, 504: ServerTimeoutError,
}  # fmt: skip


def error_from_status(code: int, status: dict[str, Any]) -> ApiError:
    """The typed error for a Status body: by `reason`, else by HTTP code, else a plain `ApiError`."""
    reason = status.get("reason") or ""
    message = status.get("message") or f"the API server answered with HTTP status {code}"
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code) or ApiError
    return kind(code, message, reason=reason, status=status)
