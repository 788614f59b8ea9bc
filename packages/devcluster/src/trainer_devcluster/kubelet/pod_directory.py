"""Where a pod's files are on disk."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

import structlog

from trainer_devcluster.kubelet.errors import VolumeError
from trainer_devcluster.log_paths import log_files, log_path, pod_logs

log = structlog.get_logger(__name__)

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - not for a temporary file, but for what shall be in memory
_PRIVATE = 0o700
_HAS_SHARED_MEMORY = os.access(_SHARED_MEMORY, os.W_OK | os.X_OK)


@dataclass(frozen=True, slots=True)
class PodDirectory:
    """Paths of one pod.

    Logs are where the API server's `pods/log` reads them. All else is in `<data_dir>/sandboxes/<pod uid>`.
    """

    data_dir: Path
    uid: str

    @property
    def logs(self) -> Path:
        """Directory of all logs of the pod."""
        return pod_logs(self.data_dir, self.uid)

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

    @property
    def memory(self) -> Path:
        """Directory of what is kept in memory; on disk where the machine has no `/dev/shm` to write to."""
        return _memory_of(self.data_dir) / self.uid

    def volume(self, name: str) -> Path:
        """Content of a volume that lives as long as the pod."""
        return self.state / "volumes" / name

    def memory_volume(self, name: str) -> Path:
        """Content of a volume that lives as long as the pod, in memory; needs `create_memory`."""
        return self.memory / name

    def log_file(self, container: str, restart_count: int) -> Path:
        """Log of one run of a container."""
        return log_path(self.data_dir, self.uid, container, restart_count)

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

    def create_memory(self) -> None:
        """Make the directory around all volumes in memory, which other users cannot enter.

        Raises:
            VolumeError: somebody else has made one of its name.
            OSError: it cannot be made.
        """
        _make_private(_memory_of(self.data_dir))

    def prepare_run(self, container: str, restart_count: int) -> None:
        """Make what one run of a container needs, and delete what the run before the last one has left."""
        if restart_count > 1:
            self._forget_run(container, restart_count - 2)
        self.log_file(container, restart_count).parent.mkdir(parents=True, exist_ok=True)
        self.scratch(container, restart_count).mkdir(parents=True, exist_ok=True)
        self.termination_log(container, restart_count).touch()

    def _forget_run(self, container: str, restart_count: int) -> None:
        for path in log_files(self.log_file(container, restart_count)).values():
            path.unlink(missing_ok=True)
        shutil.rmtree(self.scratch(container, restart_count).parent, ignore_errors=True)

    def remove(self) -> None:
        """Delete everything; what cannot be deleted is logged and left."""
        for path in (self.logs, self.state):
            shutil.rmtree(path, onerror=_log_failure)
        if _is_private(_memory_of(self.data_dir)):
            shutil.rmtree(self.memory, onerror=_log_failure)


def remove_orphans(data_dir: Path, keep: Container[str]) -> None:
    """Delete the directories of pods that no longer exist.

    Args:
        data_dir: the kubelet's data directory.
        keep: UIDs of the pods that exist.
    """
    memory = _memory_of(data_dir)
    parents = [data_dir / "pods", data_dir / "sandboxes", *([memory] if _is_private(memory) else [])]
    for parent in parents:
        for entry in parent.iterdir() if parent.is_dir() else ():
            if entry.name not in keep:
                shutil.rmtree(entry, onerror=_log_failure)


def remove_memory(data_dir: Path) -> None:
    """Delete what pods have kept in memory, when the kubelet ends."""
    memory = _memory_of(data_dir)
    if _is_private(memory):
        shutil.rmtree(memory, onerror=_log_failure)


def _make_private(path: Path) -> None:
    """Make a directory of mode 0700, or reuse one of this user.

    Everybody may write to `/dev/shm`, so another user can make a directory or a link of this name first. Nobody but its
    owner can replace what has been checked here, because `/dev/shm` has the sticky bit.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(_PRIVATE)
    except FileExistsError:
        if not _is_private(path):
            raise VolumeError(
                f"{path}, where volumes in memory go, is not a directory of this user: have its owner delete it, or "
                "start the dev cluster with another --data-dir"
            ) from None
    # One left by a former version is open to others.
    path.chmod(_PRIVATE)


def _is_private(path: Path) -> bool:
    """Whether there is a directory that this user owns, and not a link to one."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _memory_of(data_dir: Path) -> Path:
    """Where pods keep things in memory: a name that each user and data directory has for itself.

    It is on a tmpfs that the machine has already: that of a container would end with it, and be its own.
    """
    if not _HAS_SHARED_MEMORY:
        return data_dir / "memory"
    digest = hashlib.sha256(os.fsencode(data_dir.absolute())).hexdigest()
    return _SHARED_MEMORY / f"trainer-devcluster-{os.geteuid()}-{digest[:16]}"


def _log_failure(_function: object, path: str, problem: tuple[object, object, object]) -> None:
    if not isinstance(problem[1], FileNotFoundError):
        log.warning("could not remove", path=path, error=str(problem[1]))
