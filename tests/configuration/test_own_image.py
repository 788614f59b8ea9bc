"""Where the progress reporter of trainings comes from, when the configuration does not say."""

from __future__ import annotations

import anyio
import pytest

from trainer.configuration.own_image import with_own_image
from trainer.framework.startup.discovery import PluginsConfiguration
from trainer.kube.errors import ForbiddenError, InternalError, KubeError, TransportError
from trainer.kube.objects import Object, ObjectKey
from trainer_kube_testing import FakeClient, ManualClock, eventually

IMAGE = f"registry.example.com/operator@sha256:{'0' * 64}"
POD = ObjectKey("trainer-system", "manager-0")
REPORTER = "progress-reporter"


def pod(name: str = "manager-0", **spec: object) -> Object:
    """Of a manager, with a sidecar that somebody has put into it."""
    containers = [{"name": "proxy", "image": "proxy:1"}, {"name": "manager", "image": IMAGE}]
    metadata = {"name": name, "namespace": "trainer-system"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers} | spec}


@pytest.fixture
def client() -> FakeClient:
    """Of an API server without objects."""
    return FakeClient()


async def test_image_of_the_pod(client: FakeClient) -> None:
    """It is that of the manager's container, and other settings stay."""
    client.add(pod())
    client.add(pod("manager-1", containers=[]))
    given = PluginsConfiguration(configuration={"other": {"a": 1}})

    found = await with_own_image(client, given, POD, ManualClock())

    assert found.configuration == {"other": {"a": 1}, REPORTER: {"image": IMAGE}}


@pytest.mark.parametrize(
    ("configuration", "own", "objects"),
    [
        pytest.param({"configuration": {REPORTER: {"image": "mine:1"}}}, POD, [pod()], id="another-image"),
        pytest.param({"configuration": {REPORTER: {"image": ""}}}, POD, [pod()], id="none-is-wanted"),
        pytest.param({"disabled": [REPORTER]}, POD, [pod()], id="disabled"),
        pytest.param({}, ObjectKey("default", ""), [pod()], id="in-no-pod"),
        pytest.param({}, POD, [], id="pod-is-not-found"),
        pytest.param({}, POD, [pod(imagePullSecrets=[{"name": "registry"}])], id="pull-secrets"),
        pytest.param({}, POD, [pod(containers=[{"name": "x", "image": "x"}])], id="no-such-container"),
    ],
)
async def test_where_it_stays(client: FakeClient, configuration: Object, own: ObjectKey, objects: list[Object]) -> None:
    """Without an image that every node can pull, and against what somebody says, nothing is added."""
    for obj in objects:
        client.add(obj)
    given = PluginsConfiguration.model_validate(configuration)

    assert await with_own_image(client, given, own, ManualClock()) == given


@pytest.mark.parametrize(
    ("error", "times", "requests"),
    [
        pytest.param(TransportError("refused"), 1, 2, id="refused-once"),
        pytest.param(InternalError(500, "etcd has no leader"), 5, 6, id="for-some-seconds"),
        pytest.param(InternalError(500, "etcd has no leader"), None, 6, id="for-good"),
        pytest.param(ForbiddenError(403, "pods is forbidden"), None, 1, id="without-the-right"),
    ],
)
async def test_pod_that_cannot_be_read(client: FakeClient, error: KubeError, times: int | None, requests: int) -> None:
    """The manager asks again what may have another answer soon, and starts without it in the end."""
    client.add(pod())
    client.faults.fail(error, verb="list", times=times)
    clock = ManualClock()
    found: list[PluginsConfiguration] = []

    async def find() -> None:
        found.append(await with_own_image(client, PluginsConfiguration(), POD, clock))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(find)
        await eventually(lambda: bool(found), clock=clock, within=60)

    assert len(client.requests) == requests
    assert found[0].configuration == ({REPORTER: {"image": IMAGE}} if times else {})
