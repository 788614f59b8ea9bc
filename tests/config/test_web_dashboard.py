"""config/dashboard: what it runs is restricted, reached, and may do what it does and nothing else."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import anyio
import pytest
from anyio.to_thread import run_sync

import trainer
from packages.dashboard.tests.conftest import node_pod, train_job
from packages.dashboard.tests.members import READS, TOKEN, ClusterClient
from packages.dashboard.tests.past_trainings import KUBE_SYSTEM
from packages.dashboard.tests.test_cluster_server import serving
from packages.dashboard.tests.test_server import event
from tests.config.kustomized import of_kind, rendered
from tests.config.pod_security import violations
from tests.config.test_references import only, ports
from tests.config.test_roles import VERBS, as_texts, grants
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.kube.objects import Object, labels_of, name_of
from trainer_dashboard.history.database import Database
from trainer_kube_testing import StreamingLists

OF_REVIEWS = {"create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io"}


@pytest.fixture
def objects() -> list[Object]:
    """What config/dashboard applies."""
    return rendered("dashboard")


def test_pod(objects: list[Object]) -> None:
    """Its namespace, which is restricted, takes the pod, which has the image of the manager and all that it names."""
    pod = only(objects, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert violations(pod) == []
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["image"] == f"trainer-operator:{trainer.__version__}"
    assert pod["serviceAccountName"] == name_of(only(objects, "ServiceAccount"))
    assert set(container["resources"]["limits"]) == {"memory"}


def test_history(objects: list[Object]) -> None:
    """The database is that of the recorder with PostgreSQL, and without its Secret the pod starts all the same."""
    (container,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    (recorder,) = only(rendered("history-postgresql"), "Deployment")["spec"]["template"]["spec"]["containers"]
    (own,) = container["env"]
    (its,) = [each for each in recorder["env"] if each["name"] == own["name"]]
    secret = its["valueFrom"]["secretKeyRef"]
    assert own["valueFrom"]["secretKeyRef"] == secret | {"optional": True}


def test_ways_to_the_pod(objects: list[Object]) -> None:
    """Deployment, Service and policy select the pod and not the manager; only the page is reached from outside."""
    template = only(objects, "Deployment")["spec"]["template"]
    service, policy = only(objects, "Service")["spec"], only(objects, "NetworkPolicy")["spec"]
    (manager,) = of_kind(rendered("manager"), "Deployment")
    selectors = (
        only(objects, "Deployment")["spec"]["selector"]["matchLabels"],
        service["selector"],
        policy["podSelector"]["matchLabels"],
    )
    for selector in selectors:
        assert selector.items() <= labels_of(template).items()
        assert not selector.items() <= labels_of(manager["spec"]["template"]).items()
    (rule,) = policy["ingress"]
    assert {port["port"] for port in rule["ports"]} == {port["targetPort"] for port in service["ports"]} == {"page"}
    assert ports(template) == {"page": 8443, "health": 8081}


def test_bindings(objects: list[Object]) -> None:
    """The roles are for the account of the dashboard alone, and the right to impersonate comes apart."""
    for overlay in (objects, rendered("dashboard-impersonation")):
        binding = only(overlay, "ClusterRoleBinding")
        assert binding["roleRef"]["name"] == name_of(only(overlay, "ClusterRole"))
        assert [(each["namespace"], each["name"]) for each in binding["subjects"]] == [
            ("trainer-system", "trainer-dashboard")
        ]
    verbs = {verb for _, _, verb in grants(only(objects, "ClusterRole"))}
    assert verbs == {"list", "watch", "get", "create"}
    (rule,) = only(rendered("dashboard-impersonation"), "ClusterRole")["rules"]
    assert rule["verbs"] == ["impersonate"]


async def test_the_role_allows_what_the_dashboard_does(objects: list[Object], tmp_path: Path) -> None:
    """With a list, a page and the history, whose user may see everything, it asks for what its role allows alone."""
    database = await run_sync(Database, f"sqlite:///{tmp_path}/history.db")
    await run_sync(database.migrate)
    used = {
        request
        for streaming in (StreamingLists.SERVED, StreamingLists.REFUSED)
        for request in await requests_of_pages(streaming, database)
    }
    await run_sync(database.close)
    allowed = grants(only(objects, "ClusterRole"))
    assert as_texts(used - allowed) == set()
    assert as_texts(allowed - used) == OF_REVIEWS


async def requests_of_pages(streaming: StreamingLists, database: Database) -> set[tuple[str, str, str]]:
    """Group, resource and verb of all requests of the dashboard's own account."""
    cluster = ClusterClient(KUBE_SYSTEM, train_job(), node_pod("demo"), event("demo", "Started"))
    cluster.serve(OPTIMIZATION_JOBS)
    cluster.faults.streaming_lists = streaming
    cluster.log("demo-node-0-0-abcde", "default", "node").write(b"hello\n")
    cluster.grant(*READS)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        serving(cluster, database, is_secure=False) as server,
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{server.address}api/trainjobs") as rows,
        session.get(f"{server.address}api/trainjobs/default/demo") as page,
        session.get(f"{server.address}api/history") as past,
    ):
        assert past.status == 200
        await rows.content.readuntil(b"\n\n")
        await page.content.readuntil(b"\n\n")
        with anyio.fail_after(20):
            while not cluster.requests_of("log"):
                await page.content.readany()
    return {
        (request.resource.group, f"{request.resource.plural}{request.subresource and f'/{request.subresource}'}", verb)
        for request in cluster.requests
        for verb in VERBS.get(request.verb, {request.verb})
    }
