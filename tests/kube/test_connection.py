"""Finding the API server and the credentials."""

from __future__ import annotations

import base64
import json
import ssl
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from trainer.kube import connection
from trainer.kube.connection import ConnectionOptions, connect
from trainer.kube.errors import ConfigurationError, TransportError
from trainer.kube.resource import NODES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No configuration of the machine reaches the tests."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def kubeconfig(path: Path, server: str = "https://127.0.0.1:6443", **parts: Any) -> Path:
    """Write a kubeconfig with one context; `user`, `cluster` and `context` add to its parts."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "one", "cluster": {"server": server} | parts.get("cluster", {})}],
        "users": [{"name": "me", "user": parts.get("user", {"token": "secret"})}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "me"} | parts.get("context", {})}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


async def connected_to(options: ConnectionOptions | None = None) -> str:
    async with connect(options or ConnectionOptions()) as client:
        return client.server


async def test_named_file_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is: the option, $KUBECONFIG, the service account, ~/.kube/config."""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "environment", "https://environment")))
    named = kubeconfig(tmp_path / "named", "https://named")
    kubeconfig(tmp_path / "home/.kube/config", "https://home")
    assert await connected_to(ConnectionOptions(kubeconfig=named)) == "https://named"
    assert await connected_to() == "https://environment"
    monkeypatch.delenv("KUBECONFIG")
    assert await connected_to() == "https://home"


async def test_kubeconfig_list_is_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """$KUBECONFIG may list files; missing ones are skipped, the first value of a name counts."""
    first = kubeconfig(tmp_path / "a", "https://first")
    second = kubeconfig(tmp_path / "b", "https://second")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{first}:{second}")
    assert await connected_to() == "https://first"


async def test_context_gives_server_and_namespace(tmp_path: Path) -> None:
    """The namespace of the context is for callers that name none."""
    path = kubeconfig(tmp_path / "config", context={"namespace": "team"})
    async with connect(ConnectionOptions(kubeconfig=path, context="one")) as client:
        assert client.namespace == "team"
    async with connect(ConnectionOptions(kubeconfig=kubeconfig(tmp_path / "config"))) as client:
        assert client.namespace == "default"


@pytest.mark.parametrize(
    ("write", "options", "message"),
    [
        pytest.param(lambda _: None, {}, "no kubeconfig: .*config does not exist", id="missing"),
        pytest.param(lambda path: path.write_text("{: bad"), {}, "cannot use kubeconfig .*config: ", id="not-yaml"),
        pytest.param(lambda path: path.write_text("- a"), {}, "cannot use kubeconfig .*config: ", id="not-a-mapping"),
        pytest.param(lambda path: path.write_text(""), {}, "cannot use kubeconfig .*config: ", id="empty"),
        pytest.param(kubeconfig, {"context": "two"}, "cannot use kubeconfig .*two", id="unknown-context"),
        pytest.param(lambda path: kubeconfig(path, ""), {}, "the cluster has no server", id="no-server"),
        pytest.param(
            lambda path: kubeconfig(path, context={"user": "you"}), {}, "no user 'you'", id="unknown-user"
        ),
        pytest.param(
            lambda path: kubeconfig(path, cluster={"certificate-authority": "missing.crt"}),
            {},
            "cannot use kubeconfig .*missing.crt",
            id="missing-ca",
        ),
        pytest.param(
            lambda path: kubeconfig(path, cluster={"proxy-url": "socks5://localhost:1080"}),
            {},
            "proxy socks5://localhost:1080 .*is not supported",
            id="socks",
        ),
        pytest.param(lambda path: kubeconfig(path, context={"user": ""}), {}, "names no user", id="no-user"),
        pytest.param(
            lambda path: kubeconfig(path, user={"tokenFile": "missing"}),
            {},
            "cannot use kubeconfig .*missing",
            id="missing-token-file",
        ),
        pytest.param(
            lambda path: kubeconfig(path, user={"exec": {"apiVersion": "v1", "command": "no-such-plugin"}}),
            {},
            "cannot use kubeconfig .*no-such-plugin",
            id="missing-plugin",
        ),
    ],
)  # fmt: skip
async def test_unusable_configuration_is_one_clear_line(
    tmp_path: Path, write: Any, options: dict[str, str], message: str
) -> None:
    """The error names the file and what is wrong with it."""
    path = tmp_path / "config"
    write(path)
    with pytest.raises(ConfigurationError, match=message) as raised:
        await connected_to(ConnectionOptions(kubeconfig=path, **options))
    assert "\n" not in str(raised.value)


