"""Nobody but the user's page gets anything about the cluster."""

from __future__ import annotations

import pytest

from packages.dashboard.tests.conftest import PAGE, UserClient, running, train_job, visiting
from trainer.v1alpha1.discovery import V2ALPHA1
from trainer_dashboard.access.authenticator import LoopbackAuthenticator
from trainer_dashboard.server import Dashboard, DashboardOptions

API = [
    pytest.param("GET", "/api/cluster", id="cluster"),
    pytest.param("GET", "/api/trainjobs", id="list"),
    pytest.param("GET", "/api/trainjobs/default/demo", id="page"),
    pytest.param("GET", "/api/trainjobs/default/demo/yaml", id="yaml"),
    pytest.param("GET", "/api/trainjobs/default/demo/rights", id="rights"),
    pytest.param("GET", "/api/rights/default", id="rights-of-a-namespace"),
    pytest.param("GET", "/api/logs/default?source=p/c", id="logs"),
    pytest.param("POST", "/api/trainjobs/default/demo/suspend", id="suspend"),
    pytest.param("DELETE", "/api/trainjobs/default/demo", id="delete"),
    pytest.param("GET", "/api/trainjobs/default/demo/explanation", id="explanation"),
    pytest.param("GET", "/api/trainjobs/default/demo/built", id="objects"),
    pytest.param("GET", "/api/trainjobs/default/demo/copy", id="copy"),
    pytest.param("POST", "/api/trainjobs/default/demo/scale", id="scale"),
    pytest.param("POST", "/api/trainjobs", id="create"),
    pytest.param("POST", "/api/trials", id="try"),
    pytest.param("GET", "/api/draft", id="draft"),
    pytest.param("GET", "/api/runtimes", id="runtimes"),
    pytest.param("GET", "/api/runtimes/default/plain/yaml", id="runtime"),
    pytest.param("GET", "/api/clusterruntimes/plain/yaml", id="cluster-runtime"),
    pytest.param("GET", "/api/metrics?job=default/demo", id="comparison"),
    pytest.param("GET", "/api/capacity", id="capacity"),
    pytest.param("GET", "/api/queues", id="queues"),
    pytest.param("GET", "/api/history", id="history"),
    pytest.param("GET", "/api/history/default/demo/uid-of-demo", id="past-training"),
    pytest.param("GET", "/api/sweeps", id="sweeps"),
    pytest.param("GET", "/api/sweeps/default/digits", id="sweep"),
    pytest.param("GET", "/api/sweeps/default/digits/trials/1/copy", id="trial"),
    pytest.param("POST", "/api/sweeps/default/digits/suspend", id="suspend-sweep"),
    pytest.param("DELETE", "/api/sweeps/default/digits", id="delete-sweep"),
    pytest.param("GET", "/api/nothing", id="nothing"),
]


@pytest.mark.parametrize(("method", "path"), API)
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer \xff"}])
async def test_token(client: UserClient, method: str, path: str, headers: dict[str, str]) -> None:
    """Without the token nothing is answered, and nothing asked of the cluster."""
    client.add(train_job())
    async with visiting(client) as visitor:
        before = len(client.requests_of("get", "patch", "delete", "log"))
        status, content = await visitor.json(path, method, token="", headers=headers, json={"uid": "uid-of-demo"})
        assert status == 401
        assert "trainer dashboard" in content["error"]
        assert len(client.requests_of("get", "patch", "delete", "log")) == before


@pytest.mark.parametrize("path", ["/", "/assets/dashboard.js", "/api/cluster"])
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", ""])
async def test_host(client: UserClient, path: str, host: str) -> None:
    """Under another name there is no answer, token or not (DNS rebinding)."""
    async with visiting(client) as visitor:
        port = visitor.dashboard.address.rstrip("/").rpartition(":")[2]
        status, content = await visitor.json(path, headers={"Host": host.format(port=port)})
        assert status == 421
        assert "another" in content["error"] or "instead" in content["error"]


async def test_names_of_loopback(client: UserClient) -> None:
    """Both names of loopback may be used."""
    async with visiting(client) as visitor:
        port = visitor.dashboard.address.rstrip("/").rpartition(":")[2]
        status, _ = await visitor.json("/api/cluster", headers={"Host": f"localhost:{port}"})
        assert status == 200


async def test_code(client: UserClient) -> None:
    """The code that the browser is opened with gives the token once, and is no token."""
    async with visiting(client) as visitor:
        assert (await visitor.json("/api/cluster", token=visitor.code))[0] == 401
        assert (await visitor.json("/api/session", "POST", token="wrong"))[0] == 401
        assert await visitor.json("/api/session", "POST", token=visitor.code) == (200, {"token": visitor.token})
        assert (await visitor.json("/api/session", "POST", token=visitor.code))[0] == 401
        assert (await visitor.json("/api/session", "POST", token=visitor.token))[0] == 401


async def test_exchange_is_announced(client: UserClient) -> None:
    """Whoever waits for the code to be used learns of it, once."""
    calls: list[str] = []
    authenticator = LoopbackAuthenticator(client, on_exchange=lambda: calls.append("exchanged"))
    dashboard = Dashboard(client, V2ALPHA1, DashboardOptions(), authenticator=authenticator, bundle=PAGE)
    async with running(dashboard) as visitor:
        await visitor.json("/api/session", "POST", token="wrong")
        assert calls == []
        for _ in range(2):
            await visitor.json("/api/session", "POST", token=authenticator.code)
    assert calls == ["exchanged"]


@pytest.mark.parametrize("path", ["/", "/jobs/default/demo", "/assets/dashboard.js", "/api/cluster", "/api/trainjobs"])
async def test_headers(client: UserClient, path: str) -> None:
    """Every answer forbids what the page does not need, and allows no other origin anything."""
    async with visiting(client) as visitor, visitor.ask(path, headers={"Origin": "https://evil.example"}) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["Cache-Control"] == ("no-cache" if path.startswith("/assets/") else "no-store")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


async def test_preflight(client: UserClient) -> None:
    """Another origin is not allowed to send the token."""
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    async with visiting(client) as visitor:
        for path, status in (("/api/cluster", 401), ("/", 405)):
            async with visitor.ask(path, "OPTIONS", token="", headers=headers) as answer:
                assert answer.status == status
                assert "Access-Control-Allow-Origin" not in answer.headers
