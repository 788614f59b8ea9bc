"""What a request wants to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.authentication.user import User


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
