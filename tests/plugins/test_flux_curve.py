"""CURVE certificates: a key pair of its own for each TrainJob, as ZeroMQ writes them."""

from __future__ import annotations

import base64
import re

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tests.framework.samples import train_job
from tests.framework.static_reader import StaticReader
from trainer.framework import RuntimeInfo
from trainer.framework.plugin_api.component import unique_name
from trainer.plugins.flux.curve import certificate_mount, certificate_secret, certificate_volume, z85

INFO = RuntimeInfo("demo", "")
NAME = unique_name(train_job(), "flux-curve")
CERTIFICATE = re.compile(
    r"(#[^\n]*\n)+\nmetadata\n    name = \"demo\"\n"
    r"curve\n    public-key = \"(?P<public>\S{40})\"\n    secret-key = \"(?P<secret>\S{40})\"\n"
)


def generated() -> str:
    """A certificate as it is stored."""
    component = certificate_secret(INFO, train_job(), StaticReader())
    assert component.generated is not None
    assert component.object["metadata"]["name"] == NAME
    data = component.generated()["data"]
    assert [*data] == ["curve.cert"]
    return base64.b64decode(data["curve.cert"]).decode()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param(bytes.fromhex("864fd26fb559f75b"), "HelloWorld", id="of-the-specification"),
        pytest.param(b"\xff" * 4, "%nSc0", id="ones"),
        pytest.param(b"", "", id="nothing"),
    ],
)
def test_z85(content: bytes, text: str) -> None:
    """Four bytes become five digits, the highest first."""
    assert z85(content) == text


def test_key_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate names the TrainJob and has both keys in Z85, the public key being that of the secret key."""
    key = X25519PrivateKey.from_private_bytes(bytes(range(32)))
    monkeypatch.setattr(X25519PrivateKey, "generate", lambda: key)
    found = CERTIFICATE.fullmatch(generated())
    assert found is not None
    assert (found["secret"], found["public"]) == (z85(bytes(range(32))), z85(key.public_key().public_bytes_raw()))


def test_every_pair_is_another() -> None:
    """Nothing that others can read, such as the uid of the TrainJob, leads to the key."""
    assert generated() != generated()


def test_files() -> None:
    """The certificate is mounted where the entrypoint looks for it, for its owner only."""
    volume = certificate_volume(INFO, train_job())
    assert volume == {"name": "flux-curve", "secret": {"secretName": NAME, "defaultMode": 0o400}}
    assert certificate_mount() == {"name": "flux-curve", "mountPath": "/curve", "readOnly": True}
