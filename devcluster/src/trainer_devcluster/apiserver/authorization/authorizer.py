"""The questions that requests raise, and who answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.authentication.user import User
    from trainer_devcluster.apiserver.authorization.attributes import Attributes
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
