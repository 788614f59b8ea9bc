"""Credentials: what goes into the Authorization header, and how it is renewed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import anyio
import structlog

from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime
    from pathlib import Path

log = structlog.get_logger(__name__)

TOKEN_FILE_SECONDS = 60.0
"""A token file is read again after this time; the kubelet replaces the file well before the old token expires."""

EXPIRY_MARGIN = 60.0
"""Seconds before its expiry at which a token from a plugin is renewed."""


class Credentials(Protocol):
    """Source of the Authorization header."""

    async def authorization(self) -> str | None:
        """The header's value; None sends no header (client certificates, or an anonymous request)."""

    async def renew(self, rejected: str | None) -> str | None:
        """Another value to try after the server has answered 401 to `rejected`; None when there is no other."""


class FixedCredentials:
    """A header that never changes."""

    def __init__(self, authorization: str | None = None) -> None:
        self._authorization = authorization

    async def authorization(self) -> str | None:
        """The value given at construction."""
        return self._authorization

    async def renew(self, rejected: str | None) -> str | None:  # noqa: ARG002
        """There is nothing to renew."""
        return None


class TokenFile:
    """Bearer token in a file that others replace, such as a projected service account token."""

    def __init__(self, path: Path, *, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._token: str | None = None
        self._read_at = 0.0
        self._lock = anyio.Lock()

    async def authorization(self) -> str | None:
        """The token as of at most a minute ago; while the file cannot be read, the last one.

        Raises:
            ConfigurationError: the file could never be read.
        """
        async with self._lock:
            if self._token is None or self._clock.monotonic() - self._read_at >= TOKEN_FILE_SECONDS:
                await self._read()
            return f"Bearer {self._token}"

    async def renew(self, rejected: str | None) -> str | None:
        """The token that the file holds now, if it is another."""
        async with self._lock:
            if rejected == f"Bearer {self._token}":
                await self._read()
        authorization = f"Bearer {self._token}"
        return authorization if authorization != rejected else None

    async def _read(self) -> None:
        try:
            token = (await anyio.Path(self._path).read_text()).strip()
        except OSError as error:
            if self._token is None:
                raise ConfigurationError(f"cannot read the token file {self._path}: {error.strerror}") from error
            log.warning("could not read token file, keeping the old token", path=str(self._path), error=str(error))
        else:
            if not token and self._token is None:
                raise ConfigurationError(f"the token file {self._path} is empty")
            self._token = token or self._token
        self._read_at = self._clock.monotonic()


class RenewableCredentials:
    """A header from a kubeconfig's exec plugin or auth provider, which `load` runs again."""

    def __init__(
        self,
        authorization: str | None,
        expiry: datetime | None,
        load: Callable[[], Awaitable[tuple[str | None, datetime | None]]],
        *,
        clock: Clock | None = None,
    ) -> None:
        self._authorization = authorization
        self._expiry = expiry
        self._load = load
        self._clock = clock or SystemClock()
        self._lock = anyio.Lock()

    async def authorization(self) -> str | None:
        """The present value, renewed when it is about to expire."""
        async with self._lock:
            if self._expiry is not None and (self._expiry - self._clock.now()).total_seconds() < EXPIRY_MARGIN:
                self._authorization, self._expiry = await self._load()
            return self._authorization

    async def renew(self, rejected: str | None) -> str | None:
        """What the plugin says now, if it is another value; requests that fail together run the plugin once."""
        async with self._lock:
            if self._authorization == rejected:
                self._authorization, self._expiry = await self._load()
        return self._authorization if self._authorization != rejected else None
