"""The SSH key of launcher and nodes: created once for each TrainJob, and mounted in all its pods.

Who may read the key decides whether SSH works:

* root needs nothing: the key has mode 0600, and ssh refuses one that others can read.
* Another user needs `securityContext.fsGroup` in launcher and nodes: Kubernetes then lets this group read the key,
  which ssh accepts because it belongs to root. Root itself must do without fsGroup.
* sshd needs `StrictModes no`: Kubernetes mounts Secrets in directories that everybody may write to.

The key is called id_rsa although it is an Ed25519 key: ssh looks for this name in ~/.ssh and takes keys of any type
there, and the sshd of the images of the MPI Operator takes it for its host key.

A Secret that somebody deletes is made again, with another key, before pods are made; and when pods cannot mount it, if
none has done so: all pods of a run have to agree on the key.

Launchers do not check host keys, which are as young as the pods, and which nobody could have told them. Only who has
the key of this very TrainJob can log in, and a node that pretends to be another would need to take its DNS name.
"""

from __future__ import annotations

import base64
import re
from functools import partial
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from trainer.api.jobset_labels import JOBSET_NAME
from trainer.framework import Component, Loss, Watch, unique_name
from trainer.kube.objects import is_being_deleted, is_condition_true
from trainer.kube.resource import EVENTS, PODS, SECRETS
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.api.trainjob import TrainJob
    from trainer.framework import Reader
    from trainer.kube.cache.cached_object import CachedObject
    from trainer.kube.objects import Object

VOLUME = "mpi-ssh-auth"
"""Name of the volume with the keys."""

MISSING = "mpi-missing-secrets"
"""Name of the index of events by namespace and name of the Secret that a pod cannot mount."""

_NOT_FOUND = re.compile(r'secret "([^"]+)" not found')
_LONGEST = 1024
"""Most characters of a message that are searched."""

_PRIVATE_KEY, _PUBLIC_KEY = "ssh-privatekey", "ssh-publickey"
_FILE = "id_rsa"
_PRIVATE_MODE, _PUBLIC_MODE = 0o600, 0o644


def watches() -> Iterator[Watch]:
    """Events of pods that miss the Secret, and the pods that may still use it."""
    yield Watch(
        EVENTS,
        Selection(field_selector="involvedObject.kind=Pod,reason=FailedMount"),
        triggers=False,
        indexes={MISSING: _missing_secret},
    )
    yield Watch(PODS, Selection(label_selector=JOBSET_NAME), triggers=False)


def key_secret(train_job: TrainJob, reader: Reader) -> Component:
    """The Secret of this TrainJob; its key pair is generated at creation and kept nowhere else."""
    metadata = {"name": _secret_name(train_job), "namespace": train_job.metadata.namespace}
    secret: Object = {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": metadata,
        "type": "kubernetes.io/ssh-auth",
        "immutable": True,
    }
    loss = Loss(partial(_signs_of_loss, train_job, reader), partial(_may_replace, train_job, reader))
    return Component(SECRETS, secret, generated=_key_pair, loss=loss)


def key_volume(train_job: TrainJob) -> Object:
    """The volume with both keys, and with the public key as the only authorized one."""
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


def _secret_name(train_job: TrainJob) -> str:
    return unique_name(train_job, VOLUME)


def _missing_secret(event: CachedObject) -> tuple[str, ...]:
    found = _NOT_FOUND.search(str(event.get("message") or "")[:_LONGEST])
    return (f"{event.key.namespace}/{found[1]}",) if found else ()


def _signs_of_loss(train_job: TrainJob, reader: Reader) -> str:
    """The events about pods that cannot mount the Secret."""
    events = reader.keys(EVENTS, MISSING, f"{train_job.metadata.namespace}/{_secret_name(train_job)}")
    return str(hash(frozenset(events))) if events else ""


def _may_replace(train_job: TrainJob, reader: Reader) -> bool:
    """Whether no pod has mounted the lost Secret, since the kubelet reads an immutable Secret only once."""
    pods = reader.list(PODS, train_job.metadata.namespace or "", {JOBSET_NAME: train_job.metadata.name})
    return not any(_holds_key(pod) for pod in pods)


def _holds_key(pod: Object) -> bool:
    volumes = (pod.get("spec") or {}).get("volumes") or []
    if is_being_deleted(pod) or all(volume.get("name") != VOLUME for volume in volumes):
        return False
    is_pending = (pod.get("status") or {}).get("phase") == "Pending"
    return not is_pending or is_condition_true(pod, "PodReadyToStartContainers")


def _key_pair() -> Object:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n"
    pair = {_PRIVATE_KEY: private, _PUBLIC_KEY: public}
    return {"data": {name: base64.b64encode(value).decode() for name, value in pair.items()}}
