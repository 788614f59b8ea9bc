"""Secrets that are generated for each TrainJob: what they are, and when a lost one is made again."""

from __future__ import annotations

import base64

import pytest

from tests.framework.samples import train_job
from tests.framework.static_reader import StaticReader
from trainer.api.jobset_labels import JOBSET_NAME
from trainer.framework.plugin_api.component import Loss, unique_name
from trainer.framework.plugin_api.pod_secret import PodSecret
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.kube.objects import Object

INFO = RuntimeInfo("demo", "")
SECRETS_OF_MINE = PodSecret("mine-keys", "example.com/keys")
NAME = unique_name(train_job(), "mine-keys")


def test_secret() -> None:
    """It is immutable, and what it holds is generated when it is created."""
    component = SECRETS_OF_MINE.component(INFO, train_job(), StaticReader(), lambda: {"key": b"content"})
    assert component.object == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAME, "namespace": "default"},
        "type": "example.com/keys",
        "immutable": True,
    }
    assert component.generated is not None
    assert component.generated() == {"data": {"key": base64.b64encode(b"content").decode()}}


def failed_mount(
    name: str, message: str = f'MountVolume.SetUp failed for volume "x" : secret "{NAME}" not found'
) -> Object:
    """What the kubelet says of a pod."""
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"}, "message": message}


def pod(name: str, *, volume: str = SECRETS_OF_MINE.volume, labels: Object | None = None, **status: object) -> Object:
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
    (index, *_) = (watch.indexes for watch in SECRETS_OF_MINE.watches() if watch.indexes)
    loss = SECRETS_OF_MINE.component(INFO, train_job(), StaticReader(*objects, indexes=index), dict).loss
    assert loss is not None
    return loss


@pytest.mark.parametrize(
    ("message", "is_seen"),
    [
        pytest.param(f'secret "{NAME}" not found', True, id="ours"),
        pytest.param('MountVolume.SetUp failed for volume "a" : secret "theirs" not found', False, id="another-secret"),
        pytest.param("", False, id="silent"),
    ],
)
def test_signs_of_a_lost_secret(message: str, is_seen: bool) -> None:
    """The kubelet names the Secret that it cannot find."""
    assert bool(loss_of(failed_mount("a", message)).seen()) is is_seen


def test_more_signs_of_a_lost_secret() -> None:
    """Another pod that misses the Secret is another sign, and the order of events is none."""
    first, second = failed_mount("a"), failed_mount("b")
    seen = [loss_of(*events).seen() for events in ([first], [first, second], [second, first])]
    assert seen[0] != seen[1] == seen[2]


@pytest.mark.parametrize(
    ("other", "may_replace"),
    [
        pytest.param(pod("b"), True, id="starts-as-well"),
        pytest.param(
            pod("b", conditions=[{"type": "PodReadyToStartContainers", "status": "True"}]), False, id="has-mounted"
        ),
        pytest.param(pod("b", phase="Running", volume="data"), True, id="needs-none"),
    ],
)
def test_when_a_lost_secret_is_replaced(other: Object, may_replace: bool) -> None:
    """All pods of a run agree on the content, and who has mounted the lost one keeps it."""
    assert loss_of(failed_mount("a"), pod("a"), other).may_replace() is may_replace


def test_pods_of_the_run_before() -> None:
    """What is being deleted talks to nobody any more."""
    ending = pod("b", phase="Running")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert loss_of(pod("a"), ending).may_replace()
