from __future__ import annotations

import pytest

from packages.devcluster.tests.apiserver.http_client import Api
from trainer_devcluster.apiserver.kinds import BUILTIN_KINDS
from trainer_devcluster.apiserver.storage.storage import Partition


def test_kinds_are_served_once() -> None:
    """No two definitions share a URL; only versions of the same objects share names."""
    paths = [definition.resource.path() for definition in BUILTIN_KINDS]
    assert len(set(paths)) == len(paths)
    stored = {Partition.of(definition.resource): definition for definition in BUILTIN_KINDS}
    names = [name for definition in stored.values() for name in (definition.singular, *definition.short_names)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("collection", "spec", "warnings"),
    [
        pytest.param("apps/v1/namespaces/default/deployments", {"replicas": 2}, 1, id="Deployment"),
        pytest.param("networking.k8s.io/v1/namespaces/default/networkpolicies", {"podSelector": {}}, 1, id="policy"),
        pytest.param("policy/v1/namespaces/default/poddisruptionbudgets", {"minAvailable": "50%"}, 0, id="budget"),
    ],
)
async def test_manifests_that_nothing_acts_on(
    api: Api, collection: str, spec: dict[str, object], warnings: int
) -> None:
    """They are checked against their schema and stored as they are; a warning says what will not happen."""
    made = await api("POST", f"/apis/{collection}", {"metadata": {"name": "a"}, "spec": spec})
    assert (made.code, made.body["spec"], len(made.warnings)) == (201, spec, warnings)
    wrong = await api("POST", f"/apis/{collection}", {"metadata": {"name": "b"}, "spec": "x"})
    assert wrong.code == 400
