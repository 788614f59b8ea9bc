"""volumeMounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trainer_devcluster.kubelet.errors import ContainerConfigError, ContainerCreateError
from trainer_devcluster.kubelet.root_filesystem import SandboxMount
from trainer_devcluster.kubelet.volume_mounts import IMAGE_DIRECTORIES, image_mounts, volume_mounts
from trainer_devcluster.kubelet.volumes import Volume

if TYPE_CHECKING:
    from pathlib import Path


def mount(volume: Volume, **fields: object) -> SandboxMount:
    """The mount of one volume at /data."""
    container = {"name": "main", "volumeMounts": [{"name": "v", "mountPath": "/data", **fields}]}
    (found,) = volume_mounts(container, {"v": volume}, {"INDEX": "3"})
    return found


def test_read_only(tmp_path: Path) -> None:
    """A mount is read-only if it or its volume is."""
    assert not mount(Volume(tmp_path, owned=True)).read_only
    assert mount(Volume(tmp_path, owned=True), readOnly=True).read_only
    assert mount(Volume(tmp_path, owned=True, read_only=True)).read_only


def test_sub_path(tmp_path: Path) -> None:
    """A subPath is made in a volume of the pod; subPathExpr knows the variables."""
    assert mount(Volume(tmp_path, owned=True), subPath="a/b").source == tmp_path / "a" / "b"
    assert (tmp_path / "a" / "b").is_dir()
    assert mount(Volume(tmp_path, owned=True), subPathExpr="node-$(INDEX)").source == tmp_path / "node-3"


def test_sub_path_of_the_machine(tmp_path: Path) -> None:
    """As a kubelet does it, a subPath is made in a hostPath too."""
    assert mount(Volume(tmp_path, owned=False), subPath="new").source.is_dir()


@pytest.mark.parametrize("option", [{"recursiveReadOnly": "Enabled"}, {"mountPropagation": "Bidirectional"}])
def test_options_that_are_not_supported(tmp_path: Path, option: dict[str, str]) -> None:
    """They are refused by name."""
    with pytest.raises(ContainerCreateError, match=f"does not support {next(iter(option))}"):
        mount(Volume(tmp_path, owned=True), readOnly=True, **option)


@pytest.mark.parametrize(
    ("volume", "fields", "message"),
    [
        pytest.param({"owned": True}, {"subPath": "../x"}, "unable to provision SubPath `../x`: must not", id="parent"),
        pytest.param({"owned": True}, {"subPath": "/x"}, "error SubPath `/x` must not be an absolute", id="absolute"),
        pytest.param({"owned": True}, {"subPathExpr": "$(NO)"}, 'missing value for "NO"', id="variable"),
        pytest.param({"owned": True}, {"subPath": "out/x"}, 'leads out of volume "v"', id="link"),
        pytest.param({"owned": True, "read_only": True}, {"subPath": "x"}, "does not exist", id="config map"),
        pytest.param({"owned": True}, {"mountPropagation": "Bidirectional"}, "mountPropagation", id="propagation"),
    ],
)
def test_refused(tmp_path: Path, volume: dict[str, bool], fields: dict[str, str], message: str) -> None:
    """What leaves the volume, is missing or is not supported is refused."""
    (tmp_path / "out").symlink_to("/")
    with pytest.raises((ContainerConfigError, ContainerCreateError), match=message):
        mount(Volume(tmp_path, **volume), **fields)


@pytest.mark.parametrize(
    ("program", "directory", "mounted"),
    [
        pytest.param("program", "missing", True, id="as in the image"),
        pytest.param("program", "present", False, id="the machine has it"),
        pytest.param("absent", "missing", False, id="no such program"),
    ],
)
def test_directories_that_images_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, directory: str, mounted: bool
) -> None:
    """What a program needs at run time is there, although no service manager has made it on this machine."""
    (tmp_path / "program").touch()
    (tmp_path / "present").mkdir()
    place = str(tmp_path / directory)
    monkeypatch.setitem(IMAGE_DIRECTORIES, place, str(tmp_path / program))
    empty = tmp_path / "empty"
    found = [mount for mount in image_mounts(empty) if mount.target == place]
    assert found == ([SandboxMount(empty, place)] if mounted else [])
