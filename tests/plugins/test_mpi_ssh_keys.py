"""SSH keys: a pair of its own for each TrainJob, in files that ssh and sshd accept."""

from __future__ import annotations

import base64

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key

from tests.framework.samples import train_job
from tests.framework.static_reader import StaticReader
from trainer.framework import RuntimeInfo
from trainer.framework.plugin_api.component import unique_name
from trainer.plugins.mpi.ssh_keys import VOLUME, KeyStyle, key_secret, key_volume, mount

INFO = RuntimeInfo("demo", "")


def generated() -> dict[str, bytes]:
    """A key pair as it is stored."""
    component = key_secret(INFO, train_job(), StaticReader(), KeyStyle())
    assert component.generated is not None
    return {name: base64.b64decode(value) for name, value in component.generated()["data"].items()}


NAME = unique_name(train_job(), "mpi-ssh-auth")


def test_secret() -> None:
    """The Secret is immutable and of the type for SSH keys; what it holds is generated when it is created."""
    assert key_secret(INFO, train_job(), StaticReader(), KeyStyle()).object == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAME, "namespace": "default"},
        "type": "kubernetes.io/ssh-auth",
        "immutable": True,
    }


def test_key_pair() -> None:
    """The private key is in the format of OpenSSH, without a passphrase, and the public key is that of it."""
    pair = generated()
    assert set(pair) == {"ssh-privatekey", "ssh-publickey"}
    key = load_ssh_private_key(pair["ssh-privatekey"], password=None)
    assert isinstance(key, Ed25519PrivateKey)
    assert pair["ssh-privatekey"].endswith(b"-----END OPENSSH PRIVATE KEY-----\n")
    assert pair["ssh-publickey"] == key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n"


def test_every_train_job_has_a_secret_of_its_own() -> None:
    """One that is created again under the same name does not get the key of the one before."""
    first, second = train_job(), train_job()
    second.metadata.uid = "another"
    assert (
        key_secret(INFO, first, StaticReader(), KeyStyle()).object["metadata"]["name"]
        != key_secret(INFO, second, StaticReader(), KeyStyle()).object["metadata"]["name"]
    )


def test_files() -> None:
    """Only its owner can read the private key; the public key is the only one that may log in."""
    volume = key_volume(INFO, train_job(), KeyStyle(), 0o600)
    assert volume["secret"]["secretName"] == NAME
    files = {item["path"]: (item["key"], oct(item["mode"])) for item in volume["secret"]["items"]}
    assert files == {
        "id_rsa": ("ssh-privatekey", "0o600"),
        "id_rsa.pub": ("ssh-publickey", "0o644"),
        "authorized_keys": ("ssh-publickey", "0o644"),
    }
    assert mount(VOLUME, "/keys", KeyStyle()) == {"name": volume["name"], "mountPath": "/keys", "readOnly": True}
