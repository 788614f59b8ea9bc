"""Tokens of ServiceAccounts for the volumes of pods: asked for, kept, and renewed before they expire."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from trainer.kube.client import Client
from trainer.kube.clock import Clock, parse_timestamp
from trainer.kube.errors import KubeError
from trainer.kube.objects import Object, name_of, namespace_of, uid_of
from trainer.kube.resource import SERVICE_ACCOUNTS
from trainer_devcluster.kubelet.errors import VolumeError

log = structlog.get_logger(__name__)

_RENEWAL = 0.8
"""Part of its life after which a token is replaced, as a kubelet does it."""
_LONGEST = timedelta(hours=24)
"""Age at which a token is replaced even if it lives longer."""
_RETRY = timedelta(minutes=1)
"""Pause after an attempt to renew a token that has failed."""


@dataclass(frozen=True, slots=True)
class PodToken:
    """A token that the API server has issued."""

    token: str = field(repr=False)
    """Secret."""
    expires: datetime


class TokenSource:
    """Issues tokens to pods: asks the API server by its TokenRequest API."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def request(self, pod: Object, audience: str, seconds: int) -> PodToken:
        """A new token of the pod's ServiceAccount, which becomes invalid with the pod.

        Args:
            pod: whose token it is.
            audience: for whom it is; "" is the API server.
            seconds: for how long.

        Raises:
            KubeError: the API server does not issue it.
        """
        account = pod["spec"].get("serviceAccountName") or "default"
        spec = {
            "audiences": [audience] if audience else [],
            "expirationSeconds": seconds,
            "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": name_of(pod), "uid": uid_of(pod)},
        }
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"name": account, "namespace": namespace_of(pod)},
            "spec": spec,
        }
        answer = await self._client.create(SERVICE_ACCOUNTS, request, subresource="token")
        return PodToken(answer["status"]["token"], parse_timestamp(answer["status"]["expirationTimestamp"]))


@dataclass(frozen=True, slots=True)
class _Kept:
    issued: PodToken
    renewal: datetime


@dataclass(slots=True)
class PodTokens:
    """The tokens of one pod."""

    pod: Object
    source: TokenSource
    clock: Clock
    _kept: dict[tuple[str, int], _Kept] = field(default_factory=dict)

    async def get(self, audience: str, seconds: int) -> str:
        """The token for an audience; a new one when that at hand is due for renewal.

        Raises:
            VolumeError: there is none, or none that is still valid.
        """
        now, kept = self.clock.now(), self._kept.get((audience, seconds))
        if kept is not None and now < kept.renewal:
            return kept.issued.token
        try:
            issued = await self.source.request(self.pod, audience, seconds)
        except KubeError as error:
            if kept is None or now >= kept.issued.expires:
                raise VolumeError(f"failed to fetch token: {error}") from error
            log.warning("could not renew a token, will retry", pod=name_of(self.pod), error=str(error))
            self._kept[audience, seconds] = _Kept(kept.issued, now + _RETRY)
            return kept.issued.token
        life = min((issued.expires - now) * _RENEWAL, _LONGEST)
        self._kept[audience, seconds] = _Kept(issued, now + life)
        return issued.token

    def seconds_to_renewal(self) -> float | None:
        """Until the next token is due; None when there are no tokens."""
        renewals = [kept.renewal for kept in self._kept.values()]
        return max(0.0, (min(renewals) - self.clock.now()).total_seconds()) if renewals else None
