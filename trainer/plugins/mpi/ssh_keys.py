"""The key with which launcher and nodes log in to each other: made once for each TrainJob, mounted in all its pods.

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

import base64
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from trainer.framework.component import Component, unique_name
from trainer.kube.resource import SECRETS

if TYPE_CHECKING:
    from trainer.api.trainjob import TrainJob
    from trainer.kube.objects import Object

VOLUME = "mpi-ssh-auth"
"""Name of the volume with the keys."""

_PRIVATE_KEY, _PUBLIC_KEY = "ssh-privatekey", "ssh-publickey"
_FILE = "id_rsa"
_PRIVATE_MODE, _PUBLIC_MODE = 0o600, 0o644


def key_secret(train_job: TrainJob) -> Component:
    """The Secret of this TrainJob alone; its key pair is generated when it is created, and never again."""
    metadata = {"name": _secret_name(train_job), "namespace": train_job.metadata.namespace}
    secret: Object = {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": metadata,
        "type": "kubernetes.io/ssh-auth",
        "immutable": True,
    }
    return Component(SECRETS, secret, generated=_key_pair)


def key_volume(train_job: TrainJob) -> Object:
    """The volume with both keys, and with the public one as the only key that may log in."""
    return {
        "name": VOLUME,
        "secret": {
            "secretName": _secret_name(train_job),
            "defaultMode": _PRIVATE_MODE,
            "items": [
                {"key": _PRIVATE_KEY, "path": _FILE, "mode": _PRIVATE_MODE},
                {"key": _PUBLIC_KEY, "path": f"{_FILE}.pub", "mode": _PUBLIC_MODE},
                {"key": _PUBLIC_KEY, "path": "authorized_keys", "mode": _PUBLIC_MODE},
            ],
        },
    }


def key_mount(directory: str) -> Object:
    """Where a container finds the keys."""
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


def _secret_name(train_job: TrainJob) -> str:
    return unique_name(train_job, VOLUME)


def _key_pair() -> Object:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n"
    pair = {_PRIVATE_KEY: private, _PUBLIC_KEY: public}
    return {"data": {name: base64.b64encode(value).decode() for name, value in pair.items()}}
