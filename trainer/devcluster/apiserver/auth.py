"""Authentication: one administrator, known by a random bearer token."""

from __future__ import annotations

import hmac
import os
import secrets
from typing import TYPE_CHECKING

from trainer.devcluster.apiserver import status

if TYPE_CHECKING:
    from pathlib import Path

ANONYMOUS_PATHS = frozenset({"/version", "/healthz", "/livez", "/readyz"})
_SCHEME = "bearer "


class Authenticator:
    """Decides who sent a request; every known user may do everything."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def authenticate(self, authorization: str | None, path: str) -> None:
        """Let the administrator pass, and anybody to the version and the health checks.

        Raises:
            StatusError: 401, no token where one is needed, or a wrong one.
        """
        if authorization is None:
            if path.rstrip("/") in ANONYMOUS_PATHS:
                return
            raise status.unauthorized()
        if authorization[: len(_SCHEME)].lower() != _SCHEME:
            raise status.unauthorized()
        offered = authorization[len(_SCHEME) :].strip().encode()
        if not hmac.compare_digest(offered, self._token):
            raise status.unauthorized()


def load_or_create_token(path: Path) -> str:
    """The token in a file of mode 0600, made up when the file does not exist."""
    if path.exists():
        token = path.read_text().strip()
        if token:
            return token
    token = secrets.token_urlsafe(32)
    write_private(path, token.encode())
    return token


def write_private(path: Path, content: bytes) -> None:
    """Replace a file with one that only its owner can read, at no moment anything else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    temporary.replace(path)
