"""Certificates that a server makes for itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509

from tests.kube.conftest import Background
from trainer.kube.errors import ConfigurationError
from trainer.kube.serving.certificates import SelfSignedCertificates, ServingCertificate
from trainer_kube_testing import ManualClock, eventually

START = datetime(2026, 1, 1, tzinfo=UTC)


class Server:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.shown: list[ServingCertificate] = []
        self.fails = False

    async def use(self, certificate: ServingCertificate) -> None:
        if self.fails:
            raise ConfigurationError("cannot be used")
        self.shown.append(certificate)


async def test_certificate_is_valid_and_renewed(clock: ManualClock, background: Background) -> None:
    """For a year, and for this machine; the next one comes after two thirds of it."""
    source, server = SelfSignedCertificates(clock=clock), Server()
    background(source.run(server.use))
    await eventually(lambda: server.shown, within=10)
    certificate = x509.load_pem_x509_certificate(server.shown[0].chain)
    assert certificate.not_valid_after_utc == START + timedelta(days=365)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "localhost" in names.get_values_for_type(x509.DNSName)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(source.ca.pem))
    await clock.advance(timedelta(days=243).total_seconds())
    assert len(server.shown) == 1
    await clock.advance(timedelta(days=1).total_seconds())
    await eventually(lambda: len(server.shown) == 2, within=10)
    certificate = x509.load_pem_x509_certificate(server.shown[1].chain)
    assert certificate.not_valid_after_utc > START + timedelta(days=600)


async def test_server_that_cannot_use_it(clock: ManualClock, background: Background) -> None:
    """The others are served, and the problem is logged until it is over."""
    source, first, second = SelfSignedCertificates(clock=clock), Server(), Server()
    first.fails = True
    for server in (first, second):
        background(source.run(server.use))
    await eventually(lambda: second.shown, within=10)
    assert source.problem == "the self-signed certificate: cannot be used"
    first.fails = False
    await source.refresh()
    assert source.problem == ""
    assert first.shown == second.shown
