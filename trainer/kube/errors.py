"""What can go wrong when talking to an API server; a closed set that says who retries.

| error | cause | who retries |
|---|---|---|
| `ConfigurationError` | no usable kubeconfig, service account, certificate | nobody at start; later the caller |
| `TransportError` | no answer: refused, reset, timed out | the client if it was a GET that broke, then the caller |
| `UntrustedServerError` | TLS failed: other CA, other name, no TLS at all | the caller; heals when the CA is replaced |
| `TooManyRequestsError`, `ServiceUnavailableError` | 429 and 503 | the client, then the caller |
| `ServerTimeoutError`, `InternalError` | 5xx | the client after Retry-After, then the caller |
| `UnauthorizedError` | credentials expired or unknown (401) | the client once, with newer ones; then the caller |
| `ConflictError` | written from a stale copy (409) | the caller, after the cache has caught up |
| `GoneError` | resource version or continue token too old (410) | the reflector lists again |
| `NAMESPACE_ERRORS` | a creation in a namespace that is being deleted, or is gone | nobody: its owner goes, too |
| all other `ApiError` | the request itself, or what it is about | the caller decides |
| `TerminalError` | a reconcile found what no retry can fix | nobody, until the object changes |
| `LeadershipLostError` | this process no longer holds the lease | nobody: the process ends |
| `ShutdownError` | something did not end within the grace period of the manager | nobody: the process ends |
| `CacheSyncError` | an informer did not get its first list in time | nobody: the manager stops |

The caller is a reflector, which watches again with backoff, or a reconcile. Whatever a reconcile raises, except for
`NAMESPACE_ERRORS` and the last four, puts its key back into the work queue with the backoff of that key: the queue need
not tell errors apart, since a reconcile looks at the present state before it tries again.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

_QUOTED_OBJECT = re.compile(
    r"""
    (?<=Invalid\ value:\ )[\[\]*&\w.]*+\{
    (?>[^"\]}]++ | "(?>[^"\\]++|\\.)*+(?:"|\\?\Z) | [\]}](?!:\ ))*+
    (?:[\]}]:\ |\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
"""An object as JSON or Go syntax, up to the rule that it breaks, or to the end where none follows.

Linear: what begins as an object always matches, so that nothing is read twice.
"""


class KubeError(Exception):
    """Base of all errors of this package."""


class ConfigurationError(KubeError):
    """The configuration of the connection cannot be used; the message names the file or field and the remedy."""


class TerminalError(KubeError):
    """Raised by a reconcile whose failure a retry cannot fix; only a change leads to the next attempt."""


class CacheSyncError(KubeError):
    """Informers did not sync in time; the message names each resource with the reason and the remedy."""


class LeadershipLostError(KubeError):
    """A write was refused because this process no longer holds the lease.

    It was not sent, or given up before another process could hold the lease. Nobody retries it: the process ends.
    """


class ShutdownError(KubeError):
    """The manager could not stop in time; the message names what did not end."""


class TransportError(KubeError):
    """The request got no answer from an API server; it may or may not have been carried out."""


class UntrustedServerError(TransportError):
    """TLS could not be established, so nothing was sent; the message says what to correct."""


