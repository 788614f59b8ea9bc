"""The questions that requests raise, and who answers them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.authentication.user import User
    from trainer_devcluster.apiserver.authorization.rules import Rule


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


class Held(NamedTuple):
    """What somebody may do, as far as it is known."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[str, ...] = ()
    """Why there may be more: bindings whose role does not exist."""


class Authorizer(Protocol):
    """Knows what users may do; never fails and does no I/O."""

    def authorize(self, attributes: Attributes) -> Decision:
        """Whether the user may do that."""

    def rules_of(self, user: User, namespace: str) -> Held:
        """What the user may do in a namespace, or with "" everywhere."""
