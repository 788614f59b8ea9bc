"""What a request asks to be allowed, read from its method, path and query alone.

The registry is not asked: who may not look learns nothing about which resources and objects there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainer.kube.selectors import FieldSelector
from trainer_devcluster.apiserver.authorization.authorizer import Attributes
from trainer_devcluster.apiserver.wire.params import boolean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainer_devcluster.apiserver.authentication.user import User

_VERBS: Final = {
    "POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete",
}  # fmt: skip
_NAMESPACE_SUBRESOURCES: Final = frozenset({"finalize", "status"})


def attributes_of(user: User, method: str, path: str, query: Mapping[str, str]) -> Attributes:
    """What a user wants with a request.

    Args:
        user: who sends it.
        method: of HTTP.
        path: decoded, without the query.
        query: parameters; of repeated ones the first counts.
    """
    parts = [part for part in path.split("/") if part]
    place = _group_version(parts)
    if place is None:
        return Attributes(user, method.lower(), path=path or "/")
    group, version, rest = place
    verb = _VERBS.get(method, "")
    namespace, rest = _namespace(rest)
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if not name:
        verb, name = _collection(verb, query)
    return Attributes(user, verb, group, version, rest[0], subresource, namespace, name)


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
