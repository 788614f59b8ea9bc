"""What a container mounts: its volumeMounts and the files that every container has."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from trainer.devcluster.kubelet.environment import expand
from trainer.devcluster.kubelet.errors import ContainerCreateError
from trainer.devcluster.kubelet.root_filesystem import SandboxMount

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainer.devcluster.kubelet.volumes import Volume

IMAGE_DIRECTORIES = {"/run/sshd": "/usr/sbin/sshd"}
"""Empty directories that images with a program bring along, but a machine has only while it runs the program itself:
sshd, for one, does not start as root without the directory that its unprivileged part is locked up in."""


def volume_mounts(
    container: Mapping[str, Any], volumes: Mapping[str, Volume], variables: Mapping[str, str]
) -> list[SandboxMount]:
    """The container's volumeMounts; makes directories named by subPath in volumes of the pod, so it may block.

    Raises:
        ContainerCreateError: a subPath leaves its volume, or is missing in a volume that belongs to the machine.
    """
    return [_mount(mount, volumes[mount["name"]], variables) for mount in container.get("volumeMounts") or []]


def image_mounts(empty: Path) -> list[SandboxMount]:
    """Directories that the container's image would have and this machine lacks; looks for them, so it may block."""
    missing = [
        path for path, program in IMAGE_DIRECTORIES.items() if Path(program).exists() and not Path(path).exists()
    ]
    return [SandboxMount(empty, path) for path in missing]


def _mount(mount: Mapping[str, Any], volume: Volume, variables: Mapping[str, str]) -> SandboxMount:
    if mount.get("mountPropagation", "None") != "None":
        raise ContainerCreateError(
            f"the dev cluster does not support mountPropagation (mountPath {mount['mountPath']})"
        )
    read_only = bool(mount.get("readOnly")) or volume.read_only
    sub_path = mount.get("subPath") or expand(mount.get("subPathExpr") or "", variables)
    source = volume.source
    if sub_path:
        if ".." in PurePosixPath(sub_path).parts or sub_path.startswith("/"):
            raise ContainerCreateError(f"subPath {sub_path!r} must be relative and must not contain '..'")
        source = volume.source / sub_path
        if volume.owned and not volume.read_only and not source.exists():
            source.mkdir(parents=True)
        if not source.exists():
            raise ContainerCreateError(f'subPath {sub_path!r} does not exist in volume "{mount["name"]}"')
    return SandboxMount(source, "/" + mount["mountPath"].lstrip("/"), read_only=read_only, owned=volume.owned)