class SecureServer:
    """An HTTPS server with a CA of its own, which wants client certificates when told so."""

    def __init__(self, directory: Path) -> None:
        self.ca, ca_key = _certificate("ca")
        self.client, self.client_key = _certificate("client", self.ca, ca_key)
        certificate, key = _certificate("127.0.0.1", self.ca, ca_key)
        (directory / "server.pem").write_bytes(_pem(certificate) + _pem_key(key))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(directory / "server.pem")
        self.context.load_verify_locations(cadata=_pem(self.ca).decode())
        self.seen: list[tuple[str | None, str | None]] = []
        self.accepted: set[str | None] | None = None

    async def start(self) -> TestServer:
        application = web.Application()
        application.router.add_get("/{path:.*}", self._answer)
        server = TestServer(application)
        await server.start_server(ssl=self.context)
        return server

    async def _answer(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert") or {}
        names = [value for part in peer.get("subject", ()) for name, value in part if name == "commonName"]
        authorization = request.headers.get("Authorization")
        self.seen.append((authorization, names[0] if names else None))
        if self.accepted is not None and authorization not in self.accepted:
            return web.json_response(
                {"kind": "Status", "reason": "Unauthorized", "message": "Unauthorized"}, status=401
            )
        return web.json_response({"kind": "Node"})


def _certificate(
    name: str, issuer: x509.Certificate | None = None, issuer_key: ec.EllipticCurvePrivateKey | None = None
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer is not None else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if name == "127.0.0.1":
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("cluster.example")]), critical=False)
    return builder.sign(issuer_key or key, hashes.SHA256()), key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _pem_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _data(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


@pytest.fixture
def secure(tmp_path: Path) -> SecureServer:
    return SecureServer(tmp_path)


async def test_ca_and_token_of_a_kubeconfig(secure: SecureServer, tmp_path: Path) -> None:
    """The server is checked against the CA and its name; the token goes into the header."""
    server = await secure.start()
    cluster = {"certificate-authority-data": _data(_pem(secure.ca)), "tls-server-name": "cluster.example"}
    path = kubeconfig(tmp_path / "config", str(server.make_url("/")), cluster=cluster)
    async with connect(ConnectionOptions(kubeconfig=path)) as client:
        assert await client.get(NODES, "n") == {"kind": "Node"}
    assert secure.seen == [("Bearer secret", None)]
    await server.close()


async def test_client_certificate_of_a_kubeconfig(
    secure: SecureServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate identifies the client without a header; its key does not stay in temporary files."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    secure.context.verify_mode = ssl.CERT_REQUIRED
    server = await secure.start()
    cluster = {"certificate-authority-data": _data(_pem(secure.ca)), "tls-server-name": "cluster.example"}
    user = {
        "client-certificate-data": _data(_pem(secure.client)),
        "client-key-data": _data(_pem_key(secure.client_key)),
    }
    path = kubeconfig(tmp_path / "config", str(server.make_url("/")), cluster=cluster, user=user)
    async with connect(ConnectionOptions(kubeconfig=path)) as client:
        await client.get(NODES, "n")
    assert secure.seen == [(None, "client")]
    assert not list((tmp_path / "tmp").iterdir())
    await server.close()


@pytest.mark.parametrize(
    "cluster",
    [pytest.param({}, id="other-ca"), pytest.param({"certificate-authority": "ca.crt"}, id="other-name")],
)
async def test_untrusted_server_is_refused(secure: SecureServer, tmp_path: Path, cluster: dict[str, str]) -> None:
    """No request reaches a server that is not the one in the kubeconfig."""
    server = await secure.start()
    await anyio.Path(tmp_path / "ca.crt").write_bytes(_pem(secure.ca))
    path = kubeconfig(tmp_path / "config", str(server.make_url("/")), cluster=cluster)
    async with connect(ConnectionOptions(kubeconfig=path)) as client:
        with pytest.raises(TransportError, match="certificate"):
            await client.get(NODES, "n")
    assert secure.seen == []
    await server.close()


async def test_insecure_skip_tls_verify(secure: SecureServer, tmp_path: Path) -> None:
    """Whoever asks for no checks gets none."""
    server = await secure.start()
    path = kubeconfig(tmp_path / "config", str(server.make_url("/")), cluster={"insecure-skip-tls-verify": True})
    async with connect(ConnectionOptions(kubeconfig=path)) as client:
        await client.get(NODES, "n")
    await server.close()


PLUGIN = """
import json, pathlib, sys
counter = pathlib.Path(sys.argv[1])
number = int(counter.read_text() or 0) + 1
counter.write_text(str(number))
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                  "status": {"token": f"token-{number}"}}))
"""


async def test_exec_plugin_runs_again_after_a_401(secure: SecureServer, tmp_path: Path) -> None:
    """An expired token of a plugin is replaced without the caller noticing."""
    secure.accepted = {"Bearer token-2"}
    server = await secure.start()
    await anyio.Path(tmp_path / "plugin.py").write_text(PLUGIN)
    await anyio.Path(tmp_path / "counter").write_text("")
    arguments = [str(tmp_path / "plugin.py"), str(tmp_path / "counter")]
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": arguments}}
    cluster = {"insecure-skip-tls-verify": True}
    path = kubeconfig(tmp_path / "config", str(server.make_url("/")), cluster=cluster, user=user)
    async with connect(ConnectionOptions(kubeconfig=path)) as client:
        assert await client.get(NODES, "n") == {"kind": "Node"}
    assert [authorization for authorization, _ in secure.seen] == ["Bearer token-1", "Bearer token-2"]
    await server.close()


async def test_token_file_of_a_kubeconfig(secure: SecureServer, tmp_path: Path) -> None:
    """`tokenFile` is relative to the kubeconfig, outranks `token`, and is read again after a 401."""
    secure.accepted = {"Bearer two"}
    server = await secure.start()
    token = anyio.Path(tmp_path / "keys/token")
    await token.parent.mkdir()
    await token.write_text("one\n")
    path = kubeconfig(
        tmp_path / "config",
        str(server.make_url("/")),
        cluster={"insecure-skip-tls-verify": True},
        user={"tokenFile": "keys/token", "token": "static"},
    )
    async with connect(ConnectionOptions(kubeconfig=path)) as client:
        with pytest.raises(Exception, match="does not accept the credentials"):
            await client.get(NODES, "n")
        await token.write_text("two\n")
        await client.get(NODES, "n")
    assert [authorization for authorization, _ in secure.seen] == ["Bearer one", "Bearer one", "Bearer two"]
    await server.close()


async def test_service_account_of_a_pod(secure: SecureServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside a pod the mounted service account is used, before ~/.kube/config."""
    account = tmp_path / "serviceaccount"
    account.mkdir()
    (account / "token").write_text("pod-token\n")
    (account / "ca.crt").write_bytes(_pem(secure.ca))
    (account / "namespace").write_text("kubeflow-system")
    kubeconfig(tmp_path / "home/.kube/config", "https://home")
    monkeypatch.setattr(connection, "SERVICE_ACCOUNT", account)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    async with connect() as client:
        assert client.server == "https://10.0.0.1:443"
        assert client.namespace == "kubeflow-system"
        assert await client._transport._credentials.authorization() == "Bearer pod-token"


async def test_incomplete_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod without a mounted token is told what to check."""
    monkeypatch.setattr(connection, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(ConfigurationError, match="automountServiceAccountToken"):
        await connected_to()


@pytest.mark.parametrize(
    ("server", "no_proxy", "expected"),
    [
        pytest.param("https://cluster.example", "", "http://proxy:3128", id="remote"),
        pytest.param("https://cluster.example", "cluster.example", None, id="no-proxy"),
        pytest.param("https://127.0.0.1:6443", "", None, id="loopback"),
    ],
)
async def test_proxy_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, no_proxy: str, expected: str | None
) -> None:
    """$HTTPS_PROXY applies to remote clusters only."""
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", no_proxy)
    async with connect(ConnectionOptions(kubeconfig=kubeconfig(tmp_path / "config", server))) as client:
        assert client._transport.endpoint.proxy == expected


async def test_secrets_are_not_in_errors(tmp_path: Path) -> None:
    """A kubeconfig that cannot be used does not leak its token."""
    path = kubeconfig(tmp_path / "config", context={"cluster": "other"}, user={"token": "top-secret"})
    with pytest.raises(ConfigurationError) as raised:
        await connected_to(ConnectionOptions(kubeconfig=path))
    assert "top-secret" not in json.dumps(str(raised.value))
