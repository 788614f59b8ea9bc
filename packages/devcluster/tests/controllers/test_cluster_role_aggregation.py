"""ClusterRoles that take their rules from others."""

from __future__ import annotations

import pytest

from packages.devcluster.tests.controllers.cached_server import lister_of
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import CLUSTER_ROLES
from trainer_devcluster.controllers.cluster_role_aggregation import (
    AggregationReconciler,
)
from trainer_kube_testing import FakeClient

PODS: Object = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
JOBS: Object = {"verbs": ["get"], "apiGroups": ["batch"], "resources": ["jobs"]}


def role(
    name: str, *rules: Object, labels: dict[str, str] | None = None, selects: list[Object] | None = None
) -> Object:
    """A ClusterRole."""
    obj: Object = {
        "apiVersion": CLUSTER_ROLES.api_version,
        "kind": "ClusterRole",
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": labels or {}},
        "rules": list(rules) or None,
    }
    return obj | ({"aggregationRule": {"clusterRoleSelectors": selects}} if selects is not None else {})


TO_VIEW = {"matchLabels": {"to-view": "true"}}


@pytest.mark.parametrize(
    ("stored", "requests"),
    [
        pytest.param(role("view", JOBS, selects=[TO_VIEW]), 1, id="different"),
        pytest.param(role("view", JOBS), 0, id="not aggregated"),
    ],
)
async def test_only_what_differs_is_written(stored: Object, requests: int) -> None:
    """A role that has the rules that it shall have, or has rules of its own, is left alone."""
    source = role("a", PODS, labels={"to-view": "true"})
    server = FakeClient(stored, source)
    cached = await server.get(CLUSTER_ROLES, "view")
    await AggregationReconciler(server, lister_of(cached, source)).reconcile(ObjectKey("", "view"))
    written = [request for request in server.requests if request.verb == "apply"]
    assert len(written) == requests
    if requests:
        assert (await server.get(CLUSTER_ROLES, "view"))["rules"] == [PODS]
