"""A key that all servers of the tests share."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from trainer_devcluster.apiserver.authentication import service_account_tokens


@pytest.fixture(scope="session", autouse=True)
def one_signing_key() -> Iterator[None]:
    """All servers of a session sign with one key: to make it is nearly all of what the start of a server costs."""
    key = rsa.generate_private_key(65537, 2048)
    instead = SimpleNamespace(generate_private_key=lambda *_: key, RSAPrivateKey=rsa.RSAPrivateKey)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service_account_tokens, "rsa", instead)
        yield
