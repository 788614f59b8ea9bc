from __future__ import annotations

import pytest

from packages.devcluster.tests.apiserver.http_client import Api


@pytest.mark.parametrize(
    ("collection", "spec", "warnings"),
    [
        pytest.param("apps/v1/namespaces/default/deployments", {"replicas": 2}, 1, id="Deployment"),
        pytest.param("networking.k8s.io/v1/namespaces/default/networkpolicies", {"podSelector": {}}, 1, id="policy"),
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
