"""Volumes as directories."""

from __future__ import annotations

import base64
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from packages.devcluster.tests.kubelet.fakes import (
    LIMIT,
    FakeConfigReader,
    FakeTokenSource,
    eventually,
    make_pod,
    shell,
)
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.manager.manager import Manager
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import CONFIG_MAPS, PODS, SECRETS
from trainer_devcluster.kubelet.environment import PodFacts
from trainer_devcluster.kubelet.errors import UnsupportedVolumeError, VolumeError
from trainer_devcluster.kubelet.pod_directory import PodDirectory, remove_memory
from trainer_devcluster.kubelet.service_account_tokens import PodTokens
from trainer_devcluster.kubelet.volumes import PodVolumes, ReadyVolume, VolumeRefresh
from trainer_kube_testing import FakeClient, ManualClock


@pytest.fixture(autouse=True)
def memory(tmp_path: Path) -> Iterator[None]:
    """Leaves nothing behind in the memory of the machine."""
    yield
    remove_memory(tmp_path)


FACTS = PodFacts("10.88.0.2", "127.0.0.1", {"cpu": "8"})


async def make(tmp_path: Path, volume: Object) -> ReadyVolume:
    """One volume of a pod, whose content comes from a ConfigMap and a Secret."""
    reader = FakeConfigReader()
    reader.add("ConfigMap", "config", data={"a": "1", "b": "2"}, binaryData={"c": base64.b64encode(b"\xff").decode()})
    reader.add("Secret", "secret", data={"token": base64.b64encode(b"hush").decode()})
    reader.add("PersistentVolumeClaim", "claim")
    reader.add("PersistentVolumeClaim", "leaving", metadata={"deletionTimestamp": "2026-11-21T12:00:00Z"})
    pod = make_pod("pod", {"name": "main"}, volumes=[{"name": "v", **volume}])
    pod["metadata"]["labels"] = {"b": 'say "x"', "a": "1"}
    return (await pod_volumes(tmp_path, pod, reader).build())["v"]


def pod_volumes(tmp_path: Path, pod: Object, reader: FakeConfigReader, clock: Clock | None = None) -> PodVolumes:
    """The volumes of a pod."""
    clock = clock or SystemClock()
    return PodVolumes(pod, PodDirectory(tmp_path, "uid"), FACTS, reader, PodTokens(pod, FakeTokenSource(clock), clock))


def content(directory: Path) -> dict[str, bytes]:
    """All files below a directory that its users see."""
    visible = [
        path for entry in directory.iterdir() if not entry.name.startswith("..") for path in (entry, *entry.rglob("*"))
    ]
    return {str(path.relative_to(directory)): path.read_bytes() for path in visible if path.is_file()}


LABELS = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}


