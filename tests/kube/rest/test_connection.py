"""Finding the API server and the credentials, and using them on a server that speaks TLS."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from tests.kube.certificates import Authority
from tests.kube.secure_server import SecureServer
from trainer.kube.errors import ConfigurationError, UnauthorizedError
from trainer.kube.metrics import Metrics
from trainer.kube.resource import NODES
from trainer.kube.rest import connection
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer_kube_testing import ManualClock

AUTHORITY = Authority()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No configuration of the machine reaches the tests."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def kubeconfig(path: Path, server: str = "https://127.0.0.1:6443", **parts: Any) -> Path:
    """Write a kubeconfig that trusts the authority; `user` and `cluster` add to its parts."""
    ca = base64.b64encode(AUTHORITY.pem).decode()
    cluster = {"server": server, "certificate-authority-data": ca} | parts.get("cluster", {})
    document = {
        "current-context": "one",
        "clusters": [{"name": "one", "cluster": cluster}],
        "users": [{"name": "me", "user": parts.get("user", {"token": "secret"})}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "me"}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


async def connected_to(options: ConnectionOptions | None = None) -> str:
    async with connect(options or ConnectionOptions()) as client:
        return client.server


async def test_order_of_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is: the option, $KUBECONFIG, the service account, ~/.kube/config."""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "environment", "https://environment")))
    named = kubeconfig(tmp_path / "named", "https://named")
    kubeconfig(tmp_path / "home/.kube/config", "https://home")
    assert await connected_to(ConnectionOptions(kubeconfig=named)) == "https://named"
    assert await connected_to() == "https://environment"
    monkeypatch.delenv("KUBECONFIG")
    assert await connected_to() == "https://home"


