"""A ServiceAccount and what issues tokens for it."""

from __future__ import annotations

from functools import cache

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import SERVICE_ACCOUNTS
from trainer_devcluster.apiserver.authentication.service_account_tokens import ServiceAccountTokens, SigningKey
from trainer_devcluster.apiserver.storage.storage import Partition, Storage
from trainer_kube_testing.clock import ManualClock


@cache
def _private_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def storage() -> Storage:
    return Storage()


@pytest.fixture
def account(storage: Storage) -> Object:
    """The ServiceAccount ns/bot."""
    bot: Object = {"metadata": {"name": "bot", "namespace": "ns", "uid": "uid-bot"}}
    return storage.create(Partition.of(SERVICE_ACCOUNTS), ObjectKey("ns", "bot"), bot)


@pytest.fixture
def tokens(storage: Storage, clock: ManualClock) -> ServiceAccountTokens:
    return ServiceAccountTokens(storage, SigningKey(_private_key(), "key"), clock)
