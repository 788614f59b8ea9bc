"""Who may see metrics, as the API server of a dev cluster decides."""

from __future__ import annotations

import base64
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
import anyio
from structlog.testing import capture_logs

from trainer.kube import ConnectionOptions, Manager, ManagerOptions, MetricsServer, MetricsServerOptions, connect
from trainer.kube.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, SERVICE_ACCOUNTS
from trainer_devcluster.apiserver.server import ServerOptions, serve
from trainer_kube_testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trainer.kube import HttpClient, Object

RBAC = "rbac.authorization.k8s.io"


@asynccontextmanager
async def api_server(tmp_path: Path) -> AsyncIterator[HttpClient]:
    """An API server, and its administrator."""
    async with serve(ServerOptions(tmp_path)) as server:
        kubeconfig = anyio.Path(tmp_path / "kubeconfig")
        await kubeconfig.write_text(server.kubeconfig())
        async with connect(ConnectionOptions(kubeconfig=tmp_path / "kubeconfig")) as client:
            yield client


async def token_of(client: HttpClient, name: str, *audiences: str) -> str:
    """A token of a ServiceAccount."""
    spec: Object = {"audiences": list(audiences)} if audiences else {}
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
    answer = await client.create(SERVICE_ACCOUNTS, request, subresource="token")
    token: str = answer["status"]["token"]
    return token


async def let_read_metrics(client: HttpClient, name: str) -> None:
    """What a cluster's owner does for Prometheus."""
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "metrics-reader"}}
    await client.create(CLUSTER_ROLES, role | {"rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]})
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "metrics-reader"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "metrics-reader"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}],
    }
    await client.create(CLUSTER_ROLE_BINDINGS, binding)


async def test_api_server_decides(tmp_path: Path) -> None:
    """Tokens are those of ServiceAccounts, permissions those of ClusterRoles; health is for everybody."""
    clock = ManualClock()
    with capture_logs() as logs:
        async with api_server(tmp_path) as client, anyio.create_task_group() as tasks:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "p", "namespace": "default"}}
            await client.create(SERVICE_ACCOUNTS, account)
            token, elsewhere = await token_of(client, "p"), await token_of(client, "p", "elsewhere")
            manager = Manager(client, clock=clock, options=ManagerOptions(loop_lag=None))
            server = MetricsServer(manager, MetricsServerOptions("127.0.0.1", 0))
            tasks.start_soon(manager.run)
            await server.wait_for_start()

            async def code(token: str, path: str = "/metrics") -> int:
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                url = f"https://127.0.0.1:{server.address[1]}{path}"
                async with session.get(url, headers=headers, ssl=False) as answer:
                    return answer.status

            async with aiohttp.ClientSession() as session:
                assert await code("") == 401
                assert await code("nonsense") == 401
                assert await code(_with_another_name(token)) == 401
                assert await code(elsewhere) == 401
                assert await code(token) == 403
                await let_read_metrics(client, "p")
                assert await code(token) == 403
                await clock.advance(30)
                assert await code(token) == 200
                assert await code(token, "/other") == 403
            manager.stop()
    assert token not in str(logs)


def _with_another_name(token: str) -> str:
    """The token with other claims and the old signature."""
    head, claims, signature = token.split(".")
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    decoded["sub"] = "system:serviceaccount:kube-system:admin"
    forged = base64.urlsafe_b64encode(json.dumps(decoded).encode()).rstrip(b"=").decode()
    return f"{head}.{forged}.{signature}"
