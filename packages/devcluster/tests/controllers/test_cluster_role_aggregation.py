"""ClusterRoles that take their rules from others."""

from __future__ import annotations

from pathlib import Path

import pytest

from packages.devcluster.tests.controllers.cached_server import lister_of
from packages.devcluster.tests.controllers.cluster import dev_cluster
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import CLUSTER_ROLES
from trainer_devcluster.controllers.cluster_role_aggregation import (
    FIELD_MANAGER,
    AggregationReconciler,
    aggregated_rules,
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
TO_EDIT = {"matchExpressions": [{"key": "to-edit", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("selects", "others", "rules"),
    [
        pytest.param([TO_VIEW], [], [], id="nothing"),
        pytest.param(
            [TO_VIEW],
            [role("b", JOBS, labels={"to-view": "true"}), role("a", PODS, labels={"to-view": "true"})],
            [PODS, JOBS],
            id="by name",
        ),
        pytest.param(
            [TO_EDIT, TO_VIEW],
            [role("a", PODS, labels={"to-view": "true"}), role("b", JOBS, PODS, labels={"to-edit": ""})],
            [JOBS, PODS],
            id="by selector, each once",
        ),
        pytest.param([TO_VIEW], [role("a", PODS, labels={"to-view": "false"})], [], id="other labels"),
        pytest.param([TO_VIEW], [role("view", PODS, labels={"to-view": "true"})], [], id="not itself"),
        pytest.param([TO_VIEW], [role("a", labels={"to-view": "true"})], [], id="a role without rules"),
    ],
)
def test_rules(selects: list[Object], others: list[Object], rules: list[Object]) -> None:
    """A role has the rules of all others that one of its selectors matches."""
    assert aggregated_rules(role("view", selects=selects), others) == rules


@pytest.mark.parametrize(
    ("stored", "requests"),
    [
        pytest.param(role("view", selects=[TO_VIEW]), 1, id="missing"),
        pytest.param(role("view", JOBS, selects=[TO_VIEW]), 1, id="different"),
        pytest.param(role("view", PODS, selects=[TO_VIEW]), 0, id="right"),
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


async def test_role_that_is_gone_is_no_error() -> None:
    """The queue may hold a role a little longer than it exists."""
    await AggregationReconciler(FakeClient(), lister_of()).reconcile(ObjectKey("", "view"))


async def test_roles_of_the_cluster(tmp_path: Path) -> None:
    """`admin`, `edit` and `view` are filled, and a role with their label adds to all that are made of it."""
    async with dev_cluster(tmp_path) as cluster, cluster.controllers():

        async def rules_of(name: str) -> list[Object]:
            return (await cluster.client.get(CLUSTER_ROLES, name))["rules"] or []

        async def filled() -> bool:
            counts = [len(await rules_of(name)) for name in ("view", "edit", "admin")]
            return 0 < counts[0] < counts[1] < counts[2]

        await cluster.until(filled)
        widgets: Object = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}
        label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
        await cluster.create(CLUSTER_ROLES, {"metadata": {"name": "widgets", "labels": label}, "rules": [widgets]})

        async def spread() -> bool:
            return all([widgets in await rules_of(name) for name in ("view", "edit", "admin")])

        await cluster.until(spread)
        managers = (await cluster.client.get(CLUSTER_ROLES, "view"))["metadata"]["managedFields"]
        assert (FIELD_MANAGER, "Apply") in [(entry["manager"], entry["operation"]) for entry in managers]
        await cluster.client.delete(CLUSTER_ROLES, "widgets")

        async def gone() -> bool:
            return not any([widgets in await rules_of(name) for name in ("view", "edit", "admin")])

        await cluster.until(gone)
        with pytest.raises(NotFoundError):
            await cluster.client.get(CLUSTER_ROLES, "widgets")
