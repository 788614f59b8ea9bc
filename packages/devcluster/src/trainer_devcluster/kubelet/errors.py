"""What can go wrong with a pod, by who can fix it."""

from __future__ import annotations

from trainer.kube.errors import KubeError


class SandboxError(KubeError):
    """A pod gets no sandbox now; the kubelet tries again."""


class ReplacedFilesError(SandboxError):
    """The programs of the dev cluster are those of another version now."""


class PodNetworkError(SandboxError):
    """A pod network mode does not work on this machine; the message says why."""


class VolumeError(KubeError):
    """A volume cannot be made yet, for example because its ConfigMap is missing; the kubelet tries again."""


class UnsupportedVolumeError(VolumeError):
    """A volume that the dev cluster cannot offer; the pod stays Pending until it is deleted."""


class ContainerConfigError(KubeError):
    """A container's environment refers to something that is missing; the kubelet tries again."""


class ContainerCreateError(KubeError):
    """A container cannot be created as it is specified; it stays waiting until the pod is deleted."""


class ContainerStartError(KubeError):
    """The container's program could not be started; ends the attempt like an exit with code 128.

    Args:
        reason: reason of the terminated state: StartError or ContainerCannotRun.
        message: what to tell the user.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class PodGoneError(KubeError):
    """The pod was deleted, or replaced by one of the same name."""
