"""Volumes as directories."""

from __future__ import annotations

import base64
import os
import stat
from typing import TYPE_CHECKING

import anyio.to_thread
import pytest

from tests.devcluster.kubelet.fakes import FakeConfigReader, make_pod
from trainer.devcluster.kubelet.downward import PodFacts
from trainer.devcluster.kubelet.errors import UnsupportedVolumeError, VolumeError
from trainer.devcluster.kubelet.pod_directory import PodDirectory
from trainer.devcluster.kubelet.volumes import Volume, VolumeBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.kube.objects import Object

FACTS = PodFacts("10.88.0.2", "127.0.0.1", {"cpu": "8"})


async def make(tmp_path: Path, volume: Object) -> Volume:
    """One volume of a pod, whose content comes from a ConfigMap and a Secret."""
    reader = FakeConfigReader()
    reader.add("ConfigMap", "config", data={"a": "1", "b": "2"}, binaryData={"c": base64.b64encode(b"\xff").decode()})
    reader.add("Secret", "secret", data={"token": base64.b64encode(b"hush").decode()})
    reader.add("PersistentVolumeClaim", "claim")
    reader.add("PersistentVolumeClaim", "leaving", metadata={"deletionTimestamp": "2026-11-21T12:00:00Z"})
    pod = make_pod("pod", {"name": "main"}, volumes=[{"name": "v", **volume}])
    pod["metadata"]["labels"] = {"b": 'say "x"', "a": "1"}
    volumes = await VolumeBuilder(pod, PodDirectory(tmp_path, "uid"), FACTS, reader).build()
    return volumes["v"]


def content(directory: Path) -> dict[str, bytes]:
    """All files below a directory."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


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


async def test_files_of_an_ssh_key(tmp_path: Path) -> None:
    """The default mode is for all files, an item's own for one; they belong to who runs the pod."""
    items = [
        {"key": "token", "path": "id_rsa"},
        {"key": "token", "path": "authorized_keys", "mode": 0o644},
        {"key": "token", "path": "deep/key"},
    ]
    made = await make(tmp_path, {"secret": {"secretName": "secret", "defaultMode": 0o600, "items": items}})
    modes = {name: mode_of(made.source / name) for name in content(made.source)}
    assert modes == {"id_rsa": 0o600, "authorized_keys": 0o644, "deep/key": 0o600}
    assert (made.source / "id_rsa").stat().st_uid == os.geteuid()


@pytest.mark.parametrize(
    ("volume", "files"),
    [
        pytest.param({"emptyDir": {}}, {}, id="emptyDir"),
        pytest.param({"configMap": {"name": "config"}}, {"a": b"1", "b": b"2", "c": b"\xff"}, id="configMap"),
        pytest.param({"secret": {"secretName": "secret"}}, {"token": b"hush"}, id="secret"),
        pytest.param(
            {"configMap": {"name": "config", "items": [{"key": "a", "path": "deep/file"}]}},
            {"deep/file": b"1"},
            id="items",
        ),
        pytest.param({"configMap": {"name": "none", "optional": True}}, {}, id="optional"),
        pytest.param({"downwardAPI": {"items": [LABELS]}}, {"labels": b'a="1"\nb="say \\"x\\""'}, id="downwardAPI"),
        pytest.param(
            {
                "projected": {
                    "sources": [
                        {"configMap": {"name": "config", "items": [{"key": "a", "path": "a"}]}},
                        {"secret": {"name": "secret"}},
                        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                    ]
                }
            },
            {"a": b"1", "token": b"hush", "name": b"pod"},
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
        pytest.param({"items": [{"key": "a", "path": "a", "mode": 0o755}]}, 0o755, id="item"),
    ],
)
async def test_mode(tmp_path: Path, source: Object, mode: int) -> None:
    """Files have the mode of their item, else of the volume, else 0644."""
    made = await make(tmp_path, {"configMap": {"name": "config", **source}})
    assert (made.source / "a").stat().st_mode & 0o777 == mode
    again = await make(tmp_path, {"configMap": {"name": "config", **source}})
    assert (again.source / "a").read_bytes() == b"1"


async def test_claim(tmp_path: Path) -> None:
    """A claim is a directory that outlives the pod."""
    made = await make(tmp_path, {"persistentVolumeClaim": {"claimName": "claim", "readOnly": True}})
    assert made == Volume(tmp_path / "claims" / "default" / "claim", owned=True, read_only=True)
    assert made.source.is_dir()


async def test_host_path(tmp_path: Path) -> None:
    """A host path is itself, and is made only if its type says so."""
    assert (await make(tmp_path, {"hostPath": {"path": str(tmp_path)}})) == Volume(tmp_path, owned=False)
    missing = tmp_path / "missing"
    with pytest.raises(VolumeError, match="missing does not exist on this machine as Directory"):
        await make(tmp_path, {"hostPath": {"path": str(missing), "type": "Directory"}})
    assert not missing.exists()
    await make(tmp_path, {"hostPath": {"path": str(missing), "type": "DirectoryOrCreate"}})
    assert missing.is_dir()


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        pytest.param({"secret": {"secretName": "none"}}, 'secret "none" not found', id="object"),
        pytest.param(
            {"configMap": {"name": "config", "items": [{"key": "no", "path": "p"}]}},
            "configmap references non-existent config key: no",
            id="key",
        ),
        pytest.param(
            {"persistentVolumeClaim": {"claimName": "no"}}, 'persistentvolumeclaim "no" not found', id="claim"
        ),
        pytest.param(
            {"persistentVolumeClaim": {"claimName": "leaving"}},
            'persistentvolumeclaim "leaving" is being deleted',
            id="claim that is being deleted",
        ),
        pytest.param(
            {"configMap": {"name": "config", "items": [{"key": "a", "path": "../a"}]}}, "must be relative", id="escape"
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
        pytest.param({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}, id="projected source"),
    ],
)
async def test_unsupported(tmp_path: Path, volume: Object) -> None:
    """Other kinds are refused for good."""
    with pytest.raises(UnsupportedVolumeError, match="does not support"):
        await make(tmp_path, volume)