async def test_kubeconfig_variable_may_list_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for kubectl, separated by colons."""
    first, second = kubeconfig(tmp_path / "a", "https://first"), kubeconfig(tmp_path / "b", "https://second")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{first}:{second}")
    assert await connected_to() == "https://first"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        pytest.param(
            {"cluster": {"certificate-authority-data": base64.b64encode(b"x").decode()}},
            "cluster 'one' in .*config.*: certificate-authority holds no PEM certificate",
            id="ca",
        ),
        pytest.param(
            {"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}}},
            "user 'me' in .*config: exec plugin no-such-plugin: No such file or directory; install it",
            id="plugin",
        ),
    ],
)
async def test_credentials_that_cannot_work_are_found_at_once(
    tmp_path: Path, parts: dict[str, Any], message: str
) -> None:
    """Before the first request, and in one line that names the file and the entry."""
    path = kubeconfig(tmp_path / "config", **parts)
    with pytest.raises(ConfigurationError, match=message) as raised:
        await connected_to(ConnectionOptions(kubeconfig=path))
    assert "\n" not in str(raised.value)


async def test_ca_and_token_of_a_kubeconfig(tmp_path: Path) -> None:
    """The server is checked against the CA and its name; the token is in the header, and the request is counted."""
    metrics = Metrics()
    server = SecureServer(AUTHORITY.server_context("cluster.example"))
    async with server.running() as url:
        path = kubeconfig(tmp_path / "config", url, cluster={"tls-server-name": "cluster.example"})
        async with connect(ConnectionOptions(kubeconfig=path), metrics=metrics) as client:
            assert await client.get(NODES, "n") == {"kind": "Node"}
    assert server.seen == [("Bearer secret", None)]
    labels = {"code": "200", "method": "GET", "host": f"127.0.0.1:{server.port}"}
    assert metrics.registry.get_sample_value("rest_client_requests_total", labels) == 1


async def test_certificates_of_old_clusters(tmp_path: Path) -> None:
    """As kubectl does, it accepts certificates without identifiers of keys, which Python calls invalid since 3.13."""
    authority = Authority(strict=False)
    server = SecureServer(authority.server_context("127.0.0.1"))
    async with server.running() as url:
        data = base64.b64encode(authority.pem).decode()
        path = kubeconfig(tmp_path / "config", url, cluster={"certificate-authority-data": data})
        async with connect(ConnectionOptions(kubeconfig=path)) as client:
            assert await client.get(NODES, "n") == {"kind": "Node"}


async def test_insecure_skip_tls_verify(tmp_path: Path) -> None:
    """insecure-skip-tls-verify accepts any certificate."""
    server = SecureServer(Authority("other").server_context("other.example"))
    async with server.running() as url:
        path = kubeconfig(tmp_path / "config", url, cluster={"insecure-skip-tls-verify": True})
        async with connect(ConnectionOptions(kubeconfig=path)) as client:
            await client.get(NODES, "n")
    assert len(server.seen) == 1


async def test_acting_as_the_owner_of_a_token(tmp_path: Path) -> None:
    """A client for somebody else sends their token, and does not show our client certificate, which would count."""
    pair = AUTHORITY.issue("administrator")
    user = {
        "client-certificate-data": base64.b64encode(pair.chain).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }
    server = SecureServer(AUTHORITY.server_context("127.0.0.1"))
    async with server.running() as url:
        path = kubeconfig(tmp_path / "config", url, user=user)
        async with connect(ConnectionOptions(kubeconfig=path)) as client:
            await client.get(NODES, "n")
            await client.acting_as("of-jane").get(NODES, "n")
            await client.get(NODES, "n")
    assert server.seen == [(None, "administrator"), ("Bearer of-jane", None), (None, "administrator")]


async def test_token_of_somebody_else_that_is_refused(tmp_path: Path) -> None:
    """What is wrong with their token is said of theirs, and ours does not take its place."""
    server = SecureServer(AUTHORITY.server_context("127.0.0.1"))
    server.accepted = {("Bearer secret", None)}
    async with server.running() as url:
        path = kubeconfig(tmp_path / "config", url)
        async with connect(ConnectionOptions(kubeconfig=path)) as client:
            with pytest.raises(UnauthorizedError, match="the token of the request") as raised:
                await client.acting_as("of-jane").get(NODES, "n")
    assert "of-jane" not in str(raised.value)
    assert set(server.seen) == {("Bearer of-jane", None)}


PLUGIN = """
import json, pathlib, sys
counter = pathlib.Path(sys.argv[1])
number = int(counter.read_text() or 0) + 1
counter.write_text(str(number))
status = json.loads(pathlib.Path(sys.argv[2]).read_text())[number - 1]
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""


async def plugin_user(directory: Path, *statuses: dict[str, str]) -> dict[str, Any]:
    """A kubeconfig user whose plugin gives these credentials one after the other."""
    for name, text in (("plugin.py", PLUGIN), ("counter", ""), ("statuses", json.dumps(statuses))):
        await anyio.Path(directory / name).write_text(text)
    arguments = [str(directory / name) for name in ("plugin.py", "counter", "statuses")]
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": arguments}}


async def test_certificates_of_an_exec_plugin(tmp_path: Path, clock: ManualClock) -> None:
    """They are replaced before they expire and after a 401, each time with a new connection."""
    server = SecureServer(AUTHORITY.server_context("127.0.0.1"))
    server.accepted = {(None, "one"), (None, "two")}

    def status(name: str, **more: str) -> dict[str, str]:
        pair = AUTHORITY.issue(name)
        return {"clientCertificateData": pair.chain.decode(), "clientKeyData": pair.key.decode(), **more}

    expiry = "2026-01-01T01:00:00Z"
    user = await plugin_user(tmp_path, status("one", expirationTimestamp=expiry), status("two"), status("three"))
    async with server.running() as url:
        path = kubeconfig(tmp_path / "config", url, user=user)
        async with connect(ConnectionOptions(kubeconfig=path), clock=clock) as client:
            await client.get(NODES, "n")
            await clock.advance(3600 * 24 * 365 * 10)
            await client.get(NODES, "n")
            server.accepted = {(None, "three")}
            await client.get(NODES, "n")
    assert [name for _, name in server.seen] == ["one", "two", "two", "three"]


