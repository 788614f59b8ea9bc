"""The SSH key of launcher and nodes: created once for each TrainJob, and mounted in all its pods.

Who may read the key decides whether SSH works:

* root needs nothing: the key has mode 0600, and ssh refuses one that others can read.
* Another user needs `securityContext.fsGroup` in launcher and nodes: Kubernetes then lets this group read the key,
  which ssh accepts because it belongs to root. Root itself must do without fsGroup.
* sshd needs `StrictModes no`: Kubernetes mounts Secrets in directories that everybody may write to.

The key is called id_rsa although it is an Ed25519 key: ssh looks for this name in ~/.ssh and takes keys of any type
there, and the sshd of the images of the MPI Operator takes it for its host key.

Launchers do not check host keys, which are as young as the pods, so that these have no way to learn them. Only who has
the key of this very TrainJob can log in, and a node that pretends to be another would need to take its DNS name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from trainer.api.trainjob import TrainJob
from trainer.framework import Component, PodSecret, Reader, RuntimeInfo
from trainer.kube.objects import Object

VOLUME = "mpi-ssh-auth"
"""Name of the volume with the keys."""

KEYS = PodSecret(VOLUME, "kubernetes.io/ssh-auth")
"""The Secrets with the keys."""

_PRIVATE_KEY, _PUBLIC_KEY = "ssh-privatekey", "ssh-publickey"
_FILE = "id_rsa"
_PRIVATE_MODE, _PUBLIC_MODE = 0o600, 0o644


@dataclass(frozen=True, slots=True)
class KeyStyle:
    """How keys are made and mounted; all defaults are those of v2alpha1."""

    is_ecdsa: bool = False
    """Whether the key is one of ECDSA in OpenSSL's format, and not of Ed25519 in that of OpenSSH."""
    default_mode: int = _PRIVATE_MODE
    """Mode of files without a mode of their own; there are none."""
    group_mode: int = _PRIVATE_MODE
    """Mode of the private key where a group may read it, see `private_mode_in`."""
    read_only: bool = True
    """Whether mounts are read-only."""

    def private_mode_in(self, pod: Object, *, names_port: bool) -> int:
        """Mode of the private key in pods: 0600, but for those that have a fsGroup and do not name sshd's port.

        Without a fsGroup pods run as root, whose ssh refuses a key that a group may read.
        """
        has_group = (pod.get("securityContext") or {}).get("fsGroup") is not None
        return self.group_mode if has_group and not names_port else _PRIVATE_MODE


def key_secret(info: RuntimeInfo, train_job: TrainJob, reader: Reader, style: KeyStyle) -> Component:
    """The Secret of this TrainJob; its key pair is generated at creation and kept nowhere else."""
    return KEYS.component(info, train_job, reader, partial(_key_pair, style))


def key_volume(info: RuntimeInfo, train_job: TrainJob, style: KeyStyle, private_mode: int) -> Object:
    """The volume with both keys, and with the public key as the only authorized one."""
    return {
        "name": VOLUME,
        "secret": {
            "secretName": KEYS.name(info, train_job),
            "defaultMode": style.default_mode,
            "items": [
                {"key": _PRIVATE_KEY, "path": _FILE, "mode": private_mode},
                {"key": _PUBLIC_KEY, "path": f"{_FILE}.pub", "mode": _PUBLIC_MODE},
                {"key": _PUBLIC_KEY, "path": "authorized_keys", "mode": _PUBLIC_MODE},
            ],
        },
    }


def mount(volume: str, directory: str, style: KeyStyle) -> Object:
    """The mount of a volume of this plugin in a container."""
    return {"name": volume, "mountPath": directory} | ({"readOnly": True} if style.read_only else {})


def ssh_options(directory: str, port: int | None) -> str:
    """Options of ssh with which it needs no configuration in the image; without a port that configuration says it."""
    options = [
        "-o BatchMode=yes",
        "-o ConnectionAttempts=10",
        "-o LogLevel=ERROR",
        "-o StrictHostKeyChecking=no",
        "-o UserKnownHostsFile=/dev/null",
        f"-i {directory.rstrip('/')}/{_FILE}",
    ]
    return " ".join(options if port is None else [*options, f"-p {port}"])


def _key_pair(style: KeyStyle) -> dict[str, bytes]:
    # 8 MiB that a manager without a training with MPI does without.
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
    if style.is_ecdsa:
        key, private_format = ec.generate_private_key(ec.SECP521R1()), PrivateFormat.TraditionalOpenSSL
    else:
        key, private_format = ed25519.Ed25519PrivateKey.generate(), PrivateFormat.OpenSSH
    private = key.private_bytes(Encoding.PEM, private_format, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n"
    return {_PRIVATE_KEY: private, _PUBLIC_KEY: public}
