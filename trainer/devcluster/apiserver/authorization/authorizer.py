"""The question that every request raises, and who answers it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from trainer.devcluster.apiserver.authentication.user import User


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a user wants to do: something with a resource, or, if `path` is set, a request to a path without one."""

    user: User
    verb: str
    """As roles name it: get, list, watch, create, update, patch, delete, deletecollection ...; for a path the HTTP
    method in lower case."""
    group: str = ""
    version: str = ""
    resource: str = ""
    """Plural."""
    subresource: str = ""
    namespace: str = ""
    """"" for cluster-scoped resources and for all namespaces."""
    name: str = ""
    path: str = ""


class Decision(NamedTuple):
    """An answer."""

    allowed: bool
    reason: str = ""
    """Why; "" when there is nothing to say, as for what no role allows."""


class Authorizer(Protocol):
    """Knows what users may do."""

    def authorize(self, attributes: Attributes) -> Decision:
        """Whether the user may do that; never fails and does no I/O."""


class AllowEverything:
    """Lets everybody do everything."""

    def authorize(self, attributes: Attributes) -> Decision:  # noqa: ARG002 - the protocol's signature
        """Allow it."""
        return Decision(allowed=True)
