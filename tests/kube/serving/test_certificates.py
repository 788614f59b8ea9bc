"""Certificates in files, and those that a server makes for itself."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from cryptography import x509
from structlog.testing import capture_logs

from tests.kube.certificates import Authority, Pair
from tests.kube.conftest import Background
from trainer.kube.errors import ConfigurationError
from trainer.kube.metrics import Metrics
from trainer.kube.serving.certificates import (
    POLL_SECONDS,
    CaBundle,
    FileCertificates,
    SelfSignedCertificates,
    ServingCertificate,
)
from trainer_kube_testing import ManualClock, eventually

AUTHORITY = Authority()
START = datetime(2026, 1, 1, tzinfo=UTC)


class Volume:
    """A mounted Secret: all its files change at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._count = 0

    async def hold(self, pair: Pair, *, key: bytes | None = None) -> None:
        self._count += 1
        version = anyio.Path(self.directory / f"..{self._count}")
        await version.mkdir()
        contents = {"tls.crt": pair.chain, "tls.key": pair.key if key is None else key, "ca.crt": AUTHORITY.pem}
        for name, content in contents.items():
            await (version / name).write_bytes(content)
            link = anyio.Path(self.directory / name)
            if not await link.is_symlink():
                await link.symlink_to(f"..data/{name}")
        new = anyio.Path(self.directory / "..new")
        await new.symlink_to(version.name)
        await new.rename(self.directory / "..data")


class Server:
    """Uses certificates, and refuses those whose key is "broken", or all while it is broken itself."""

    def __init__(self) -> None:
        self.used: list[ServingCertificate] = []
        self.is_broken = False

    async def use(self, certificate: ServingCertificate) -> None:
        if self.is_broken or certificate.key == b"broken":
            raise ConfigurationError("do not belong together")
        self.used.append(certificate)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def counts(metrics: Metrics) -> tuple[float | None, float | None]:
    """How often the files were read, and how often that failed."""
    value = metrics.registry.get_sample_value
    return value("certwatcher_read_certificate_total"), value("certwatcher_read_certificate_errors_total")


async def test_changed_files_are_used(
    tmp_path: Path, clock: ManualClock, metrics: Metrics, background: Background
) -> None:
    """Files are read every ten seconds, and given to the server when they have changed."""
    volume, server = Volume(tmp_path), Server()
    first, second = AUTHORITY.issue("one"), AUTHORITY.issue("two")
    await volume.hold(first)
    certificates = FileCertificates(tmp_path, clock=clock, metrics=metrics)
    background(certificates.run(server.use))
    await eventually(lambda: len(server.used) == 1, within=5)
    await eventually(lambda: clock.sleeping == [POLL_SECONDS], within=5)
    assert (certificates.problem, certificates.ca.pem) == ("", AUTHORITY.pem)
    await clock.advance(POLL_SECONDS)
    await eventually(lambda: counts(metrics) == (2, 0), within=5)
    await eventually(lambda: clock.sleeping == [POLL_SECONDS], within=5)
    await volume.hold(second)
    await clock.advance(POLL_SECONDS)
    await eventually(lambda: len(server.used) == 2, within=5)
    assert [certificate.chain for certificate in server.used] == [first.chain, second.chain]


async def test_broken_files_leave_the_old_in_use(
    tmp_path: Path, clock: ManualClock, metrics: Metrics, background: Background
) -> None:
    """They are counted each time, logged once, and forgotten when the files are fixed."""
    volume, server = Volume(tmp_path), Server()
    pair = AUTHORITY.issue("one")
    await volume.hold(pair)
    certificates = FileCertificates(tmp_path, clock=clock, metrics=metrics)
    with capture_logs() as logs:
        background(certificates.run(server.use))
        await eventually(lambda: len(server.used) == 1, within=5)
        await volume.hold(pair, key=b"broken")
        for _ in range(3):
            await certificates.refresh()
        assert certificates.problem == f"tls.crt and tls.key in {tmp_path} do not belong together"
        assert len(server.used) == 1
        await volume.hold(AUTHORITY.issue("two"))
        await certificates.refresh()
    assert certificates.problem == ""
    assert len(server.used) == 2
    assert counts(metrics) == (5, 3)
    warnings = [entry for entry in logs if entry["log_level"] == "warning"]
    assert [entry["then"] for entry in warnings] == ["keeping the old one"]
    assert all(pair.key.decode() not in str(entry) for entry in logs)


