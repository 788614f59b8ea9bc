"""Where a pod's files are on disk."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PodDirectory:
    """Paths of one pod.

    Logs are in `<data_dir>/pods/<pod uid>/<container>/<restart count>.log` in CRI format, from where the API server's
    `pods/log` reads them. All else is in `<data_dir>/sandboxes/<pod uid>`.
    """

    data_dir: Path
    uid: str

    @property
    def logs(self) -> Path:
        """Directory of all logs of the pod."""
        return self.data_dir / "pods" / self.uid

    @property
    def state(self) -> Path:
        """Directory of everything else."""
        return self.data_dir / "sandboxes" / self.uid

    @property
    def hosts(self) -> Path:
        """The pod's /etc/hosts."""
        return self.state / "hosts"

    @property
    def resolv_conf(self) -> Path:
        """The pod's /etc/resolv.conf."""
        return self.state / "resolv.conf"

    @property
    def new_root(self) -> Path:
        """Mount point for root file systems under construction; always empty."""
        return self.state / "root"

    @property
    def empty(self) -> Path:
        """A directory with nothing in it, for what the machine lacks."""
        return self.state / "empty"

    def volume(self, name: str) -> Path:
        """Content of a volume that lives as long as the pod."""
        return self.state / "volumes" / name

    def log_file(self, container: str, restart_count: int) -> Path:
        """Log of one run of a container."""
        return self.logs / container / f"{restart_count}.log"

    def scratch(self, container: str, restart_count: int) -> Path:
        """Working directory of one run of a container that names none."""
        return self.state / "containers" / container / str(restart_count) / "work"

    def termination_log(self, container: str, restart_count: int) -> Path:
        """File in which one run of a container may leave a message."""
        return self.state / "containers" / container / str(restart_count) / "termination-log"

    def create(self) -> None:
        """Make the directories that every pod needs."""
        for path in (self.logs, self.state, self.new_root, self.empty):
            path.mkdir(parents=True, exist_ok=True)
        self.empty.chmod(0o755)
        self.state.chmod(0o700)

    def prepare_run(self, container: str, restart_count: int) -> None:
        """Make what one run of a container needs."""
        self.log_file(container, restart_count).parent.mkdir(parents=True, exist_ok=True)
        self.scratch(container, restart_count).mkdir(parents=True, exist_ok=True)
        self.termination_log(container, restart_count).touch()

    def remove(self) -> None:
        """Delete everything; what cannot be deleted is logged and left."""
        for path in (self.logs, self.state):
            shutil.rmtree(path, onerror=_log_failure)


def remove_orphans(data_dir: Path, keep: Container[str]) -> None:
    """Delete the directories of pods that no longer exist.

    Args:
        data_dir: the kubelet's data directory.
        keep: UIDs of the pods that exist.
    """
    for parent in (data_dir / "pods", data_dir / "sandboxes"):
        for entry in parent.iterdir() if parent.is_dir() else ():
            if entry.name not in keep:
                shutil.rmtree(entry, onerror=_log_failure)


def _log_failure(_function: object, path: str, problem: tuple[object, object, object]) -> None:
    if not isinstance(problem[1], FileNotFoundError):
        log.warning("could not remove", path=path, error=str(problem[1]))
