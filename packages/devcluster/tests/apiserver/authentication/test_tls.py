"""Certificates."""

from __future__ import annotations

import stat
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509

from trainer_devcluster.apiserver.authentication.tls import issue_serving_certificate


def test_authority_stays_and_certificate_is_new(tmp_path: Path) -> None:
    """Old kubeconfig files go on working: only the serving certificate is issued again."""
    first = issue_serving_certificate(tmp_path)
    serving = first.certificate_path.read_bytes()
    second = issue_serving_certificate(tmp_path)
    assert second.ca_pem == first.ca_pem
    assert second.certificate_path.read_bytes() != serving


def test_certificate_names_where_clients_find_the_server(tmp_path: Path) -> None:
    """People use 127.0.0.1 or localhost, pods the address of its Service; both can check its certificate."""
    issued = issue_serving_certificate(tmp_path)
    certificate = x509.load_pem_x509_certificate(issued.certificate_path.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(names.get_values_for_type(x509.IPAddress)) == {IPv4Address("127.0.0.1"), IPv4Address("10.96.0.1")}
    assert "localhost" in names.get_values_for_type(x509.DNSName)
    authority = x509.load_pem_x509_certificate(issued.ca_pem.encode())
    certificate.verify_directly_issued_by(authority)


def test_keys_are_private(tmp_path: Path) -> None:
    """Nobody but the owner reads the keys."""
    issue_serving_certificate(tmp_path)
    for name in ("ca.key", "apiserver.key"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["ca.crt", "ca.key"])
def test_unusable_authority(tmp_path: Path, name: str) -> None:
    """A file that is none of ours is refused with its name."""
    issue_serving_certificate(tmp_path)
    (tmp_path / name).write_text("garbage")
    with pytest.raises(OSError, match="delete it") as caught:
        issue_serving_certificate(tmp_path)
    assert caught.value.filename == str(tmp_path / name)


def test_key_of_another_authority(tmp_path: Path) -> None:
    """A key that does not belong to the authority would sign what nobody trusts."""
    for name in ("one", "two"):
        issue_serving_certificate(tmp_path / name)
    (tmp_path / "one" / "ca.key").write_bytes((tmp_path / "two" / "ca.key").read_bytes())
    with pytest.raises(OSError, match="does not belong"):
        issue_serving_certificate(tmp_path / "one")
