"""volumeMounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer_devcluster.kubelet.errors import ContainerConfigError, ContainerCreateError
from trainer_devcluster.kubelet.host_paths import SandboxMount
from trainer_devcluster.kubelet.root_filesystem import (
    plan_root,
    volume_mounts,
)
from trainer_devcluster.kubelet.shim.spec import FilesystemStep
from trainer_devcluster.kubelet.volumes import ReadyVolume


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory to mount."""
    path = tmp_path / "source"
    path.mkdir()
    return path


def beyond_root(operations: tuple[FilesystemStep, ...]) -> list[FilesystemStep]:
    """Operations other than those that rebuild the root directory."""
    return [step for step in operations if len(Path(step.target).parts) > 2]


@pytest.mark.parametrize(
    ("owned", "is_kept"),
    [
        pytest.param(True, True, id="a volume of the pod"),
        pytest.param(False, False, id="a directory of the machine"),
    ],
)
def test_what_is_needed_stays(source: Path, tmp_path: Path, owned: bool, is_kept: bool) -> None:
    """A volume of the pod over a directory that holds the interpreter does not hide it."""
    needed, elsewhere = tmp_path / "over" / "venv", tmp_path / "elsewhere"
    needed.mkdir(parents=True)
    over = FilesystemStep("bind", str(needed.parent), str(source))
    steps = beyond_root(plan_root([SandboxMount(source, str(needed.parent), owned=owned)], [needed, elsewhere]))
    assert steps == ([over, FilesystemStep("bind", str(needed), str(needed))] if is_kept else [over])
    assert (source / "venv").is_dir() is is_kept


@pytest.mark.parametrize("is_directory", [True, False])
@pytest.mark.parametrize("link", ["../elsewhere", "/elsewhere-test", "{}/elsewhere"])
def test_a_link_out_of_a_volume(source: Path, tmp_path: Path, link: str, is_directory: bool) -> None:
    """A link that a pod has left in a volume makes nothing on the machine when another mounts something below it."""
    inner, elsewhere = tmp_path / "inner", tmp_path / "elsewhere"
    elsewhere.mkdir()
    inner.mkdir() if is_directory else inner.touch()
    (source / "link").symlink_to(link.format(tmp_path))
    mounts = [SandboxMount(source, "/outer-test", owned=True), SandboxMount(inner, "/outer-test/link/x/y")]
    with pytest.raises(ContainerCreateError, match="a symbolic link at link/x/y leads out of what is mounted at"):
        plan_root(mounts)
    assert list(elsewhere.iterdir()) == []
    assert not Path("/elsewhere-test").exists()


def test_a_link_inside_a_volume(source: Path, tmp_path: Path) -> None:
    """A mount point below a link is made, and mounted, where the link leads inside the volume."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (source / "link").symlink_to("real")
    mounts = [SandboxMount(source, "/outer-test", owned=True), SandboxMount(inner, "/outer-test/link/x")]
    assert plan_root(mounts)[-1] == FilesystemStep("bind", "/outer-test/real/x", str(inner))
    assert (source / "real" / "x").is_dir()


def test_a_link_to_another_mount(source: Path, tmp_path: Path) -> None:
    """A link to what is mounted elsewhere in the volume is refused: what is made below it would be made over there."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (source / "link").symlink_to("deep")
    paths = ["/outer-test", "/outer-test/deep", "/outer-test/link/x"]
    mounts = [SandboxMount(source if path == "/outer-test" else inner, path, owned=True) for path in paths]
    with pytest.raises(ContainerCreateError, match="a symbolic link leads to /outer-test/deep/x"):
        plan_root(mounts)
    assert list(inner.iterdir()) == []


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        pytest.param(["/"], "nothing can be mounted at /", id="root"),
        pytest.param(["/etc/passwd"], "which is a file here", id="file"),
        pytest.param(["/etc/passwd/x"], "/etc/passwd is not a directory", id="below a file"),
        pytest.param(["/twice-test", "/twice-test/"], "mountPath /twice-test is used twice", id="twice"),
        pytest.param(["/foreign-test", "/foreign-test/x"], "x does not exist in what is mounted", id="inside foreign"),
    ],
)
def test_impossible(source: Path, targets: list[str], message: str) -> None:
    """An impossible mount point is refused and named."""
    with pytest.raises(ContainerCreateError, match=message):
        plan_root([SandboxMount(source, target) for target in targets])


def mount(volume: ReadyVolume, **fields: object) -> SandboxMount:
    """The mount of one volume at /data."""
    container = {"name": "main", "volumeMounts": [{"name": "v", "mountPath": "/data", **fields}]}
    (found,) = volume_mounts(container, {"v": volume}, {"INDEX": "3"})
    return found


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
        mount(ReadyVolume(tmp_path, **volume), **fields)
