"""Access checks: what a request asks to be allowed, on whose behalf, and who decides about it.

Checks are made from method, path, query and the headers of impersonation alone. The registry is not asked: who may not
look learns nothing about which resources and objects there are. Kubernetes documentation, "User Impersonation".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol
from urllib.parse import unquote

from multidict import CIMultiDictProxy

from trainer.kube.errors import ApiError
from trainer.kube.field_errors import show
from trainer.kube.resource import Resource
from trainer.kube.selectors import FieldSelector
from trainer_devcluster.apiserver.authentication.authenticator import Authenticator
from trainer_devcluster.apiserver.authentication.service_account_tokens import (
    USER_PREFIX,
    ServiceAccountTokens,
    service_account,
)
from trainer_devcluster.apiserver.authentication.user import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User
from trainer_devcluster.apiserver.authorization.rules import AccessCheck, PolicyRule
from trainer_devcluster.apiserver.wire import answers
from trainer_devcluster.apiserver.wire.headers import header_text
from trainer_devcluster.apiserver.wire.params import boolean
from trainer_kube_testing.api_semantics import statuses


class Decision(NamedTuple):
    """An answer."""

    allowed: bool
    reason: str = ""
    """Why; "" when there is nothing to say, as for what no role allows."""


class Held(NamedTuple):
    """The rules that apply to a user, and whether they are complete."""

    rules: tuple[PolicyRule, ...] = ()
    problems: tuple[str, ...] = ()
    """Why there may be more: bindings whose role does not exist."""


class Authorizer(Protocol):
    """Knows what users may do; never fails and does no I/O."""

    def authorize(self, attributes: AccessCheck) -> Decision:
        """Whether the user may do that."""

    def rules_of(self, user: User, namespace: str) -> Held:
        """The rules of the user in a namespace, or with "" in all."""


@dataclass(frozen=True, slots=True)
class Access:
    """Both answers, for every request and for the reviews that clients ask for."""

    authenticator: Authenticator
    authorizer: Authorizer
    tokens: ServiceAccountTokens
    """Issues those of ServiceAccounts."""


def forbidden(attributes: AccessCheck, reason: str = "") -> ApiError:
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


def _sentence(attributes: AccessCheck) -> str:
    who = f"User {show(attributes.user.name)} cannot {attributes.verb}"
    if attributes.path:
        return f"{who} path {show(attributes.path)}"
    resource = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    where = f"in the namespace {show(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return f"{who} resource {show(resource)} in API group {show(attributes.group)} {where}"


_VERBS: Final = {
    "POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete",
}  # fmt: skip
_NAMESPACE_SUBRESOURCES: Final = frozenset({"finalize", "status"})


def attributes_of(user: User, method: str, path: str, query: Mapping[str, str]) -> AccessCheck:
    """The attributes of a request, for its authorization.

    Args:
        user: who sends it.
        method: of HTTP.
        path: decoded, without the query.
        query: parameters; of repeated ones the first counts.
    """
    parts = [part for part in path.split("/") if part]
    place = _group_version(parts)
    if place is None:
        return AccessCheck(user, method.lower(), path=path or "/")
    group, version, rest = place
    verb = _VERBS.get(method, "")
    namespace, rest = _namespace(rest)
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if not name:
        verb, name = _collection(verb, query)
    return AccessCheck(user, verb, group, version, rest[0], subresource, namespace, name)


def _group_version(parts: Sequence[str]) -> tuple[str, str, Sequence[str]] | None:
    """Group, version and what follows them; None when nothing does."""
    if parts[:1] == ["api"] and len(parts) > 2:
        return "", parts[1], parts[2:]
    if parts[:1] == ["apis"] and len(parts) > 3:
        return parts[1], parts[2], parts[3:]
    return None


def _namespace(rest: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The namespace, and the path within it; a Namespace is in itself."""
    if rest[0] != "namespaces" or len(rest) < 2:
        return "", rest
    if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
        return rest[1], rest[2:]
    return rest[1], rest


def _collection(verb: str, query: Mapping[str, str]) -> tuple[str, str]:
    """The verb for a collection, and the name of the only object that a list or watch can find in it."""
    if verb == "delete":
        return "deletecollection", ""
    if verb != "get":
        return verb, ""
    return "watch" if boolean(query, "watch") else "list", _selected_name(query.get("fieldSelector", ""))


def _selected_name(field_selector: str) -> str:
    if not field_selector:
        return ""
    try:
        requirements = FieldSelector.parse(field_selector).requirements
    except ValueError:
        return ""
    names = [value for path, operator, value in requirements if path == "metadata.name" and operator == "="]
    return names[0] if names and names[0] not in (".", "..") and not {"/", "%"} & set(names[0]) else ""


_USER: Final = "Impersonate-User"
_GROUP: Final = "Impersonate-Group"
_UID: Final = "Impersonate-Uid"
_EXTRA: Final = "Impersonate-Extra-"
_GROUP_OF_REVIEWS: Final = "authentication.k8s.io"


def acting_user(user: User, headers: CIMultiDictProxy[str], authorizer: Authorizer) -> User:
    """The user that a request acts as: the authenticated one, or the one that the headers impersonate.

    Raises:
        ApiError: 403, the user may not act as that one; 400, the headers name groups or such but nobody.
    """
    name, uid = header_text(headers.get(_USER, "")), header_text(headers.get(_UID, ""))
    groups, extra = tuple(map(header_text, headers.getall(_GROUP, []))), _extra(headers)
    if not name:
        if groups or uid or extra:
            raise statuses.bad_request(f"the headers name whom to act as only in part: {_USER} is missing")
        return user
    for wanted in _wanted(user, name, groups, uid, extra):
        decision = authorizer.authorize(wanted)
        if not decision.allowed:
            raise forbidden(wanted, decision.reason)
    return User(name, _groups(name, groups), uid, MappingProxyType(extra))


def _extra(headers: CIMultiDictProxy[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for header, value in headers.items():
        if header.lower().startswith(_EXTRA.lower()):
            key = unquote(header[len(_EXTRA) :].lower())
            found[key] = (*found.get(key, ()), header_text(value))
    return found


def _wanted(
    user: User, name: str, groups: tuple[str, ...], uid: str, extra: dict[str, tuple[str, ...]]
) -> Iterator[AccessCheck]:
    """The checks that the impersonation has to pass."""
    account = _account(name)
    if account is not None:
        namespace, account_name = account
        yield AccessCheck(
            user, "impersonate", version="v1", resource="serviceaccounts", namespace=namespace, name=account_name
        )
    else:
        yield AccessCheck(user, "impersonate", version="v1", resource="users", name=name)
    for group in groups:
        yield AccessCheck(user, "impersonate", version="v1", resource="groups", name=group)
    if uid:
        yield AccessCheck(user, "impersonate", _GROUP_OF_REVIEWS, "v1", "uids", name=uid)
    for key, values in extra.items():
        for value in values:
            yield AccessCheck(user, "impersonate", _GROUP_OF_REVIEWS, "v1", "userextras", subresource=key, name=value)


def _groups(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    account = _account(name)
    if account is not None and not groups:
        return service_account(*account).groups
    if name == ANONYMOUS.name:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    return groups if {AUTHENTICATED, UNAUTHENTICATED} & set(groups) else (*groups, AUTHENTICATED)


def _account(name: str) -> tuple[str, str] | None:
    """Namespace and name when a user is a ServiceAccount."""
    parts = name.removeprefix(USER_PREFIX).split(":")
    return (parts[0], parts[1]) if name.startswith(USER_PREFIX) and len(parts) == 2 and all(parts) else None
