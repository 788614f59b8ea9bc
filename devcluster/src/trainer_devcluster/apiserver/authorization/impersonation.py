"""Impersonation: who may act as somebody else does so by headers.

Source: Kubernetes documentation, "User Impersonation".
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from trainer.kube.api_semantics import statuses
from trainer_devcluster.apiserver.authentication.service_account_tokens import USER_PREFIX, service_account
from trainer_devcluster.apiserver.authentication.user import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User
from trainer_devcluster.apiserver.authorization.authorizer import Attributes, forbidden
from trainer_devcluster.apiserver.wire.headers import header_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from multidict import CIMultiDictProxy

    from trainer_devcluster.apiserver.authorization.authorizer import Authorizer

_USER: Final = "Impersonate-User"
_GROUP: Final = "Impersonate-Group"
_UID: Final = "Impersonate-Uid"
_EXTRA: Final = "Impersonate-Extra-"
_GROUP_OF_REVIEWS: Final = "authentication.k8s.io"


def acting_user(user: User, headers: CIMultiDictProxy[str], authorizer: Authorizer) -> User:
    """Who counts as the sender of a request: the user, or whom the headers name.

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
) -> Iterator[Attributes]:
    """What the user needs to be allowed."""
    account = _account(name)
    if account is not None:
        namespace, account_name = account
        yield Attributes(
            user, "impersonate", version="v1", resource="serviceaccounts", namespace=namespace, name=account_name
        )
    else:
        yield Attributes(user, "impersonate", version="v1", resource="users", name=name)
    for group in groups:
        yield Attributes(user, "impersonate", version="v1", resource="groups", name=group)
    if uid:
        yield Attributes(user, "impersonate", _GROUP_OF_REVIEWS, "v1", "uids", name=uid)
    for key, values in extra.items():
        for value in values:
            yield Attributes(user, "impersonate", _GROUP_OF_REVIEWS, "v1", "userextras", subresource=key, name=value)


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
