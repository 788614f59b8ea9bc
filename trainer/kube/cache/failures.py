"""What failures of a list or watch mean: whether streaming is known, whether the version is of use, and for people."""

from __future__ import annotations

from trainer.kube.cache.watch_handler import UnmarkedInitialEventsError
from trainer.kube.errors import (
    BadRequestError,
    ForbiddenError,
    GoneError,
    InvalidError,
    KubeError,
    MethodNotAllowedError,
    NotAcceptableError,
    NotFoundError,
    ServerTimeoutError,
    TransportError,
)
from trainer.kube.resource import Resource


class SilentWatchError(TransportError):
    """The server sent nothing for so long that the connection counts as dead."""


CANNOT_STREAM = (
    InvalidError,
    BadRequestError,
    MethodNotAllowedError,
    NotAcceptableError,
    UnmarkedInitialEventsError,
)
"""How a server says that it does not know streaming lists, or has them switched off."""


def explain(resource: Resource, error: KubeError) -> str:
    """One line about why a resource cannot be listed or watched, with the remedy where there is one."""
    name = resource.qualified_name
    if isinstance(error, NotFoundError):
        return f"{name} is not served by the API server: install the {resource.kind} CRD"
    if isinstance(error, ForbiddenError):
        return f"{name}: {error}: grant list and watch on {name} in a Role or ClusterRole"
    return f"{name} could not be listed or watched: {error}"


def is_unusable_version(error: KubeError) -> bool:
    """Whether a quorum read would help: the version is compacted, or ahead of a server that was restored or lags."""
    if isinstance(error, GoneError):
        return True
    if not isinstance(error, ServerTimeoutError):
        return False
    return error.has_cause("ResourceVersionTooLarge") or "Too large resource version" in error.message