class ApiError(KubeError):
    """The API server answered with a failure Status (Kubernetes API conventions, "Response Status Kind").

    Its text is what may be shown and logged: objects that the server quotes as invalid values are left out, for they
    may fill pages and hold what is secret, such as the environment of a container. `message` has them.
    """

    reason: ClassVar[str] = ""

    def __init__(self, code: int, message: str, *, reason: str = "", status: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status_reason = reason or self.reason
        self.status = status or {}

    def __str__(self) -> str:
        return _QUOTED_OBJECT.sub("", self.message)

    @property
    def causes(self) -> list[dict[str, Any]]:
        """`details.causes`: one entry per wrong field, with reason, message and field."""
        causes = self._details.get("causes")
        return [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []

    @property
    def name(self) -> str:
        """`details.name`: the object that the answer is about; "" when it is about something else."""
        return str(self._details.get("name") or "")

    def is_about(self, plural: str) -> bool:
        """Whether `details.kind`, which for errors is the plural of the resource, is this one."""
        return self._details.get("kind") == plural

    def has_cause(self, reason: str) -> bool:
        """Whether a cause has this reason, such as FieldManagerConflict or ResourceVersionTooLarge."""
        return any(cause.get("reason") == reason for cause in self.causes)

    @property
    def retry_after_seconds(self) -> float | None:
        """`details.retryAfterSeconds` or the Retry-After header, when the server asked for a pause."""
        seconds = self._details.get("retryAfterSeconds")
        return float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e9 else None

    @property
    def _details(self) -> dict[str, Any]:
        details = self.status.get("details")
        return details if isinstance(details, dict) else {}


class BadRequestError(ApiError):
    """400: the request is malformed."""

    reason = "BadRequest"


class UnauthorizedError(ApiError):
    """401: no or unknown credentials; the message says which were sent and what to do."""

    reason = "Unauthorized"


class ForbiddenError(ApiError):
    """403: the credentials do not allow the request."""

    reason = "Forbidden"


class NamespaceTerminatingError(ApiError):
    """403 with the cause NamespaceTerminating: nothing is created any more in a namespace that is being deleted.

    No `ForbiddenError`, since no right is missing. Updates and deletions of what is left there are still accepted.
    """

    reason = "Forbidden"


class NotFoundError(ApiError):
    """404: no such object or resource."""

    reason = "NotFound"


class NamespaceNotFoundError(NotFoundError):
    """404 about a namespace: a creation in one that is gone, or a request for the namespace itself."""


NAMESPACE_ERRORS: Final = (NamespaceTerminatingError, NamespaceNotFoundError)
"""What creations meet in a namespace on its way out; whatever they are made for goes with it."""


class MethodNotAllowedError(ApiError):
    """405: the resource does not support the verb."""

    reason = "MethodNotAllowed"


class NotAcceptableError(ApiError):
    """406: the server cannot answer in the content type that was asked for."""

    reason = "NotAcceptable"


class AlreadyExistsError(ApiError):
    """409 on create: the name is taken."""

    reason = "AlreadyExists"


class ConflictError(ApiError):
    """409: the object has changed since it was read, or another field manager owns a field."""

    reason = "Conflict"


class GoneError(ApiError):
    """410: the resource version or continue token is older than the server's history (reasons Gone and Expired)."""

    reason = "Gone"


class InvalidError(ApiError):
    """422: fields are wrong; see `causes`."""

    reason = "Invalid"


class TooManyRequestsError(ApiError):
    """429: the server sheds load, or a disruption budget forbids an eviction."""

    reason = "TooManyRequests"


class InternalError(ApiError):
    """500: the server, or a webhook that it called, failed."""

    reason = "InternalError"


class ServiceUnavailableError(ApiError):
    """503: the server is starting, stopping or overloaded."""

    reason = "ServiceUnavailable"


class ServerTimeoutError(ApiError):
    """500 or 504: the server could not answer in time (reasons ServerTimeout and Timeout)."""

    reason = "Timeout"


_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequestError, 401: UnauthorizedError, 403: ForbiddenError, 404: NotFoundError, 405: MethodNotAllowedError,
    406: NotAcceptableError, 409: ConflictError, 410: GoneError, 422: InvalidError, 429: TooManyRequestsError,
    500: InternalError, 503: ServiceUnavailableError, 504: ServerTimeoutError,
}  # fmt: skip
_BY_REASON = {error.reason: error for error in _BY_CODE.values()}
_BY_REASON |= {"AlreadyExists": AlreadyExistsError, "Expired": GoneError, "ServerTimeout": ServerTimeoutError}


def causes_of(error: BaseException) -> tuple[BaseException, ...]:
    """The causes of a failure: the error itself, or the exceptions that task groups have bundled in it."""
    if not isinstance(error, BaseExceptionGroup):
        return (error,)
    return tuple(cause for part in error.exceptions for cause in causes_of(part))


def error_from_status(code: int, status: dict[str, Any]) -> ApiError:
    """The typed error for a Status body: by `reason`, else by HTTP code, else a plain `ApiError`."""
    reason, message = _text(status, "reason"), _text(status, "message")
    message = message or f"the API server answered with HTTP status {code}"
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code) or ApiError
    error = kind(code, message, reason=reason, status=status)
    if isinstance(error, ForbiddenError) and error.has_cause("NamespaceTerminating"):
        return NamespaceTerminatingError(code, message, reason=reason, status=status)
    if isinstance(error, NotFoundError) and error.is_about("namespaces"):
        return NamespaceNotFoundError(code, message, reason=reason, status=status)
    return error


def _text(status: dict[str, Any], field: str) -> str:
    value = status.get(field)
    return value if isinstance(value, str) else ""
