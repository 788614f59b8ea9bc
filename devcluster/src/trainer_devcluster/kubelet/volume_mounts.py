"""What a container mounts: its volumeMounts and the files that every container has."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from trainer_devcluster.kubelet.environment import expand, references
from trainer_devcluster.kubelet.errors import ContainerConfigError, ContainerCreateError
from trainer_devcluster.kubelet.host_paths import make_beneath, resolve_beneath
from trainer_devcluster.kubelet.root_filesystem import SandboxMount

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer_devcluster.kubelet.volumes import Volume

IMAGE_DIRECTORIES = {"/run/sshd": "/usr/sbin/sshd"}
"""Empty directories that images with a program bring along, but a machine has only while it runs the program itself:
sshd, for one, does not start as root without the directory that its unprivileged part is locked up in."""


def volume_mounts(
    container: Mapping[str, Any], volumes: Mapping[str, Volume], variables: Mapping[str, str]
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


def _mount(mount: Mapping[str, Any], volume: Volume, variables: Mapping[str, str]) -> SandboxMount:
    for field, usual in (("mountPropagation", "None"), ("recursiveReadOnly", "Disabled")):
        if mount.get(field, usual) != usual:
            raise ContainerCreateError(f"the dev cluster does not support {field} (mountPath {mount['mountPath']})")
    return SandboxMount(
        _source(mount, volume, variables),
        "/" + mount["mountPath"].lstrip("/"),
        read_only=bool(mount.get("readOnly")) or volume.read_only,
        owned=volume.owned,
    )


def _source(mount: Mapping[str, Any], volume: Volume, variables: Mapping[str, str]) -> Path:
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
