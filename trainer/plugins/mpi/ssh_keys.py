"""The SSH key of launcher and nodes: created once for each TrainJob, and mounted in all its pods.

Who may read the key decides whether SSH works:

* root needs nothing: the key has mode 0600, and ssh refuses one that others can read.
* Another user needs `securityContext.fsGroup` in launcher and nodes: Kubernetes then lets this group read the key,
  which ssh accepts because it belongs to root. Root itself must do without fsGroup.
* sshd needs `StrictModes no`: Kubernetes mounts Secrets in directories that everybody may write to.

The key is called id_rsa although it is an Ed25519 key: ssh looks for this name in ~/.ssh and takes keys of any type
there, and the sshd of the images of the MPI Operator takes it for its host key.

Launchers do not check host keys, which are as young as the pods, and which nobody could have told them. Only who has
the key of this very TrainJob can log in, and a node that pretends to be another would need to take its DNS name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from trainer.framework import PodSecret

if TYPE_CHECKING:
    from trainer.api.trainjob import TrainJob
    from trainer.framework import Component, Reader
    from trainer.kube.objects import Object

VOLUME = "mpi-ssh-auth"
"""Name of the volume with the keys."""

KEYS = PodSecret(VOLUME, "kubernetes.io/ssh-auth")
"""The Secrets with the keys."""

_PRIVATE_KEY, _PUBLIC_KEY = "ssh-privatekey", "ssh-publickey"
_FILE = "id_rsa"
_PRIVATE_MODE, _PUBLIC_MODE = 0o600, 0o644


def key_secret(train_job: TrainJob, reader: Reader) -> Component:
    """The Secret of this TrainJob; its key pair is generated at creation and kept nowhere else."""
    return KEYS.component(train_job, reader, _key_pair)


def key_volume(train_job: TrainJob) -> Object:
    """The volume with both keys, and with the public key as the only authorized one."""
    return {
        "name": VOLUME,
        "secret": {
            "secretName": KEYS.name(train_job),
            "defaultMode": _PRIVATE_MODE,
            "items": [
                {"key": _PRIVATE_KEY, "path": _FILE, "mode": _PRIVATE_MODE},
                {"key": _PUBLIC_KEY, "path": f"{_FILE}.pub", "mode": _PUBLIC_MODE},
                {"key": _PUBLIC_KEY, "path": "authorized_keys", "mode": _PUBLIC_MODE},
            ],
        },
    }


def key_mount(directory: str) -> Object:
    """The mount of the keys in a container."""
    return {"name": VOLUME, "mountPath": directory, "readOnly": True}


def ssh_options(directory: str, port: int | None) -> str:
    """Options of ssh with which it needs no configuration in the image.

    Args:
        directory: where the keys are.
        port: of sshd; None for what the configuration of ssh says.
    """
    options = [
        "-o BatchMode=yes",
        "-o ConnectionAttempts=10",
        "-o LogLevel=ERROR",
        "-o StrictHostKeyChecking=no",
        "-o UserKnownHostsFile=/dev/null",
        f"-i {directory.rstrip('/')}/{_FILE}",
    ]
    return " ".join(options if port is None else [*options, f"-p {port}"])


def _key_pair() -> dict[str, bytes]:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n"
    return {_PRIVATE_KEY: private, _PUBLIC_KEY: public}
