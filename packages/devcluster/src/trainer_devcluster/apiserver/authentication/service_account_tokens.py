"""Tokens of ServiceAccounts: signed, bound to an audience, a time and, if wanted, an object; and the signing key.

Source: Kubernetes documentation, "Managing Service Accounts"; KEP-1205.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from trainer.kube.clock import Clock, parse_timestamp
from trainer.kube.objects import Object, ObjectKey, metadata_of, name_of, namespace_of, uid_of
from trainer.kube.resource import NODES, PODS, SECRETS, SERVICE_ACCOUNTS, Resource
from trainer_devcluster.apiserver.authentication.user import AUTHENTICATED, User
from trainer_devcluster.apiserver.storage.data_directory import refuse_content, write_private
from trainer_devcluster.apiserver.storage.storage import Partition, Storage

ALGORITHM: Final = "RS256"
ISSUER: Final = "https://kubernetes.default.svc"
"""Issuer of the tokens, and the audience of tokens for the API server."""
_BITS: Final = 2048
_EXPONENT: Final = 65537


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An RSA key pair."""

    private: rsa.RSAPrivateKey
    id: str
    """Names the key in the header of tokens (`kid`): the hash of its public half."""

    @property
    def public(self) -> rsa.RSAPublicKey:
        """The half that everybody may know."""
        return self.private.public_key()


def load_or_create_signing_key(path: Path) -> SigningKey:
    """The key in a file of mode 0600, made when the file does not exist; tokens stay valid over restarts.

    Raises:
        OSError: the file cannot be read or written, or holds no RSA key.
    """
    if path.exists():
        return _loaded(path)
    key = rsa.generate_private_key(_EXPONENT, _BITS)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_private(path, pem)
    return _named(key)


def _loaded(path: Path) -> SigningKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        refuse_content(path, error)
    if not isinstance(key, rsa.RSAPrivateKey):
        refuse_content(path, "it is not an RSA key")
    return _named(key)


def _named(key: rsa.RSAPrivateKey) -> SigningKey:
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return SigningKey(key, base64.urlsafe_b64encode(hashlib.sha256(public).digest()).rstrip(b"=").decode())


USER_PREFIX: Final = "system:serviceaccount:"
BINDABLE: Final[Mapping[str, Resource]] = MappingProxyType({"Pod": PODS, "Secret": SECRETS, "Node": NODES})
"""The kinds that a token can be bound to; it becomes invalid with the object."""

_PRIVATE: Final = "kubernetes.io"
_EXTRA: Final = "authentication.kubernetes.io/"
_KUBELET_SECONDS: Final = 3607
"""Lifetime that the volumes of pods request; old clients read their token file only once."""
_EXTENDED: Final = timedelta(days=365)
_DELETION_LEEWAY: Final = timedelta(seconds=60)
"""Pods end in an orderly way after they have been deleted, and may ask for something on the way."""


class InvalidTokenError(Exception):
    """A token that identifies nobody; the text says why."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The object that a token ends with."""

    kind: str
    """One of `BINDABLE`."""
    name: str
    uid: str
    node: Object | None = None
    """The node of the pod, if it is bound to one."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token."""

    token: str
    """Secret."""
    expires: datetime
    """When its owner should have replaced it."""


