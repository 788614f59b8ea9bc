"""Plans the root file system of a container: the machine's own, with the pod's mounts where the pod wants them.

A mount point that the machine lacks must exist in the container only. Its nearest existing ancestor directory is
therefore covered by a tmpfs that holds bind mounts of the directory's entries, and the mount point is made in there.
The root directory is always rebuilt so, because nothing can be mounted over `/` itself.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from trainer_devcluster.kubelet.errors import ContainerConfigError, ContainerCreateError
from trainer_devcluster.kubelet.host_paths import SandboxMount, make_beneath, resolve_beneath
from trainer_devcluster.kubelet.shim.spec import FilesystemStep
from trainer_devcluster.kubelet.variable_references import expand, references
from trainer_devcluster.kubelet.volumes import ReadyVolume


@dataclass(slots=True)
class _Plan:
    shadowed: set[str] = field(default_factory=lambda: {"/"})
    directories: list[str] = field(default_factory=list)
    created: set[str] = field(default_factory=set)
    binds: list[FilesystemStep] = field(default_factory=list)

    def operations(self) -> tuple[FilesystemStep, ...]:
        """Covers before what is made in them, outer ones before inner ones, then the mounts."""
        steps = [step for path in sorted(self.shadowed, key=_depth) for step in _shadow(path)]
        steps += [FilesystemStep("directory", path) for path in self.directories]
        return (*steps, *self.binds)

    def make_room(self, target: str, *, for_directory: bool) -> None:
        """See to it that a mount point exists in the container."""
        path = Path(target)
        if target == "/" or path.is_relative_to("/proc"):
            raise ContainerCreateError(f"nothing can be mounted at {target}: choose another mountPath")
        if path.exists():
            if path.is_dir() != for_directory:
                kinds = ("directory", "file") if for_directory else ("file", "directory")
                raise ContainerCreateError(f"cannot mount a {kinds[0]} at {target}, which is a {kinds[1]} here")
            return
        ancestor = path.parent
        missing = [target]
        while not ancestor.exists() and str(ancestor) not in self.created:
            missing.append(str(ancestor))
            ancestor = ancestor.parent
        if str(ancestor) not in self.created:
            if not ancestor.is_dir():
                raise ContainerCreateError(f"cannot mount at {target}: {ancestor} is not a directory")
            self.shadowed.add(str(ancestor))
        self.created.update(missing)
        if len(missing) > 1:
            self.directories.append(str(path.parent))


def plan_root(mounts: Iterable[SandboxMount], needed: Iterable[Path] = ()) -> tuple[FilesystemStep, ...]:
    """Operations for the shim that build the root file system; reads directories, so it may block.

    Mount points inside another mount are made in its source if that is owned by the pod.

    Args:
        mounts: what the pod wants.
        needed: directories of this machine without which nothing runs in a container, having no image: they stay where
            they are, also when a volume of the pod is mounted over them. Default: none.

    Raises:
        ContainerCreateError: a mount point is impossible; the message names it.
        OSError: a directory that must be rebuilt cannot be read.
    """
    plan = _Plan()
    placed: dict[str, tuple[SandboxMount, str]] = {}
    mounts = tuple(mounts)
    mounts += tuple(SandboxMount(path, str(path)) for path in needed if _is_covered(path, mounts))
    for mount in sorted(mounts, key=lambda mount: mount.target.split("/")):
        declared = posixpath.normpath(mount.target)
        if declared in placed:
            raise ContainerCreateError(f"mountPath {declared} is used twice")
        outer = max((each for each in placed if Path(declared).is_relative_to(each)), key=len, default=None)
        if outer is None:
            target = os.path.realpath(declared)
            plan.make_room(target, for_directory=mount.source.is_dir())
        else:
            inside = _make_inside(placed[outer][0], posixpath.relpath(declared, outer), mount)
            target = posixpath.normpath(posixpath.join(placed[outer][1], inside))
            innermost = max((other for _, other in placed.values() if Path(target).is_relative_to(other)), key=len)
            if innermost != placed[outer][1]:
                # A mount point made there would be made in a volume that has not been looked at.
                raise ContainerCreateError(f"cannot mount at {declared}: a symbolic link leads to {target}")
        placed[declared] = (mount, target)
        plan.binds.append(_bind(target, mount))
    return plan.operations()


def _is_covered(path: Path, mounts: Iterable[SandboxMount]) -> bool:
    """Whether a volume of the pod hides a directory that no other mount is meant to replace."""
    targets = {Path(posixpath.normpath(mount.target)): mount for mount in mounts}
    nearest = next((parent for parent in path.parents if parent in targets), None)
    return path not in targets and nearest is not None and targets[nearest].owned


def _bind(target: str, mount: SandboxMount) -> FilesystemStep:
    return FilesystemStep("bind", target, str(mount.source), read_only=mount.read_only)


def is_available(target: str, mounts: Iterable[SandboxMount]) -> bool:
    """Whether a directory exists in the container: on the machine, or perhaps in one of the mounts; may block."""
    covered = any(Path(target).is_relative_to(mount.target) for mount in mounts)
    return covered or Path(target).is_dir()


def _make_inside(outer: SandboxMount, rest: str, mount: SandboxMount) -> str:
    """Make the mount point inside another mount, unless it exists; returns where it is in there, links resolved."""
    inside = resolve_beneath(outer.source, rest)
    if inside is None:
        raise ContainerCreateError(
            f"cannot mount at {mount.target}: a symbolic link at {rest} leads out of what is mounted at {outer.target}"
        )
    if not (outer.source / inside).exists():
        if not outer.owned:
            raise ContainerCreateError(
                f"cannot mount at {mount.target}: {rest} does not exist in what is mounted at {outer.target}"
            )
        make_beneath(outer.source, inside, is_directory=mount.source.is_dir())
    return inside


def _depth(path: str) -> tuple[int, str]:
    return len(Path(path).parts), path


def _shadow(directory: str) -> list[FilesystemStep]:
    steps = [] if directory == "/" else [FilesystemStep("tmpfs", directory)]
    with os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.path == "/proc":
                steps += [FilesystemStep("directory", "/proc"), FilesystemStep("proc", "/proc")]
            elif entry.is_symlink():
                steps.append(FilesystemStep("symlink", entry.path, str(Path(entry.path).readlink()), optional=True))
            else:
                steps.append(FilesystemStep("bind", entry.path, entry.path, optional=True))
    return steps


IMAGE_DIRECTORIES = {"/run/sshd": "/usr/sbin/sshd"}
"""Empty directories that images with a program bring along, but a machine has only while it runs the program itself:
sshd, for one, does not start as root without the directory that its unprivileged part is locked up in."""


def volume_mounts(
    container: Mapping[str, Any], volumes: Mapping[str, ReadyVolume], variables: Mapping[str, str]
) -> list[SandboxMount]:
    """The container's volumeMounts; makes directories named by subPath, so it may block.

    Raises:
        ContainerConfigError: a subPath is none, or a subPathExpr has a variable that does not exist.
        ContainerCreateError: a subPath leads out of its volume, or is missing in one that cannot be written.
    """
    return [_mount(mount, volumes[mount["name"]], variables) for mount in container.get("volumeMounts") or []]


def image_mounts(empty: Path) -> list[SandboxMount]:
    """Directories that the container's image would have and this machine lacks; looks for them, so it may block."""
    missing = [
        path for path, program in IMAGE_DIRECTORIES.items() if Path(program).exists() and not Path(path).exists()
    ]
    return [SandboxMount(empty, path) for path in missing]


