"""The authenticator: the administrator by a random bearer token, ServiceAccounts by theirs, everybody else nobody."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from trainer_devcluster.apiserver.authentication.service_account_tokens import (
    ISSUER,
    InvalidTokenError,
    ServiceAccountTokens,
)
from trainer_devcluster.apiserver.authentication.user import ADMINISTRATOR, ANONYMOUS, User
from trainer_devcluster.apiserver.storage.data_directory import refuse_content, write_private
from trainer_devcluster.apiserver.wire import answers

_SCHEME = "bearer "
_TOKEN = re.compile(rb"[\w.~+/-]+=*")
"""What the Authorization header can carry: RFC 6750, section 2.1."""
_INVALID = "invalid bearer token"


class TokenIdentity(NamedTuple):
    """The user of a token."""

    user: User
    audiences: tuple[str, ...]
    """The requested audiences that the token was issued for."""


class Authenticator:
    """Decides who sent a request."""

    def __init__(self, token: str, tokens: ServiceAccountTokens) -> None:
        """Know the administrator and the ServiceAccounts.

        Args:
            token: the administrator's; secret.
            tokens: those of ServiceAccounts.
        """
        self._token = token.encode()
        self._tokens = tokens

    def authenticate(self, authorization: str | None) -> User:
        """Authenticate a request by its Authorization header, or without one.

        Raises:
            ApiError: 401, the header is not that of a bearer token, or the token is wrong.
        """
        if authorization is None:
            return ANONYMOUS
        if authorization[: len(_SCHEME)].lower() != _SCHEME:
            raise answers.unauthorized()
        try:
            return self.identify(authorization[len(_SCHEME) :].strip()).user
        except InvalidTokenError as error:
            raise answers.unauthorized() from error

    def identify(self, token: str, audiences: Sequence[str] = (ISSUER,)) -> TokenIdentity:
        """Whose a token is.

        Args:
            token: secret.
            audiences: who asks; the token has to be for one of them.

        Raises:
            InvalidTokenError: it is not one of theirs.
        """
        # Letters beyond ASCII come as surrogates; there are none in a token.
        if hmac.compare_digest(token.encode(errors="surrogateescape"), self._token):
            if ISSUER not in audiences:
                raise InvalidTokenError(_INVALID)
            return TokenIdentity(ADMINISTRATOR, (ISSUER,))
        try:
            return TokenIdentity(*self._tokens.authenticate(token, audiences))
        except InvalidTokenError as error:
            problem = str(error)
            raise InvalidTokenError(problem if problem == _INVALID else f"[{_INVALID}, {problem}]") from error


def load_or_create_token(path: Path) -> str:
    """The token in a file of mode 0600, made up when the file does not exist.

    Raises:
        OSError: the file cannot be read or written, or holds no token.
    """
    if path.exists() and (stored := path.read_bytes().strip()):
        if not _TOKEN.fullmatch(stored):
            refuse_content(path, "it holds no token")
        return stored.decode()
    token = secrets.token_urlsafe(32)
    write_private(path, token.encode())
    return token
