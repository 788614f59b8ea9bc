"""How a container has ended, from its status.

Kubelet and container runtime give a reason of their own where they know one, such as OOMKilled; `Error` and
`Completed` say no more than the exit code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from trainer.kube.objects import Object
from trainer.workloads.containers import container_statuses

OUT_OF_MEMORY: Final = "OOMKilled"
"""The reason of a container in which the kernel has killed a process at the limit of memory, whatever its exit code."""
UNKNOWN_END: Final = "ContainerStatusUnknown"
"""The reason of a container that the kubelet has not found again, such as after a restart of its node."""
SIGKILL: Final = 137
"""Exit code of a process that SIGKILL has ended."""
SIGTERM: Final = 143
"""Exit code of a process that SIGTERM has ended."""
SIGNALS: Final = {
    130: "interrupted",
    132: "illegal instruction",
    134: "aborted",
    135: "bus error",
    136: "arithmetic error",
    SIGKILL: "killed",
    139: "segmentation fault",
    SIGTERM: "terminated",
}
"""What the exit codes of programs that a signal has ended mean."""
_BY_ITSELF = frozenset({"", "Error", "Completed"})


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """The end of one run of a container."""

    container: str
    """Name of the container."""
    exit_code: int
    reason: str = ""
    """One CamelCase word of the container runtime. Default: none."""
    message: str = ""
    """What the program has left as its termination message, or what the container runtime says. Default: nothing."""
    finished: str = ""
    """When, in RFC 3339. Default: unknown."""

    @classmethod
    def of(cls, container: str, terminated: Mapping[str, Any]) -> Self:
        """Read a `state.terminated` of the container's status."""
        return cls(
            container,
            int(terminated.get("exitCode") or 0),
            str(terminated.get("reason") or ""),
            str(terminated.get("message") or "").strip(),
            str(terminated.get("finishedAt") or ""),
        )

    @property
    def is_own(self) -> bool:
        """Whether nobody but the program is known to have ended it."""
        return self.reason in _BY_ITSELF

    @property
    def is_out_of_memory(self) -> bool:
        """Whether the kernel has killed a process of the container at its limit of memory."""
        return self.reason == OUT_OF_MEMORY

    @property
    def is_killed(self) -> bool:
        """Whether somebody has ended the program with a signal, and nothing says who."""
        return self.is_own and self.exit_code in {SIGKILL, SIGTERM}


def last_end(status: Object) -> ContainerEnd | None:
    """How a container has ended the last time, by its status; None before its first end."""
    state, last = status.get("state") or {}, status.get("lastState") or {}
    terminated = state.get("terminated") or last.get("terminated")
    return None if terminated is None else ContainerEnd.of(str(status.get("name") or ""), terminated)


def ends_of(pod: Mapping[str, Any]) -> Iterator[ContainerEnd]:
    """The ends of the containers that do not run at present, init containers first."""
    for status in container_statuses(pod):
        terminated = (status.get("state") or {}).get("terminated")
        if terminated is not None:
            yield ContainerEnd.of(str(status.get("name") or ""), terminated)
