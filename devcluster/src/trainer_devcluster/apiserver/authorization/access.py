"""Access: what answers who sends a request and whether they may, and hands out credentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer_devcluster.apiserver.authentication.authenticator import Authenticator
    from trainer_devcluster.apiserver.authentication.service_account_tokens import ServiceAccountTokens
    from trainer_devcluster.apiserver.authentication.signing_key import SigningKey
    from trainer_devcluster.apiserver.authorization.authorizer import Authorizer


@dataclass(frozen=True, slots=True)
class Access:
    """Both answers, for every request and for the reviews that clients ask for."""

    authenticator: Authenticator
    authorizer: Authorizer
    tokens: ServiceAccountTokens
    """Issues those of ServiceAccounts."""
    key: SigningKey
    """Has signed them."""