def mode_of(path: Path) -> int:
    """Permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("volume", "mode"),
    [
        pytest.param({"emptyDir": {}}, 0o777, id="emptyDir"),
        pytest.param({"emptyDir": {"medium": "Memory"}}, 0o1777, id="emptyDir in memory"),
        pytest.param({"configMap": {"name": "config"}}, 0o777, id="configMap"),
        pytest.param({"secret": {"secretName": "secret"}}, 0o1777, id="secret"),
        pytest.param({"downwardAPI": {"items": []}}, 0o1777, id="downwardAPI"),
        pytest.param({"projected": {"sources": []}}, 0o1777, id="projected"),
    ],
)
async def test_directory_is_open_to_all_users_of_the_pod(tmp_path: Path, volume: Object, mode: int) -> None:
    """As in Kubernetes, where some kinds are kept in memory; on the machine all are inside a private directory."""
    directory = PodDirectory(tmp_path, "uid")
    await anyio.to_thread.run_sync(directory.create)
    made = await make(tmp_path, volume)
    assert (mode_of(made.source), mode_of(directory.state)) == (mode, 0o700)


@pytest.mark.parametrize(
    ("volume", "files"),
    [
        pytest.param({"configMap": {"name": "none", "optional": True}}, {}, id="optional"),
        pytest.param(
            {
                "projected": {
                    "sources": [
                        {"configMap": {"name": "config", "items": [{"key": "a", "path": "a"}]}},
                        {"secret": {"name": "secret"}},
                        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                        {"serviceAccountToken": {"path": "jwt"}},
                    ]
                }
            },
            {"a": b"1", "token": b"hush", "name": b"pod", "jwt": b"token-1"},
            id="projected",
        ),
    ],
)
async def test_content(tmp_path: Path, volume: Object, files: dict[str, bytes]) -> None:
    """Each kind of volume has the files that it describes."""
    made = await make(tmp_path, volume)
    assert content(made.source) == files
    assert made.read_only == ("emptyDir" not in volume)


@pytest.mark.parametrize(
    ("source", "mode"),
    [
        pytest.param({}, 0o644, id="default"),
        pytest.param({"defaultMode": 0o400}, 0o400, id="volume"),
    ],
)
async def test_mode(tmp_path: Path, source: Object, mode: int) -> None:
    """Files have the mode of their item, else of the volume, else 0644."""
    made = await make(tmp_path, {"configMap": {"name": "config", **source}})
    assert (made.source / "a").stat().st_mode & 0o777 == mode
    again = await make(tmp_path, {"configMap": {"name": "config", **source}})
    assert (again.source / "a").read_bytes() == b"1"


async def test_memory(tmp_path: Path) -> None:
    """A volume with medium Memory is on the machine's tmpfs where there is one, and goes with the pod."""
    directory = PodDirectory(tmp_path, "uid")
    made = await make(tmp_path, {"emptyDir": {"medium": "Memory"}})
    assert made == ReadyVolume(directory.memory_volume("v"), owned=True)
    assert await anyio.to_thread.run_sync(made.source.is_dir)
    await anyio.to_thread.run_sync(directory.remove)
    assert not await anyio.to_thread.run_sync(made.source.exists)


async def test_ephemeral_claim(tmp_path: Path) -> None:
    """An ephemeral volume is the claim named after pod and volume, if the pod owns it."""
    reader, pod = FakeConfigReader(), make_pod("pod", volumes=[{"name": "v", "ephemeral": {}}])
    volumes = pod_volumes(tmp_path, pod, reader)
    with pytest.raises(VolumeError, match='persistentvolumeclaim "pod-v" not found'):
        await volumes.build()
    reader.add("PersistentVolumeClaim", "pod-v")
    with pytest.raises(VolumeError, match="PVC default/pod-v was not created for pod default/pod"):
        await volumes.build()
    reader.objects["PersistentVolumeClaim", "pod-v"]["metadata"]["ownerReferences"] = [{"uid": pod["metadata"]["uid"]}]
    assert (await volumes.build())["v"] == ReadyVolume(tmp_path / "claims" / "default" / "pod-v", owned=True)


