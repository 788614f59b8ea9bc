"""volumeMounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer_devcluster.kubelet.errors import ContainerConfigError, ContainerCreateError
from trainer_devcluster.kubelet.host_paths import SandboxMount
from trainer_devcluster.kubelet.root_filesystem import (
    IMAGE_DIRECTORIES,
    image_mounts,
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


def test_root_is_rebuilt() -> None:
    """Each entry of the root directory is bound, links are made anew, and /proc is that of the container."""
    steps = {step.target: step.kind for step in plan_root([])}
    assert steps["/proc"] == "proc"
    for entry in Path("/").iterdir():
        if entry.name != "proc":
            assert steps[str(entry)] == ("symlink" if entry.is_symlink() else "bind")


def test_existing_mount_point(source: Path, tmp_path: Path) -> None:
    """A mount point that exists is mounted over, and nothing else is done."""
    target = tmp_path / "target"
    target.mkdir()
    (step,) = beyond_root(plan_root([SandboxMount(source, str(target), read_only=True)]))
    assert step == FilesystemStep("bind", str(target), str(source), read_only=True)


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


def test_what_is_needed_may_be_replaced(source: Path, tmp_path: Path) -> None:
    """A pod that mounts something at the very place means it."""
    needed = tmp_path / "over" / "venv"
    needed.mkdir(parents=True)
    mounts = [SandboxMount(source, str(path), owned=True) for path in (needed.parent, needed)]
    steps = beyond_root(plan_root(mounts, [needed]))
    assert [step.source for step in steps] == [str(source), str(source)]


def test_missing_mount_point(source: Path, tmp_path: Path) -> None:
    """The nearest ancestor is covered with all it holds, and the mount point is made in the cover."""
    (tmp_path / "link").symlink_to("source")
    target = f"{tmp_path}/a/b"
    steps = beyond_root(plan_root([SandboxMount(source, target)]))
    assert steps == [
        FilesystemStep("tmpfs", str(tmp_path)),
        FilesystemStep("symlink", f"{tmp_path}/link", "source", optional=True),
        FilesystemStep("bind", str(source), str(source), optional=True),
        FilesystemStep("directory", f"{tmp_path}/a"),
        FilesystemStep("bind", target, str(source)),
    ]


def test_two_missing_mount_points(source: Path, tmp_path: Path) -> None:
    """What was made for one mount serves the next."""
    mounts = [SandboxMount(source, f"{tmp_path}/a/two"), SandboxMount(source, f"{tmp_path}/a/one")]
    kinds = [step.kind for step in beyond_root(plan_root(mounts))]
    assert kinds == ["tmpfs", "bind", "directory", "bind", "bind"]


def test_covers_come_before_mounts(source: Path, tmp_path: Path) -> None:
    """A cover never hides a mount, whatever the order of the mounts."""
    (tmp_path / "present").mkdir()
    mounts = [SandboxMount(source, f"{tmp_path}/present"), SandboxMount(source, f"{tmp_path}/zzz")]
    kinds = [step.kind for step in beyond_root(plan_root(mounts)) if not step.optional]
    assert kinds == ["tmpfs", "bind", "bind"]


def test_nested_mount(source: Path, tmp_path: Path) -> None:
    """A mount inside another gets its mount point in the outer one's source."""
    inner = tmp_path / "inner"
    inner.mkdir()
    plan_root([SandboxMount(inner, "/outer-test/x/y"), SandboxMount(source, "/outer-test", owned=True)])
    assert (source / "x" / "y").is_dir()


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


def test_through_a_link(source: Path, tmp_path: Path) -> None:
    """A mount point below a symbolic link is made where the link leads."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    steps = beyond_root(plan_root([SandboxMount(source, f"{tmp_path}/link/new")]))
    assert steps[-1].target == f"{tmp_path}/real/new"
    assert steps[0] == FilesystemStep("tmpfs", f"{tmp_path}/real")


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        pytest.param(["/"], "nothing can be mounted at /", id="root"),
        pytest.param(["/proc/x"], "nothing can be mounted at /proc/x", id="proc"),
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


def test_read_only(tmp_path: Path) -> None:
    """A mount is read-only if it or its volume is."""
    assert not mount(ReadyVolume(tmp_path, owned=True)).read_only
    assert mount(ReadyVolume(tmp_path, owned=True), readOnly=True).read_only
    assert mount(ReadyVolume(tmp_path, owned=True, read_only=True)).read_only


def test_sub_path(tmp_path: Path) -> None:
    """A subPath is made in a volume of the pod; subPathExpr knows the variables."""
    assert mount(ReadyVolume(tmp_path, owned=True), subPath="a/b").source == tmp_path / "a" / "b"
    assert (tmp_path / "a" / "b").is_dir()
    assert mount(ReadyVolume(tmp_path, owned=True), subPathExpr="node-$(INDEX)").source == tmp_path / "node-3"


def test_sub_path_of_the_machine(tmp_path: Path) -> None:
    """As a kubelet does it, a subPath is made in a hostPath too."""
    assert mount(ReadyVolume(tmp_path, owned=False), subPath="new").source.is_dir()


@pytest.mark.parametrize("option", [{"recursiveReadOnly": "Enabled"}, {"mountPropagation": "Bidirectional"}])
def test_options_that_are_not_supported(tmp_path: Path, option: dict[str, str]) -> None:
    """They are refused by name."""
    with pytest.raises(ContainerCreateError, match=f"does not support {next(iter(option))}"):
        mount(ReadyVolume(tmp_path, owned=True), readOnly=True, **option)


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
