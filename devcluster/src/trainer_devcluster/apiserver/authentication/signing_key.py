"""The key that signs the tokens of ServiceAccounts."""

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


ALGORITHM: Final = "RS256"
ISSUER: Final = "https://kubernetes.default.svc"
"""Who has issued a token, and the audience of those for the API server."""
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
