"""Keys of objects in the real server's storage."""

from __future__ import annotations

import pytest

from trainer.kube.objects import ObjectKey
from trainer_devcluster.apiserver.definitions.storage_keys import storage_key
from trainer_devcluster.apiserver.kinds import BUILTIN_KINDS


@pytest.mark.parametrize(
    ("plural", "key", "expected"),
    [
        pytest.param("configmaps", ObjectKey("ns", "a"), "/registry/configmaps/ns/a", id="plain"),
        pytest.param("nodes", ObjectKey("", "a"), "/registry/minions/a", id="old name"),
        pytest.param("services", ObjectKey("ns", "a"), "/registry/services/specs/ns/a", id="two parts"),
        pytest.param("deployments", ObjectKey("ns", "a"), "/registry/deployments/ns/a", id="named group"),
    ],
)
def test_storage_keys(plural: str, key: ObjectKey, expected: str) -> None:
    """Most kinds are kept under their plural; some have older names."""
    definition = next(entry for entry in BUILTIN_KINDS if entry.resource.plural == plural)
    assert storage_key(definition, key) == expected
