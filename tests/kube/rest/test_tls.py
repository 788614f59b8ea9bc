"""TLS whose certificates change while we run."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from structlog.testing import capture_logs

from tests.kube.certificates import Authority, Pair
from tests.kube.secure_server import SecureServer
from trainer.kube.errors import ConfigurationError, UntrustedServerError
from trainer.kube.metrics import Metrics
from trainer.kube.metrics.requests import RequestMetrics
from trainer.kube.rest.credentials import FixedCredentials
from trainer.kube.rest.request import Request
from trainer.kube.rest.tls import POLL_SECONDS, ClientCertificate, ClientTls, ReloadingTls
from trainer.kube.rest.transport import Endpoint, Transport
from trainer_kube_testing import ManualClock

GET = Request("GET", "/api/v1/nodes/n", {})


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


class Files:
    """CA, certificate and key as a volume holds them."""

    def __init__(self, directory: Path) -> None:
        self.options = ClientTls(
            ca=directory / "ca.crt", certificate=directory / "tls.crt", key=directory / "tls.key", origin="volume"
        )
        self._directory = anyio.Path(directory)

    async def write(self, authority: Authority, pair: Pair) -> None:
        await self.put("ca.crt", authority.pem)
        await self.put("tls.crt", pair.chain)
        await self.put("tls.key", pair.key)

    async def put(self, name: str, content: bytes) -> None:
        await (self._directory / name).write_bytes(content)


@pytest.fixture
async def files(tmp_path: Path, authority: Authority) -> Files:
    files = Files(tmp_path)
    await files.write(authority, authority.issue("old"))
    return files


async def test_context_stays_the_same_while_nothing_changes(files: Files, clock: ManualClock) -> None:
    """Connections are pooled by context: a new one without need would throw them away."""
    tls = ReloadingTls(files.options, clock=clock)
    first = await tls.context()
    await clock.advance(POLL_SECONDS)
    assert await tls.context() is first
    assert not await tls.check_now()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("ca.crt", b"rubbish", "certificate-authority .*ca.crt holds no PEM certificate", id="ca"),
        pytest.param("tls.crt", b"rubbish", "tls.crt and .*tls.key are not a PEM certificate", id="certificate"),
        pytest.param("tls.key", None, "tls.crt and .*tls.key do not belong together", id="half-rotated"),
    ],
)
async def test_unusable_files_keep_the_old_ones(
    files: Files, clock: ManualClock, authority: Authority, name: str, content: bytes | None, message: str
) -> None:
    """A rotation that is under way, or went wrong, is logged and counted once, and repaired by the next poll."""
    metrics = Metrics()
    tls = ReloadingTls(files.options, clock=clock, metrics=RequestMetrics(metrics, "host"))
    first = await tls.context()
    for result in ("success", "error"):
        assert metrics.registry.get_sample_value("trainer_kube_tls_reloads_total", {"result": result}) == 0
    await files.put(name, authority.issue("other").key if content is None else content)
    with capture_logs() as logs:
        for _ in range(3):
            await clock.advance(POLL_SECONDS)
            assert await tls.context() is first
    assert [entry["log_level"] for entry in logs] == ["warning"]
    with pytest.raises(ConfigurationError, match=message) as raised:
        await ReloadingTls(files.options, clock=clock).context()
    assert str(raised.value) == logs[0]["error"]
    await files.write(authority, authority.issue("new"))
    await clock.advance(POLL_SECONDS)
    assert await tls.context() is not first
    for result in ("success", "error"):
        assert metrics.registry.get_sample_value("trainer_kube_tls_reloads_total", {"result": result}) == 1


async def test_missing_file_keeps_the_old_one(files: Files, clock: ManualClock, tmp_path: Path) -> None:
    """A volume that is being replaced may be empty for a moment."""
    tls = ReloadingTls(files.options, clock=clock)
    first = await tls.context()
    await anyio.Path(tmp_path / "ca.crt").unlink()
    await clock.advance(POLL_SECONDS)
    assert await tls.context() is first
    with pytest.raises(ConfigurationError, match=r"volume: cannot read certificate-authority .*ca.crt: No such file"):
        await ReloadingTls(files.options, clock=clock).context()


async def test_encrypted_key_is_refused(tmp_path: Path, authority: Authority) -> None:
    """OpenSSL would ask for the password on the terminal and wait forever."""
    files = Files(tmp_path)
    await files.write(authority, authority.issue("a", password=b"password"))
    with pytest.raises(ConfigurationError, match="encrypted keys do not work"):
        await ReloadingTls(files.options).context()


async def test_key_does_not_stay_on_disk(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL reads keys from files only; ours is gone when it has."""
    directory = tmp_path / "tmp"
    await anyio.Path(directory).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    await ReloadingTls(files.options).context()
    assert [path async for path in anyio.Path(directory).iterdir()] == []


