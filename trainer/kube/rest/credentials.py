"""Credentials: who a request says it is, and how that is renewed.

Each source keeps what it has for as long as it is good, asks again before it expires, and once more when the server
does not accept it. Whoever reads or runs something does it once for all requests that wait for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import anyio

from trainer.kube.clock import Clock, SystemClock
from trainer.kube.errors import ConfigurationError
from trainer.kube.logger import get_logger
from trainer.kube.rest.tls import ClientCertificate

log = get_logger(__name__)

TOKEN_FILE_LIFETIME = timedelta(minutes=1)
"""How long a token is used before its file is read again, as in client-go. The kubelet replaces the file well before
the old token expires."""

SLOW_AFTER = 15.0
"""Seconds after which a line in the log says that requests wait for a plugin: it may hang, or wait for a person."""

EXPIRY_MARGIN = 10.0
"""Seconds before its expiry at which an identity is renewed, so that it does not expire on the way to the server."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What one request shows the server."""

    authorization: str | None = field(default=None, repr=False)
    """Value of the Authorization header. Default: None, no header."""
    certificate: ClientCertificate | None = field(default=None, repr=False)
    """Client certificate from a plugin. Default: None; one from a file belongs to `tls.ClientTls`."""
    expiry: datetime | None = field(default=None, compare=False)
    """When it ends. Default: None, unknown."""


class Credentials(Protocol):
    """Source of identities."""

    @property
    def description(self) -> str:
        """Where the credentials come from and what to do when they are refused, for messages; holds no secret."""

    async def current(self) -> Identity:
        """The identity for the next request.

        Raises:
            ConfigurationError: there is none.
        """

    async def renew(self, rejected: Identity) -> Identity | None:
        """Another identity to try after the server has answered 401 to this one; None when there is no other."""


class FixedCredentials:
    """An identity that never changes."""

    def __init__(
        self,
        authorization: str | None = None,
        *,
        description: str = "none, or those of the client certificate; check what the connection is made from",
    ) -> None:
        self._identity = Identity(authorization)
        self.description = description

    async def current(self) -> Identity:
        """The identity given at construction."""
        return self._identity

    async def renew(self, rejected: Identity) -> Identity | None:  # noqa: ARG002
        """There is nothing to renew."""
        return None


class RenewableCredentials:
    """An identity from an exec plugin or auth provider, which `load` runs again."""

    def __init__(
        self, load: Callable[[], Awaitable[Identity]], *, description: str, clock: Clock | None = None
    ) -> None:
        self.description = description
        self._load = load
        self._clock = clock or SystemClock()
        self._identity: Identity | None = None
        self._failure: Exception | None = None
        self._loads = 0
        self._loaded_at = 0.0
        self._lock = anyio.Lock()

    async def current(self) -> Identity:
        """The present identity, renewed when it is about to expire; one that has not expired survives a failure."""
        loads = self._loads
        async with self._lock:
            identity = self._identity
            if identity is None or self._seconds_left(identity) <= 0:
                return await self._renew(loads)
            # Many plugins give what they have cached until it has expired: ask at most once per margin.
            age = self._clock.monotonic() - self._loaded_at
            if age >= EXPIRY_MARGIN > self._seconds_left(identity):
                return await self._renew_early(identity)
            return identity

    async def renew(self, rejected: Identity) -> Identity | None:
        """What the plugin says now, if it is another identity; requests that fail together run the plugin once."""
        loads = self._loads
        async with self._lock:
            identity = self._identity
            if identity is None or identity == rejected:
                identity = await self._renew(loads)
        return identity if identity != rejected else None

    async def _renew(self, loads: int) -> Identity:
        """What `load` says, unless it has said something since it had been called so many times."""
        if self._loads == loads:
            await self._call()
        if self._failure is not None:
            raise self._failure
        assert self._identity is not None
        return self._identity

    async def _call(self) -> None:
        self._failure = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._warn_when_slow)
            try:
                self._identity = await self._load()
            except Exception as error:
                # Raised outside of the task group, which would wrap it.
                self._failure = error
            tasks.cancel_scope.cancel()
        self._loads += 1
        self._loaded_at = self._clock.monotonic()

    async def _warn_when_slow(self) -> None:
        while True:
            await self._clock.sleep(SLOW_AFTER)
            log.warning("requests wait for credentials", credentials=self.description)

    async def _renew_early(self, identity: Identity) -> Identity:
        try:
            return await self._renew(self._loads)
        except ConfigurationError as error:
            log.warning("could not renew credentials, keeping the old ones", error=str(error))
            return identity

    def _seconds_left(self, identity: Identity) -> float:
        if identity.expiry is None:
            return float("inf")
        return (identity.expiry - self._clock.now()).total_seconds()


class TokenFile(RenewableCredentials):
    """Bearer token in a file that others replace, such as a projected service account token.

    While the file cannot be read, the last token is used.
    """

    def __init__(self, path: Path, *, clock: Clock | None = None) -> None:
        description = f"the token in {path}; check that something keeps replacing it before it expires"
        super().__init__(self._read, description=description, clock=clock)
        self._path = path
        self._token = ""

    async def _read(self) -> Identity:
        try:
            token = (await anyio.Path(self._path).read_text()).strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            if not self._token:
                raise ConfigurationError(
                    f"cannot read the token file {self._path}: {reason}; restore it or correct the path"
                ) from error
            log.warning("could not read token file, keeping the old token", path=str(self._path), error=reason)
        else:
            if not token and not self._token:
                raise ConfigurationError(f"the token file {self._path} is empty; write a token into it")
            self._token = token or self._token
        return Identity(f"Bearer {self._token}", expiry=self._clock.now() + TOKEN_FILE_LIFETIME)
