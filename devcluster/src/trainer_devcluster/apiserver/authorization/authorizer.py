"""The questions that requests raise, and who answers them."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, NamedTuple, Protocol

from trainer.kube.api_semantics import statuses
from trainer.kube.field_errors import show
from trainer.kube.resource import Resource
from trainer_devcluster.apiserver.wire import answers

if TYPE_CHECKING:
    from trainer.kube.errors import ApiError
    from trainer_devcluster.apiserver.authentication.authenticator import Authenticator
    from trainer_devcluster.apiserver.authentication.service_account_tokens import ServiceAccountTokens
    from trainer_devcluster.apiserver.authentication.user import User
    from trainer_devcluster.apiserver.authorization.rules import Rule


class Decision(NamedTuple):
    """An answer."""

    allowed: bool
    reason: str = ""
    """Why; "" when there is nothing to say, as for what no role allows."""


class Held(NamedTuple):
    """What is known of what somebody may do."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[str, ...] = ()
    """Why there may be more: bindings whose role does not exist."""


class Authorizer(Protocol):
    """Knows what users may do; never fails and does no I/O."""

    def authorize(self, attributes: Attributes) -> Decision:
        """Whether the user may do that."""

    def rules_of(self, user: User, namespace: str) -> Held:
        """What the user may do in a namespace, or with "" everywhere."""


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


@dataclass(frozen=True, slots=True)
class Access:
    """Both answers, for every request and for the reviews that clients ask for."""

    authenticator: Authenticator
    authorizer: Authorizer
    tokens: ServiceAccountTokens
    """Issues those of ServiceAccounts."""


def forbidden(attributes: Attributes, reason: str = "") -> ApiError:
    """The 403 for something that is not allowed.

    Args:
        attributes: what the user wants.
        reason: why not, if there is more to say than that no role allows it.
    """
    # The real server lets nothing through that a browser could take for markup.
    message = escape(_sentence(attributes), quote=False) + (f": {reason}" if reason else "")
    if attributes.path:
        return statuses.failure(403, "Forbidden", f"forbidden: {message}", {})
    resource = Resource(attributes.group, attributes.version, attributes.resource, "", namespaced=False)
    return answers.forbidden(resource, attributes.name, message)


def _sentence(attributes: Attributes) -> str:
    who = f"User {show(attributes.user.name)} cannot {attributes.verb}"
    if attributes.path:
        return f"{who} path {show(attributes.path)}"
    resource = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    where = f"in the namespace {show(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return f"{who} resource {show(resource)} in API group {show(attributes.group)} {where}"
