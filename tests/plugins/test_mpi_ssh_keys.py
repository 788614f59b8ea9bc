"""SSH keys: a pair of its own for each TrainJob, in files that ssh and sshd accept."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key

from tests.framework.samples import train_job
from tests.framework.static_reader import StaticReader
from trainer.api.jobset_labels import JOBSET_NAME
from trainer.framework.plugin_api.component import unique_name
from trainer.plugins.mpi.ssh_keys import VOLUME, key_mount, key_secret, key_volume, ssh_options, watches

if TYPE_CHECKING:
    from trainer.framework.plugin_api.component import Loss
    from trainer.kube.objects import Object


def generated() -> dict[str, bytes]:
    """A key pair as it is stored."""
    component = key_secret(train_job(), StaticReader())
    assert component.generated is not None
    return {name: base64.b64decode(value) for name, value in component.generated()["data"].items()}


NAME = unique_name(train_job(), "mpi-ssh-auth")


def test_secret() -> None:
    """The Secret is immutable and of the type for SSH keys; what it holds is generated when it is created."""
    assert key_secret(train_job(), StaticReader()).object == {
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
        key_secret(first, StaticReader()).object["metadata"]["name"]
        != key_secret(second, StaticReader()).object["metadata"]["name"]
    )


def test_every_pair_is_another() -> None:
    """No two TrainJobs share a key."""
    assert generated() != generated()


def test_files() -> None:
    """Only its owner can read the private key; the public key is the only one that may log in."""
    volume = key_volume(train_job())
    assert volume["secret"]["secretName"] == NAME
    files = {item["path"]: (item["key"], oct(item["mode"])) for item in volume["secret"]["items"]}
    assert files == {
        "id_rsa": ("ssh-privatekey", "0o600"),
        "id_rsa.pub": ("ssh-publickey", "0o644"),
        "authorized_keys": ("ssh-publickey", "0o644"),
    }
    assert key_mount("/keys") == {"name": volume["name"], "mountPath": "/keys", "readOnly": True}


@pytest.mark.parametrize(
    ("directory", "port", "ending"),
    [
        pytest.param("/root/.ssh", None, "-i /root/.ssh/id_rsa", id="port-of-the-image"),
        pytest.param("/keys/", 2222, "-i /keys/id_rsa -p 2222", id="port-of-the-runtime"),
    ],
)
def test_options(directory: str, port: int | None, ending: str) -> None:
    """ssh asks nobody, and finds the key wherever it is mounted."""
    options = ssh_options(directory, port)
    assert options.startswith("-o BatchMode=yes ")
    assert options.endswith(ending)


def failed_mount(
    name: str, message: str = f'MountVolume.SetUp failed for volume "x" : secret "{NAME}" not found'
) -> Object:
    """What the kubelet says of a pod."""
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"}, "message": message}


def pod(name: str, *, volume: str = VOLUME, labels: Object | None = None, **status: object) -> Object:
    """A pod of the TrainJob."""
    metadata = {"name": name, "namespace": "default", "labels": {JOBSET_NAME: "demo"} if labels is None else labels}
    spec = {"volumes": [{"name": volume, "secret": {"secretName": NAME}}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Pending"} | status,
    }


def loss_of(*objects: Object) -> Loss:
    """What the plugin makes of events and pods."""
    (index, *_) = (watch.indexes for watch in watches() if watch.indexes)
    loss = key_secret(train_job(), StaticReader(*objects, indexes=index)).loss
    assert loss is not None
    return loss


@pytest.mark.parametrize(
    ("message", "is_seen"),
    [
        pytest.param(f'secret "{NAME}" not found', True, id="ours"),
        pytest.param('MountVolume.SetUp failed for volume "a" : secret "theirs" not found', False, id="another-secret"),
        pytest.param(f'configmap "{NAME}" not found', False, id="another-kind"),
        pytest.param(f'{"x" * 2000} secret "{NAME}" not found', False, id="too-long"),
        pytest.param("", False, id="silent"),
    ],
)
def test_signs_of_a_lost_key(message: str, is_seen: bool) -> None:
    """The kubelet names the Secret that it cannot find."""
    assert bool(loss_of(failed_mount("a", message)).seen()) is is_seen


def test_more_signs_of_a_lost_key() -> None:
    """Another pod that misses the key is another sign, and the order of events is none."""
    first, second = failed_mount("a"), failed_mount("b")
    seen = [loss_of(*events).seen() for events in ([first], [first, second], [second, first])]
    assert seen[0] != seen[1] == seen[2]


@pytest.mark.parametrize(
    ("other", "may_replace"),
    [
        pytest.param(pod("b"), True, id="starts-as-well"),
        pytest.param(pod("b", phase="Running"), False, id="runs"),
        pytest.param(pod("b", phase="Failed"), False, id="has-run"),
        pytest.param(
            pod("b", conditions=[{"type": "PodReadyToStartContainers", "status": "True"}]), False, id="has-mounted"
        ),
        pytest.param(pod("b", phase="Running", volume="data"), True, id="needs-no-key"),
        pytest.param(pod("b", phase="Running", labels={JOBSET_NAME: "other"}), True, id="of-another-train-job"),
    ],
)
def test_when_a_lost_key_is_replaced(other: Object, may_replace: bool) -> None:
    """All pods of a run agree on the key, and who has mounted the lost one keeps it."""
    assert loss_of(failed_mount("a"), pod("a"), other).may_replace() is may_replace


def test_pods_of_the_run_before() -> None:
    """What is being deleted talks to nobody any more."""
    ending = pod("b", phase="Running")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert loss_of(pod("a"), ending).may_replace()
