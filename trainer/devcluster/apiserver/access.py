"""Access: what answers who sends a request and whether they may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.devcluster.apiserver.authentication.authenticator import Authenticator
    from trainer.devcluster.apiserver.authorization.authorizer import Authorizer


@dataclass(frozen=True, slots=True)
class Access:
    """Both halves, for every request and for the reviews that clients ask for."""

    authenticator: Authenticator
    authorizer: Authorizer
