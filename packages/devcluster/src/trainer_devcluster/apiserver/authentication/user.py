"""Users: who does something in the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from trainer.kube.objects import Object

MASTERS: Final = "system:masters"
"""The group that may do everything, whatever the roles say."""
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"


@dataclass(frozen=True, slots=True)
class User:
    """A user of the cluster, as authorization, admission webhooks and reviews get it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    """Uid of the ServiceAccount; "" for everybody else."""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Extra information of the credentials, such as the pod that a token is bound to."""

    def info(self) -> Object:
        """The user as `UserInfo` of authentication.k8s.io/v1."""
        found: Object = {"username": self.name}
        if self.uid:
            found["uid"] = self.uid
        if self.groups:
            found["groups"] = list(self.groups)
        if self.extra:
            found["extra"] = {key: list(values) for key, values in self.extra.items()}
        return found


ADMINISTRATOR: Final = User("kubernetes-admin", (MASTERS, AUTHENTICATED))
ANONYMOUS: Final = User("system:anonymous", (UNAUTHENTICATED,))
SERVER: Final = User("system:apiserver", (MASTERS, AUTHENTICATED))
"""The server itself, for what it writes on its own account."""