async def test_token_file_of_a_kubeconfig(tmp_path: Path) -> None:
    """`tokenFile` is read again after a 401, once; without a better token the error says which credentials failed."""
    server = SecureServer(AUTHORITY.server_context("127.0.0.1"))
    server.accepted = {("Bearer two", None)}
    token = anyio.Path(tmp_path / "token")
    await token.write_text("one\n")
    async with server.running() as url:
        path = kubeconfig(tmp_path / "config", url, user={"tokenFile": "token"})
        async with connect(ConnectionOptions(kubeconfig=path)) as client:
            with pytest.raises(
                UnauthorizedError, match=f"does not accept the credentials: the token in {token}; check"
            ):
                await client.get(NODES, "n")
            await token.write_text("two\n")
            await client.get(NODES, "n")
            server.accepted = set()
            await token.write_text("three\n")
            with pytest.raises(UnauthorizedError):
                await client.get(NODES, "n")
    assert [authorization for authorization, _ in server.seen] == [
        f"Bearer {token}" for token in ("one", "one", "two", "two", "three")
    ]


@pytest.fixture
def service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the kubelet mounts into a pod."""
    account = tmp_path / "serviceaccount"
    account.mkdir()
    (account / "token").write_text("pod-token\n")
    (account / "ca.crt").write_bytes(AUTHORITY.pem)
    (account / "namespace").write_text("kubeflow-system")
    monkeypatch.setattr(connection, "SERVICE_ACCOUNT", account)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    return account


async def test_service_account_of_a_pod(
    service_account: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    """Inside a pod the mounted service account is used before ~/.kube/config; a rotated CA and token are followed."""
    kubeconfig(tmp_path / "home/.kube/config", "https://home")
    new = Authority("new")
    old_server = SecureServer(AUTHORITY.server_context("127.0.0.1"))
    new_server = SecureServer(new.server_context("127.0.0.1"))
    async with old_server.running(), new_server.running():
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(old_server.port))
        async with connect(clock=clock) as client:
            assert client.namespace == "kubeflow-system"
            await client.get(NODES, "n")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(new_server.port))
        async with connect(clock=clock) as client:
            await anyio.Path(service_account / "ca.crt").write_bytes(AUTHORITY.pem + new.pem)
            await anyio.Path(service_account / "token").write_text("new-token")
            await clock.advance(60)
            await client.get(NODES, "n")
    assert old_server.seen == [("Bearer pod-token", None)]
    assert new_server.seen == [("Bearer new-token", None)]


@pytest.mark.parametrize("is_there", [pytest.param(False, id="missing"), pytest.param(True, id="empty")])
@pytest.mark.parametrize("name", ["token", "ca.crt", "namespace"])
async def test_incomplete_service_account(service_account: Path, name: str, is_there: bool) -> None:
    """A pod without a mounted token gets an error that says what to check."""
    file = anyio.Path(service_account / name)
    await (file.write_text("\n") if is_there else file.unlink())
    with pytest.raises(ConfigurationError, match="automountServiceAccountToken"):
        await connected_to()


async def test_models_of_kubernetes_are_not_loaded(service_account: Path) -> None:
    """They would take 40 MB of the memory of every manager, and half a second of every command."""
    script = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom trainer.kube.rest import connection\n"
        f"connection.SERVICE_ACCOUNT = Path({str(service_account)!r})\n"
        "async def main():\n    async with connection.connect(): pass\n"
        "asyncio.run(main())\nassert 'kubernetes_asyncio' not in sys.modules"
    )
    result = await anyio.run_process([sys.executable, "-c", script], check=False)
    assert result.returncode == 0, result.stderr.decode()
