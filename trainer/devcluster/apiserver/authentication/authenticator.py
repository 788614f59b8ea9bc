"""The authenticator: one administrator is known, by a random bearer token."""

from __future__ import annotations

import hmac
import re
import secrets
from typing import TYPE_CHECKING

from trainer.devcluster.apiserver import status
from trainer.devcluster.apiserver.authentication.user import ADMINISTRATOR, ANONYMOUS
from trainer.devcluster.apiserver.data_directory import refuse_content, write_private

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.devcluster.apiserver.authentication.user import User

ANONYMOUS_PATHS = frozenset({"/version", "/healthz", "/livez", "/readyz"})
_SCHEME = "bearer "
_TOKEN = re.compile(rb"[\w.~+/-]+=*")
"""What the Authorization header can carry: RFC 6750, section 2.1."""


class Authenticator:
    """Decides who sent a request; every known user may do everything."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def authenticate(self, authorization: str | None, path: str) -> User:
        """Who sent a request: the administrator may ask for anything, anybody for the version and the health checks.

        Raises:
            StatusError: 401, no token where one is needed, or a wrong one.
        """
        if authorization is None:
            if path.rstrip("/") in ANONYMOUS_PATHS:
                return ANONYMOUS
            raise status.unauthorized()
        if authorization[: len(_SCHEME)].lower() != _SCHEME:
            raise status.unauthorized()
        offered = authorization[len(_SCHEME) :].strip().encode()
        if not hmac.compare_digest(offered, self._token):
            raise status.unauthorized()
        return ADMINISTRATOR


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
