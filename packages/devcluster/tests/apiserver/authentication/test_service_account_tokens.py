"""Tokens of ServiceAccounts: who they are for, and when they end."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from trainer.kube.clock import timestamp
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import NODES, PODS, SERVICE_ACCOUNTS, Resource
from trainer_devcluster.apiserver.authentication.service_account_tokens import (
    ISSUER,
    Binding,
    InvalidTokenError,
    ServiceAccountTokens,
    SigningKey,
    load_or_create_signing_key,
)
from trainer_devcluster.apiserver.storage.storage import Partition, Storage
from trainer_kube_testing.clock import ManualClock

HOUR = timedelta(hours=1)
POD = Binding("Pod", "p", "uid-p", {"metadata": {"name": "laptop", "uid": "uid-laptop"}})


def put(storage: Storage, resource: Resource, key: ObjectKey, **metadata: str) -> None:
    """Store an object that is nothing but metadata."""
    storage.create(Partition.of(resource), key, {"metadata": {"name": key.name, "uid": f"uid-{key.name}", **metadata}})


def change(storage: Storage, resource: Resource, key: ObjectKey, **metadata: str) -> None:
    """Change the metadata of a stored object."""
    partition = Partition.of(resource)
    stored = storage.get(partition, key)
    assert stored is not None
    new = {**stored, "metadata": {**stored["metadata"], **metadata}}
    storage.update(partition, key, new, expected=stored["metadata"]["resourceVersion"])


def claims_of(token: str) -> dict[str, Any]:
    """What a token says, unchecked."""
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return claims


async def test_token_of_a_pod_lasts_longer_than_it_says(
    tokens: ServiceAccountTokens, storage: Storage, account: Object, clock: ManualClock
) -> None:
    """Clients that read the file of a pod only once are let in for a year, as by the real server."""
    put(storage, PODS, ObjectKey("ns", "p"))
    issued = tokens.issue(account, [ISSUER], timedelta(seconds=3607), POD)
    now = int(clock.now().timestamp())
    assert int(issued.expires.timestamp()) == now + 3607
    assert claims_of(issued.token)["kubernetes.io"]["warnafter"] == now + 3607
    await clock.advance(364 * 86400)
    tokens.authenticate(issued.token)
    await clock.advance(86400)
    with pytest.raises(InvalidTokenError, match="expired"):
        tokens.authenticate(issued.token)


async def test_expiry(tokens: ServiceAccountTokens, account: Object, clock: ManualClock) -> None:
    """A token is good up to its last second, also when it has been used before."""
    issued = tokens.issue(account, [ISSUER], HOUR)
    await clock.advance(3599)
    tokens.authenticate(issued.token)
    await clock.advance(1)
    with pytest.raises(InvalidTokenError, match="service account token has expired"):
        tokens.authenticate(issued.token)


def test_audience(tokens: ServiceAccountTokens, account: Object) -> None:
    """A token for one server is worth nothing to another."""
    issued = tokens.issue(account, ["trainer"], HOUR)
    problem = r'token audiences \["trainer"\] is invalid for the target audiences \["other"\]'
    with pytest.raises(InvalidTokenError, match=problem):
        tokens.authenticate(issued.token, ["other"])
    with pytest.raises(InvalidTokenError):
        tokens.authenticate(issued.token)


def test_account_is_gone(tokens: ServiceAccountTokens, storage: Storage, account: Object) -> None:
    """The tokens of a deleted account end with it, also when another one has taken its name."""
    issued = tokens.issue(account, [ISSUER], HOUR)
    tokens.authenticate(issued.token)
    partition, key = Partition.of(SERVICE_ACCOUNTS), ObjectKey("ns", "bot")
    storage.delete(partition, key, expected=account["metadata"]["resourceVersion"])
    with pytest.raises(InvalidTokenError, match="was not found"):
        tokens.authenticate(issued.token)
    storage.create(partition, key, {"metadata": {"name": "bot", "namespace": "ns", "uid": "another"}})
    with pytest.raises(InvalidTokenError, match="does not match claim"):
        tokens.authenticate(issued.token)


@pytest.mark.parametrize(
    ("resource", "key", "binding"),
    [
        pytest.param(PODS, ObjectKey("ns", "p"), Binding("Pod", "p", "uid-p"), id="pod"),
        pytest.param(NODES, ObjectKey("", "n"), Binding("Node", "n", "uid-n"), id="node"),
    ],
)
async def test_bound_object_is_going(
    tokens: ServiceAccountTokens,
    storage: Storage,
    account: Object,
    clock: ManualClock,
    resource: Resource,
    key: ObjectKey,
    binding: Binding,
) -> None:
    """A bound token ends a minute after its object has been deleted, and at once when that is gone."""
    issued = tokens.issue(account, [ISSUER], HOUR, binding)
    with pytest.raises(InvalidTokenError, match="was not found"):
        tokens.authenticate(issued.token)
    put(storage, resource, key)
    tokens.authenticate(issued.token)
    change(storage, resource, key, deletionTimestamp=timestamp(clock.now()))
    await clock.advance(60)
    tokens.authenticate(issued.token)
    await clock.advance(1)
    with pytest.raises(InvalidTokenError, match="has been deleted"):
        tokens.authenticate(issued.token)


def test_forged(storage: Storage, clock: ManualClock, tokens: ServiceAccountTokens, account: Object) -> None:
    """Tokens of another key, without a signature or of another algorithm are nobody's."""
    genuine = tokens.issue(account, [ISSUER], HOUR).token
    claims = claims_of(genuine)
    stranger = SigningKey(rsa.generate_private_key(65537, 2048), "key")
    altered = jwt.encode(claims | {"sub": "x"}, "", algorithm="none")
    header, _, signature = genuine.split(".")
    forgeries = [
        ServiceAccountTokens(storage, stranger, clock).issue(account, [ISSUER], HOUR).token,
        jwt.encode(claims, "", algorithm="none"),
        jwt.encode(claims, "s" * 64, algorithm="HS256"),
        f"{header}.{altered.split('.')[1]}.{signature}",
        genuine[:-4],
        "a.b.c",
        "",
        "\udcff",
        "." * 100_000,
    ]
    for forgery in forgeries:
        with pytest.raises(InvalidTokenError, match=r"^invalid bearer token$"):
            tokens.authenticate(forgery)


def test_key_is_made_once(tmp_path: Path) -> None:
    """Tokens stay valid over restarts: the key is kept, for its owner only."""
    path = tmp_path / "sa.key"
    made = load_or_create_signing_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    again = load_or_create_signing_key(path)
    assert again.id == made.id


def test_unusable_key(tmp_path: Path) -> None:
    """A file that holds no key is refused with its name and the remedy."""
    path = tmp_path / "sa.key"
    path.write_text("nonsense")
    with pytest.raises(OSError, match="delete it"):
        load_or_create_signing_key(path)