def _mount(mount: Mapping[str, Any], volume: ReadyVolume, variables: Mapping[str, str]) -> SandboxMount:
    for option, usual in (("mountPropagation", "None"), ("recursiveReadOnly", "Disabled")):
        if mount.get(option, usual) != usual:
            raise ContainerCreateError(f"the dev cluster does not support {option} (mountPath {mount['mountPath']})")
    return SandboxMount(
        _source(mount, volume, variables),
        "/" + mount["mountPath"].lstrip("/"),
        read_only=bool(mount.get("readOnly")) or volume.read_only,
        owned=volume.owned,
    )


def _source(mount: Mapping[str, Any], volume: ReadyVolume, variables: Mapping[str, str]) -> Path:
    """What of the volume is mounted."""
    sub_path = mount.get("subPath") or _expanded(mount.get("subPathExpr") or "", variables)
    if not sub_path:
        return volume.source
    if sub_path.startswith("/"):
        raise ContainerConfigError(f"error SubPath `{sub_path}` must not be an absolute path")
    if ".." in PurePosixPath(sub_path).parts:
        raise ContainerConfigError(f"unable to provision SubPath `{sub_path}`: must not contain '..'")
    inside = resolve_beneath(volume.source, sub_path)
    if inside is None:
        raise ContainerCreateError(f'subPath {sub_path!r} leads out of volume "{mount["name"]}"')
    source = volume.source / inside
    if not source.exists():
        if volume.read_only:
            raise ContainerCreateError(f'subPath {sub_path!r} does not exist in volume "{mount["name"]}"')
        make_beneath(volume.source, inside, is_directory=True)
    return source


def _expanded(expression: str, variables: Mapping[str, str]) -> str:
    """`subPathExpr` with the values of variables, all of which must be there."""
    missing = [name for name in references(expression) if name not in variables]
    if missing:
        raise ContainerConfigError(f'missing value for "{missing[0]}"')
    return expand(expression, variables)
