"""Rotation: certificates of servers that nobody has to make, kept in a Secret that all replicas share.

Every replica reads the Secret each minute, and the first to find that something is due writes the next state, under
optimistic locking; the others take what it has written. `trainer.keyring.renewal` says what is due when, in a
process that ends: this one loads nothing that makes keys.

Needed: get and update on the one Secret, by its name, and create on secrets unless it exists already (it may be empty).
This works without leadership, since all replicas serve.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import anyio
import anyio.to_thread

from trainer.keyring import CA_CERTIFICATES, CA_KEY, CERTIFICATE, KEY, KeyringAnswer, KeyringQuestion
from trainer.kube.backoff import Backoff
from trainer.kube.client import Client
from trainer.kube.clock import Clock, move_on_after
from trainer.kube.errors import (
    AlreadyExistsError,
    ConfigurationError,
    ConflictError,
    ForbiddenError,
    KubeError,
    NotFoundError,
)
from trainer.kube.logger import get_logger
from trainer.kube.objects import Object, ObjectKey, metadata_of
from trainer.kube.resource import SECRETS
from trainer.kube.serving import keyring_process
from trainer.kube.serving.certificates import CertificateSource, ServingCertificate

log = get_logger(__name__)

POLL_SECONDS = 60.0
"""Seconds between two looks at the Secret: one small request."""
_REQUEST_TIMEOUT = 30.0
"""Seconds that one attempt may take, with all its requests."""
_WRITERS = 10
"""Attempts to write while others do the same."""


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """DNS names of a Service; an API server calls webhooks as the first of them."""
    return f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local", f"{service}.{namespace}"


class CertificateRotator(CertificateSource):
    """Makes its own authority and certificates, keeps them in a Secret and renews them.

    Args:
        client: not one whose writes depend on leadership: `Manager.api_reader`.
        secret: the Secret; its keys are `ca.crt`, `ca.key`, `tls.crt` and `tls.key`.
        dns_names: names and IP addresses under which clients reach the server; see `service_names`.
        clock: default: that of the machine.
        remedy: what people can do when the Secret may not be read or written; part of messages. Default: the rights.

    Raises:
        ValueError: there is neither name nor address, or the Secret has no namespace.
    """

    def __init__(
        self,
        client: Client,
        secret: ObjectKey,
        *,
        dns_names: Sequence[str] = (),
        clock: Clock | None = None,
        remedy: str = "grant get and update on it, and create on secrets or make an empty one",
    ) -> None:
        self._names = frozenset(dns_names)
        if not self._names:
            raise ValueError("a serving certificate needs at least one DNS name or IP address")
        if not secret.namespace or not secret.name:
            raise ValueError(f"the Secret needs a namespace and a name, got {str(secret)!r}")
        super().__init__(f"the Secret {secret} has not been read yet", clock)
        self._client = client
        self._secret = secret
        self._remedy = remedy
        self._data: Mapping[str, bytes] = {}
        self._good: KeyringAnswer | None = None
        """The last answer about this data; it holds until the next step."""
        self._failures = 0

    def _pause(self) -> float:
        pause = Backoff(initial=1, maximum=POLL_SECONDS, jitter=0.5).pause(self._failures)
        if self.problem:
            self._failures += 1
            return pause
        self._failures = 0
        return POLL_SECONDS

    async def _look(self) -> None:
        try:
            async with move_on_after(self._clock, _REQUEST_TIMEOUT):
                await self._follow()
                return
        except ForbiddenError as error:
            raise KubeError(f"{error}; {self._remedy}") from error
        raise KubeError(f"no answer about the Secret {self._secret} within {_REQUEST_TIMEOUT:g} s")

    async def _follow(self) -> None:
        """Do what is due, or find that another replica has done it, and use what is in the Secret then."""
        for _ in range(_WRITERS):
            stored = await self._read()
            data = _data_of(stored)
            answer = await self._due(data)
            if answer.data is not None:
                try:
                    await self._write(stored, answer.data)
                except (AlreadyExistsError, ConflictError):
                    continue
                except NotFoundError:
                    if stored is None:  # its namespace does not exist
                        raise
                    continue
                log.info("renewed certificates", secret=str(self._secret), steps=answer.reasons)
            self._data, self._good = answer.data or data, replace(answer, data=None)
            await self._adopt(answer.expiry)
            return
        raise ConfigurationError(f"the Secret {self._secret} is changed all the time: is it another's, too?")

    async def _read(self) -> Object | None:
        try:
            return await self._client.get(SECRETS, self._secret.name, self._secret.namespace)
        except NotFoundError:
            return None

    async def _write(self, stored: Object | None, data: Mapping[str, bytes]) -> None:
        encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
        if stored is None:
            metadata = {"name": self._secret.name, "namespace": self._secret.namespace}
            secret = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata}
            await self._client.create(SECRETS, secret | {"data": encoded})
            return
        assert metadata_of(stored).get("resourceVersion")
        await self._client.update(SECRETS, stored | {"data": (stored.get("data") or {}) | encoded})

    async def _due(self, stored: Mapping[str, bytes]) -> KeyringAnswer:
        """What is due by what the Secret holds; nothing while that is what was found to be good."""
        now = self._clock.now()
        if self._good is not None and stored == self._data and now < self._good.next_step:
            return self._good
        if stored.get(KEY) and not stored.get(CA_KEY):
            raise ConfigurationError(
                f"the Secret {self._secret} holds a certificate without {CA_KEY}, so somebody else keeps it, such as "
                "cert-manager: use it as files, name another Secret, or delete it if nobody does"
            )
        question = KeyringQuestion(stored, self._data, self._names, now)
        answer = await anyio.to_thread.run_sync(keyring_process.ask, question)
        if answer.unusable:
            log.warning("replacing certificates that cannot be used", secret=str(self._secret), reason=answer.unusable)
        return answer

    async def _adopt(self, expiry: datetime) -> None:
        self.ca.set(self._data[CA_CERTIFICATES])
        certificate = ServingCertificate(self._data[CERTIFICATE], self._data[KEY], expiry)
        try:
            is_new = await self._show(certificate)
        except ConfigurationError as error:
            raise ConfigurationError(f"tls.crt and tls.key in the Secret {self._secret} {error}") from error
        if is_new:
            log.info("using serving certificate", secret=str(self._secret), names=sorted(self._names))


def _data_of(secret: Object | None) -> dict[str, bytes]:
    """Decoded contents, empty values left out."""
    values = ((secret or {}).get("data") or {}).items()
    try:
        return {name: base64.b64decode(value) for name, value in values if value}
    except (binascii.Error, TypeError) as error:
        raise ConfigurationError(f"the Secret holds what is not base64: {error}") from error
