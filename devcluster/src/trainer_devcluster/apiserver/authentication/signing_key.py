"""The key that signs the tokens of ServiceAccounts, and what others need to check them."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from trainer_devcluster.apiserver.storage.data_directory import refuse_content, write_private

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.kube.objects import Object

ALGORITHM: Final = "RS256"
ISSUER: Final = "https://kubernetes.default.svc"
"""Who has issued a token, and the audience of those for the API server."""
_BITS: Final = 2048
_EXPONENT: Final = 65537
CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
KEYS_PATH: Final = "/openid/v1/jwks"
KEYS_TYPE: Final = "application/jwk-set+json"


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

    def jwk(self) -> Object:
        """The public half as a JSON Web Key (RFC 7517)."""
        numbers = self.public.public_numbers()
        return {
            "use": "sig",
            "kty": "RSA",
            "kid": self.id,
            "alg": ALGORITHM,
            "n": _unsigned(numbers.n),
            "e": _unsigned(numbers.e),
        }


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
    return SigningKey(key, _base64url(hashlib.sha256(public).digest()))


def _unsigned(number: int) -> str:
    return _base64url(number.to_bytes((number.bit_length() + 7) // 8))


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def configuration(host: str) -> Object:
    """The discovery document of the issuer (OpenID Connect Discovery 1.0).

    Args:
        host: name or address, and port, under which the client has reached the server.
    """
    return {
        "issuer": ISSUER,
        "jwks_uri": f"https://{host}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }


def key_set(key: SigningKey) -> Object:
    """The public keys of the issuer (RFC 7517)."""
    return {"keys": [key.jwk()]}
