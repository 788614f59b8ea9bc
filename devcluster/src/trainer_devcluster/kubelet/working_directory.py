"""Where a container without a mount namespace works: volumes mounted at its workingDir or below it are found there.

Relative paths then lead to the same files as in a sandbox, so `python train.py` finds the script of its volume.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trainer_devcluster.kubelet.root_filesystem import SandboxMount


SERVICE_ACCOUNT = PurePosixPath("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where every container has the credentials of its pod, asked for or not."""


def unreachable_mount(container: Mapping[str, Any]) -> str | None:
    """Why a volume of the container cannot be where it should be; None if all can.

    The credentials of the pod do not count: most programs have no use for them, and nearly all pods have them.
    """
    directory = container.get("workingDir")
    targets = [PurePosixPath("/", mount["mountPath"]) for mount in container.get("volumeMounts") or []]
    targets = [target for target in targets if target != SERVICE_ACCOUNT]
    for target in targets:
        if not directory or not target.is_relative_to(directory):
            return f"{target} is not workingDir or below it, and this machine allows no mount namespaces"
    for target in targets:
        # A link to one volume would be made inside another, perhaps through a link that a pod has left there.
        if any(target in other.parents for other in targets):
            return f"{target} has other mounts below it, and this machine allows no mount namespaces"
    return None


def place_mounts(directory: str, scratch: Path, mounts: Iterable[SandboxMount]) -> Path:
    """The directory to start in: that of the volume mounted at `directory`, or `scratch` with links to those below.

    Blocks. Whether a mount is read-only is not enforced.
    """
    if not directory:
        return scratch
    below = [mount for mount in mounts if PurePosixPath(mount.target).is_relative_to(directory)]
    for mount in below:
        place = PurePosixPath(mount.target).relative_to(directory)
        if not place.parts:
            return mount.source
        link = scratch / place
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(mount.source)
    return scratch if below or not Path(directory).is_dir() else Path(directory)