async def test_pair_is_of_one_moment(tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the kubelet replaces the files between the reading of one and the other."""
    volume, server = Volume(tmp_path), Server()
    first, second = AUTHORITY.issue("one"), AUTHORITY.issue("two")
    await volume.hold(second)
    await volume.hold(first)
    read_bytes = Path.read_bytes

    def read_and_replace(path: Path) -> bytes:
        content = read_bytes(path)
        (tmp_path / "..new").symlink_to("..1")
        (tmp_path / "..new").rename(tmp_path / "..data")
        return content

    monkeypatch.setattr(Path, "read_bytes", read_and_replace)
    running = asyncio.create_task(FileCertificates(tmp_path, clock=clock).run(server.use))
    await eventually(lambda: bool(server.used), within=5)
    assert server.used == [ServingCertificate(first.chain, first.key)]
    running.cancel()


async def test_missing_files_are_named(tmp_path: Path, clock: ManualClock, background: Background) -> None:
    """With what to do; once they are there, they are used."""
    certificates, server = FileCertificates(tmp_path, clock=clock), Server()
    background(certificates.run(server.use))
    await eventually(lambda: "cannot read" in certificates.problem, within=5)
    assert f"cannot read {tmp_path}/tls.crt: No such file or directory; put tls.crt" in certificates.problem
    await eventually(lambda: bool(clock.sleeping), within=5)
    await Volume(tmp_path).hold(AUTHORITY.issue("one"))
    await clock.advance(POLL_SECONDS)
    await eventually(lambda: len(server.used) == 1, within=5)


async def test_plain_directory_without_ca(tmp_path: Path, clock: ManualClock, background: Background) -> None:
    """Files need not be a volume, and ca.crt need not be there."""
    pair, server = AUTHORITY.issue("one"), Server()
    await anyio.Path(tmp_path / "tls.crt").write_bytes(pair.chain)
    await anyio.Path(tmp_path / "tls.key").write_bytes(pair.key)
    certificates = FileCertificates(tmp_path, clock=clock)
    background(certificates.run(server.use))
    await eventually(lambda: server.used == [ServingCertificate(pair.chain, pair.key)], within=5)
    assert certificates.ca.pem == b""


async def test_bundle_tells_of_its_change(background: Background) -> None:
    """Who waits for another one gets it, also when it changed before."""
    bundle = CaBundle()
    waiting = background(bundle.other_than(b""))
    bundle.set(b"a")
    assert await waiting == b"a"
    assert await bundle.other_than(b"") == b"a"
    waiting = background(bundle.other_than(b"a"))
    bundle.set(b"a")
    await anyio.lowlevel.checkpoint()
    assert not waiting.done()
    bundle.set(b"b")
    assert await waiting == b"b"


def test_key_is_not_shown() -> None:
    """Neither in logs nor in messages."""
    assert "secret" not in repr(ServingCertificate(b"chain", b"secret"))


async def test_several_servers(tmp_path: Path, clock: ManualClock, metrics: Metrics, background: Background) -> None:
    """Each gets every certificate once, whenever it comes, and the files are read for all of them together."""
    volume, servers = Volume(tmp_path), [Server(), Server()]
    first, second, third = (AUTHORITY.issue(name) for name in ("one", "two", "three"))
    await volume.hold(first)
    certificates = FileCertificates(tmp_path, clock=clock, metrics=metrics)
    running = [background(certificates.run(server.use)) for server in servers]
    await eventually(lambda: all(server.used for server in servers), within=5)
    await eventually(lambda: clock.sleeping == [POLL_SECONDS], within=5)
    await volume.hold(second)
    await clock.advance(POLL_SECONDS)
    await eventually(lambda: all(len(server.used) == 2 for server in servers), within=5)
    await eventually(lambda: clock.sleeping == [POLL_SECONDS], within=5)
    assert counts(metrics) == (3, 0)
    running[0].cancel()
    await eventually(lambda: clock.sleeping == [POLL_SECONDS], within=5)
    await volume.hold(third)
    await clock.advance(POLL_SECONDS)
    await eventually(lambda: len(servers[1].used) == 3, within=5)
    assert len(servers[0].used) == 2
    assert [certificate.chain for certificate in servers[1].used] == [first.chain, second.chain, third.chain]


async def test_self_signed_certificate_is_valid_and_renewed(clock: ManualClock, background: Background) -> None:
    """For a year, and for this machine; the next one comes after two thirds of it."""
    source, server = SelfSignedCertificates(clock=clock), Server()
    background(source.run(server.use))
    await eventually(lambda: server.used, within=10)
    certificate = x509.load_pem_x509_certificate(server.used[0].chain)
    assert certificate.not_valid_after_utc == START + timedelta(days=365)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "localhost" in names.get_values_for_type(x509.DNSName)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(source.ca.pem))
    await clock.advance(timedelta(days=243).total_seconds())
    assert len(server.used) == 1
    await clock.advance(timedelta(days=1).total_seconds())
    await eventually(lambda: len(server.used) == 2, within=10)
    certificate = x509.load_pem_x509_certificate(server.used[1].chain)
    assert certificate.not_valid_after_utc > START + timedelta(days=600)


async def test_server_that_cannot_use_it(clock: ManualClock, background: Background) -> None:
    """The others are served, and the problem is logged until it is over."""
    source, first, second = SelfSignedCertificates(clock=clock), Server(), Server()
    first.is_broken = True
    for server in (first, second):
        background(source.run(server.use))
    await eventually(lambda: second.used, within=10)
    assert source.problem == "the self-signed certificate: do not belong together"
    first.is_broken = False
    await source.refresh()
    assert source.problem == ""
    assert first.used == second.used