async def test_certificate_of_a_plugin_replaces_that_of_the_files(
    files: Files, clock: ManualClock, authority: Authority
) -> None:
    """A new certificate from the plugin is a new context at once; the same one is not."""
    tls = ReloadingTls(files.options, clock=clock)
    first = await tls.context()
    pair = authority.issue("plugin")
    given = ClientCertificate(pair.chain, pair.key)
    second = await tls.context(given)
    assert second is not first
    assert await tls.context(ClientCertificate(pair.chain, pair.key)) is second


async def test_expired_client_certificate_is_announced(tmp_path: Path, authority: Authority) -> None:
    """The server will answer 401; the log says why beforehand."""
    files = Files(tmp_path)
    await files.write(authority, authority.issue("old", lifetime=timedelta(minutes=-5)))
    with capture_logs() as logs:
        await ReloadingTls(files.options).context()
    assert [entry["event"] for entry in logs] == ["client certificate has expired"]


async def test_bundle_with_comments_in_any_encoding(tmp_path: Path, authority: Authority) -> None:
    """CA bundles carry names between the certificates, in Latin-1 if they are old."""
    ca = "Zürich\n".encode("latin-1") + authority.pem
    assert (await ReloadingTls(ClientTls(ca=ca)).context()).cert_store_stats()["x509_ca"] == 1


async def test_rotation_of_client_certificate_and_ca(tmp_path: Path, clock: ManualClock) -> None:
    """New requests use the new certificate and trust the new CA only, on new connections."""
    old, new = Authority("old"), Authority("new")
    files = Files(tmp_path)
    await files.write(old, old.issue("first"))
    one, two = SecureServer(old.server_context("127.0.0.1")), SecureServer(new.server_context("127.0.0.1"))
    async with one.running() as url, two.running() as other_url:
        endpoint = Endpoint(url, tls=files.options)
        async with Transport(endpoint, FixedCredentials(), user_agent="trainer/test", clock=clock) as transport:
            await transport.fetch(GET)
            await files.write(old, old.issue("second"))
            await transport.fetch(GET)
            await clock.advance(POLL_SECONDS)
            await transport.fetch(GET)
            assert one.seen == [(None, "first"), (None, "first"), (None, "second")]
            assert len(one.connections) == 2
            await files.write(new, new.issue("third"))
            await clock.advance(POLL_SECONDS)
            with pytest.raises(UntrustedServerError):
                await transport.fetch(GET)
        endpoint = Endpoint(other_url, tls=files.options)
        async with Transport(endpoint, FixedCredentials(), user_agent="trainer/test", clock=clock) as transport:
            await transport.fetch(GET)
        assert two.seen == [(None, "third")]


async def test_rejected_client_certificate_is_reloaded(
    tmp_path: Path, clock: ManualClock, authority: Authority
) -> None:
    """A 401 with a certificate from a file looks at the file, and tries again if it has changed."""
    files = Files(tmp_path)
    await files.write(authority, authority.issue("expired"))
    server = SecureServer(authority.server_context("127.0.0.1"))
    server.accepted = {(None, "renewed")}
    async with server.running() as url:
        endpoint = Endpoint(url, tls=files.options)
        async with Transport(endpoint, FixedCredentials(), user_agent="trainer/test", clock=clock) as transport:
            await files.write(authority, authority.issue("renewed"))
            await transport.fetch(GET)
    assert server.seen == [(None, "expired"), (None, "renewed")]


async def test_rotation_does_not_cut_running_streams(tmp_path: Path, clock: ManualClock, authority: Authority) -> None:
    """A watch goes on over its old connection while requests already use the new certificate."""
    files = Files(tmp_path)
    await files.write(authority, authority.issue("old"))
    server = SecureServer(authority.server_context("127.0.0.1"))
    async with server.running() as url:
        endpoint = Endpoint(url, tls=files.options)
        async with (
            Transport(endpoint, FixedCredentials(), user_agent="trainer/test", clock=clock) as transport,
            transport.stream(Request("GET", "/stream", {})) as chunks,
        ):
            assert await anext(chunks) == b"one"
            await files.write(authority, authority.issue("new"))
            await clock.advance(POLL_SECONDS)
            await transport.fetch(GET)
            server.go_on.set()
            assert [chunk async for chunk in chunks] == [b"two"]
    assert server.seen == [(None, "old"), (None, "new")]