@asynccontextmanager
async def keeping_current(volumes: PodVolumes) -> AsyncIterator[None]:
    """Volumes that are brought up to date for as long as the context lasts."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(volumes.keep_current)
        yield
        tasks.cancel_scope.cancel()


TOKEN = {"projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 1000}}]}}


async def test_files_follow_their_objects(tmp_path: Path) -> None:
    """A changed ConfigMap, label or key reaches the pod while it runs; what is gone leaves the files as they are."""
    clock, reader = ManualClock(), FakeConfigReader()
    reader.add("ConfigMap", "config", data={"a": "1", "b": "2"})
    pod = make_pod(
        "pod",
        volumes=[{"name": "c", "configMap": {"name": "config"}}, {"name": "d", "downwardAPI": {"items": [LABELS]}}],
    )
    volumes = pod_volumes(tmp_path, pod, reader, clock)
    made = await volumes.build()
    async with keeping_current(volumes):
        reader.add("ConfigMap", "config", data={"a": "new", "c": "3"})
        volumes.mark_outdated({**pod, "metadata": {**pod["metadata"], "labels": {"now": "there"}}})
        await eventually(lambda: content(made["d"].source) == {"labels": b'now="there"'})
        assert content(made["c"].source) == {"a": b"new", "c": b"3"}
        del reader.objects["ConfigMap", "config"]
        reader.add("ConfigMap", "other")
        volumes.mark_outdated(pod)
        await eventually(lambda: content(made["d"].source) == {"labels": b""})
        assert content(made["c"].source) == {"a": b"new", "c": b"3"}


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        pytest.param(
            {"configMap": {"name": "config", "items": [{"key": "no", "path": "p"}]}},
            "configmap references non-existent config key: no",
            id="key",
        ),
        pytest.param(
            {"persistentVolumeClaim": {"claimName": "leaving"}},
            'persistentvolumeclaim "leaving" is being deleted',
            id="claim that is being deleted",
        ),
        pytest.param(
            {"configMap": {"name": "config", "items": [{"key": "a", "path": "../a"}]}}, "must be relative", id="escape"
        ),
        pytest.param(
            {"hostPath": {"path": "/dev/null", "type": "Directory"}},
            "hostPath type check failed: /dev/null is not a directory",
            id="hostPath",
        ),
        pytest.param(
            {"hostPath": {"path": "/proc/1/none/file", "type": "DirectoryOrCreate"}},
            "/proc/1/none: No such file or directory",
            id="hostPath that cannot be made",
        ),
    ],
)
async def test_problem(tmp_path: Path, volume: Object, message: str) -> None:
    """A volume that cannot be made is named with the reason."""
    with pytest.raises(VolumeError, match=message) as caught:
        await make(tmp_path, volume)
    assert 'MountVolume.SetUp failed for volume "v" : ' in str(caught.value)
    assert not isinstance(caught.value, UnsupportedVolumeError)


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param({"nfs": {"server": "s", "path": "/"}}, id="volume"),
        pytest.param({"projected": {"sources": [{"clusterTrustBundle": {"path": "t"}}]}}, id="projected source"),
        pytest.param({"emptyDir": {"medium": "HugePages"}}, id="medium"),
    ],
)
async def test_unsupported(tmp_path: Path, volume: Object) -> None:
    """Other kinds are refused for good."""
    with pytest.raises(UnsupportedVolumeError, match="does not support"):
        await make(tmp_path, volume)


def config(kind: str, name: str, namespace: str = "default") -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}


def user(name: str, *volumes: Object) -> Object:
    return make_pod(
        name, shell("true"), volumes=[{"name": f"v{index}", **entry} for index, entry in enumerate(volumes)]
    )


PODS_AND_VOLUMES = [
    user("config", {"configMap": {"name": "c"}}),
    user("secret", {"emptyDir": {}}, {"secret": {"secretName": "s"}}),
    user("both", {"projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}]}}),
    user("none", {"emptyDir": {}}),
]


@asynccontextmanager
async def running(client: FakeClient) -> AsyncIterator[list[str]]:
    """Gives the names of the pods that have looked again."""
    found: list[str] = []

    def refresh(key: ObjectKey) -> None:
        found.append(key.name)

    manager = Manager(client)
    VolumeRefresh(manager, refresh)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        with anyio.fail_after(LIMIT):
            await manager.wait_for_start()
        yield found
        tasks.cancel_scope.cancel()


async def test_objects_change() -> None:
    """Those with a volume of the object do, also as a part of a projected one."""
    client = FakeClient(*PODS_AND_VOLUMES, resources=[CONFIG_MAPS, SECRETS])
    async with running(client) as found:
        await client.create(CONFIG_MAPS, config("ConfigMap", "c", "other"))
        await client.create(CONFIG_MAPS, config("ConfigMap", "c"))
        await eventually(lambda: sorted(found) == ["both", "config"])
        found.clear()
        await client.create(SECRETS, config("Secret", "s"))
        await eventually(lambda: sorted(found) == ["both", "secret"])


async def test_metadata_changes() -> None:
    """A pod whose labels or annotations change does; a change of its status does not matter to volumes."""
    client = FakeClient(*PODS_AND_VOLUMES, resources=[CONFIG_MAPS, SECRETS])
    async with running(client) as found:
        await client.patch(PODS, "config", {"status": {"phase": "Running"}}, "default", subresource="status")
        await client.patch(PODS, "none", {"metadata": {"labels": {"a": "b"}}}, "default")
        await eventually(lambda: found == ["none"])