class ServiceAccountTokens:
    """Issues tokens and says whose they are."""

    def __init__(self, storage: Storage, key: SigningKey, clock: Clock) -> None:
        self._storage = storage
        self._key = key
        self._clock = clock
        # A client sends the same token with every request, and a signature takes longer than most answers.
        self._claims = lru_cache(maxsize=1024)(self._signed_claims)

    def issue(
        self, account: Object, audiences: Sequence[str], lifetime: timedelta, binding: Binding | None = None
    ) -> IssuedToken:
        """A token for a ServiceAccount."""
        now = self._clock.now().replace(microsecond=0)
        private: dict[str, Any] = {
            "namespace": namespace_of(account),
            "serviceaccount": {"name": name_of(account), "uid": uid_of(account)},
        }
        expires = now + lifetime
        valid_until = expires
        if binding is not None:
            private[binding.kind.lower()] = {"name": binding.name, "uid": binding.uid}
            if binding.node is not None:
                private["node"] = {"name": name_of(binding.node), "uid": uid_of(binding.node)}
            if binding.kind == "Pod" and lifetime == timedelta(seconds=_KUBELET_SECONDS) and ISSUER in audiences:
                private["warnafter"] = int(expires.timestamp())
                valid_until = now + _EXTENDED
        claims = {
            "aud": list(audiences),
            "exp": int(valid_until.timestamp()),
            "iat": int(now.timestamp()),
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            _PRIVATE: private,
            "nbf": int(now.timestamp()),
            "sub": f"{USER_PREFIX}{namespace_of(account)}:{name_of(account)}",
        }
        token = jwt.encode(claims, self._key.private, algorithm=ALGORITHM, headers={"kid": self._key.id, "typ": None})
        return IssuedToken(token, expires)

    def authenticate(self, token: str, audiences: Sequence[str] = (ISSUER,)) -> tuple[User, tuple[str, ...]]:
        """Verify a token; returns its user and the audiences that it is valid for.

        Raises:
            InvalidTokenError: it is forged, for somebody else, expired, or its account or object is gone.
        """
        claims = self._claims(token)
        now = self._clock.now()
        if now >= datetime.fromtimestamp(claims["exp"], UTC):
            raise InvalidTokenError("service account token has expired")
        if now < datetime.fromtimestamp(claims["nbf"], UTC) - _DELETION_LEEWAY:
            raise InvalidTokenError("service account token is not valid yet")
        shared = tuple(audience for audience in audiences if audience in claims["aud"])
        if not shared:
            raise InvalidTokenError(
                f"token audiences {_listed(claims['aud'])} is invalid for the target audiences {_listed(audiences)}"
            )
        private = claims[_PRIVATE]
        namespace, account = private["namespace"], private["serviceaccount"]
        self._require(SERVICE_ACCOUNTS, namespace, account)
        for kind, resource in BINDABLE.items():
            bound = private.get(kind.lower())
            if bound is not None and not (kind == "Node" and "pod" in private):
                self._require(resource, namespace if resource.namespaced else "", bound)
        return service_account(namespace, account["name"], account["uid"], _extra(claims)), shared

    def _signed_claims(self, token: str) -> dict[str, Any]:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key.public,
                algorithms=[ALGORITHM],
                issuer=ISSUER,
                # Who it is for and when it ends is checked with each use, by the clock of the server.
                options={"verify_aud": False, "verify_exp": False, "verify_nbf": False, "verify_iat": False},
            )
        except (jwt.InvalidTokenError, ValueError) as error:
            raise InvalidTokenError("invalid bearer token") from error
        return claims

    def _require(self, resource: Resource, namespace: str, reference: Mapping[str, str]) -> None:
        """Refuse a token whose account or object is not there any more."""
        name = reference["name"]
        described = f"{resource.kind} ({namespace}/{name})" if namespace else f"{resource.kind} ({name})"
        obj = self._storage.get(Partition.of(resource), ObjectKey(namespace, name))
        if obj is None:
            raise InvalidTokenError(f"{described} was not found")
        if uid_of(obj) != reference["uid"]:
            raise InvalidTokenError(f"{described} UID ({uid_of(obj)}) does not match claim ({reference['uid']})")
        deleted = metadata_of(obj).get("deletionTimestamp")
        if deleted and self._clock.now() > parse_timestamp(deleted) + _DELETION_LEEWAY:
            raise InvalidTokenError(f"{described} has been deleted")


def service_account(
    namespace: str, name: str, uid: str = "", extra: Mapping[str, tuple[str, ...]] | None = None
) -> User:
    """A ServiceAccount as a user."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(f"{USER_PREFIX}{namespace}:{name}", groups, uid, MappingProxyType(dict(extra or {})))


def _extra(claims: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {f"{_EXTRA}credential-id": (f"JTI={claims['jti']}",)}
    for kind in ("pod", "node"):
        bound = claims[_PRIVATE].get(kind)
        if bound is not None:
            extra[f"{_EXTRA}{kind}-name"] = (bound["name"],)
            extra[f"{_EXTRA}{kind}-uid"] = (bound["uid"],)
    return extra


def _listed(audiences: Sequence[str]) -> str:
    return "[" + " ".join(f'"{audience}"' for audience in audiences) + "]"
