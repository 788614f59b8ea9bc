"""The state directories of one user's dev clusters: what `trainer up` keeps on disk."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.similar import did_you_mean

DEFAULT: Final = "dev"
"""The cluster of commands that name none; its state is not below the directory of the others."""
CONTEXT_PREFIX: Final = "trainer-"
"""Stands before the name of a cluster in that of its context."""
_OTHERS: Final = "clusters"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
_BLOCK: Final = 512
"""Bytes of the blocks that stat(2) counts."""
_LOCK_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """The directory of one background cluster."""

    root: Path
    name: str = DEFAULT

    @classmethod
    def of_user(cls, name: str = DEFAULT) -> StateDirectory:
        """That of a cluster of this user, which need not exist.

        Raises:
            BadInputError: this is no name of a cluster.
        """
        if not is_name(name):
            raise BadInputError(
                f"--name: {name!r} is no name of a cluster: use 1 to 40 lower case letters, digits and '-', with a "
                "letter or digit at both ends"
            )
        root = user_directory()
        return cls(root if name == DEFAULT else root / _OTHERS / name, name)

    @property
    def context(self) -> str:
        """The context of the cluster in the kubeconfig of the user's dev clusters."""
        return f"{CONTEXT_PREFIX}{self.name}"

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of an administrator, of this cluster alone: the cluster writes it when it starts."""
        return self.root / "cluster.kubeconfig"

    @property
    def manager_kubeconfig(self) -> Path:
        """Kubeconfig of the controller manager."""
        return self.root / "manager.kubeconfig"

    @property
    def manager_configuration(self) -> Path:
        """Configuration file of the controller manager."""
        return self.root / "manager.yaml"

    @property
    def identity_file(self) -> Path:
        """Has the identity of the cluster, by which the history knows it also while it does not run."""
        return self.root / "cluster.uid"

    @property
    def data(self) -> Path:
        """The directory of the dev cluster's data: objects, pod volumes and container logs."""
        return self.root / "data"

    @property
    def _deleted_data(self) -> Path:
        """Where data is while it is deleted."""
        return self.root / "data.deleted"

    def record(self, name: str) -> Path:
        """The run record of a background process."""
        return self.root / f"{name}.json"

    def log(self, name: str) -> Path:
        """Standard output and error of a background process."""
        return self.root / f"{name}.log"

    def stopping(self, name: str) -> Path:
        """Exists from the moment at which `trainer` begins to stop a background process until it has done so."""
        return self.root / f"{name}.stopping"

    def identity(self) -> str:
        """The identity of the cluster; "" where it has not started yet."""
        return self.identity_file.read_text().strip() if self.identity_file.is_file() else ""

    def command(self, verb: str) -> str:
        """The command line by which people do something to this cluster."""
        return f"trainer {verb}" + ("" if self.name == DEFAULT else f" --name {self.name}")

    def exists(self) -> bool:
        """Whether the cluster was started, and not deleted since."""
        return any(each.exists() for each in (self.data, self._deleted_data, self.record("cluster")))

    def size(self) -> int:
        """Bytes on disk of the objects, volumes and logs; blocks."""
        files = (Path(parent) / name for parent, _, names in os.walk(self.data) for name in names)
        return sum(map(_bytes_of, files))

    def create(self) -> None:
        """Create the directory, readable by its owner only."""
        for each in (*([user_directory()] if self.name != DEFAULT else []), self.root):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)

    def delete_data(self) -> None:
        """Delete the data of the dev cluster; blocks. Interrupted, it leaves no half of the data to the next start."""
        doomed = self._deleted_data
        try:
            if doomed.exists():
                shutil.rmtree(doomed)
            if self.data.exists():
                self.data.rename(doomed)
                shutil.rmtree(doomed)
            for file in (self.kubeconfig, self.identity_file):
                file.unlink(missing_ok=True)
            if self.name != DEFAULT and self.root.exists():  # that of the default has the history, and the others
                shutil.rmtree(self.root)
        except OSError as error:
            raise CommandError(f"cannot delete {error.filename}: {error.strerror}") from error

    @contextmanager
    def lock(self, *, timeout_seconds: float = 120) -> Iterator[None]:
        """Lock the directory against other commands that change it, after waiting for them; blocks the thread."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            self.create()
            with (self.root / "lock").open("w") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        message = f"another `trainer up` or `trainer down` is changing {self.root}; try again later"
                        raise CommandError(message) from None
                    time.sleep(_LOCK_POLL_SECONDS)
                    continue
                if _is_at(file.fileno(), self.root / "lock"):  # who had it may have deleted the directory
                    yield
                    return


def is_name(text: str) -> bool:
    """Whether a dev cluster may have this name."""
    return _NAME.fullmatch(text) is not None


def user_directory() -> Path:
    """`$XDG_STATE_HOME/trainer`, by default `~/.local/state/trainer` (XDG Base Directory Specification)."""
    state_home = os.environ.get("XDG_STATE_HOME", "")
    # The specification says to ignore relative paths.
    base = Path(state_home) if state_home.startswith("/") else _home() / ".local" / "state"
    return base / "trainer"


def existing_clusters() -> list[StateDirectory]:
    """The clusters that this user has started and not deleted, the default first; blocks."""
    others = user_directory() / _OTHERS
    names = sorted(each.name for each in others.iterdir()) if others.is_dir() else []
    found = [StateDirectory.of_user(name) for name in (DEFAULT, *filter(is_name, names))]
    return [each for each in found if each.exists()]


def existing_cluster(name: str) -> StateDirectory:
    """The cluster of this name; that of the default need not exist.

    Raises:
        BadInputError: there is none.
    """
    state, names = StateDirectory.of_user(name), [each.name for each in existing_clusters()]
    if name not in (DEFAULT, *names):
        known = f"there are: {', '.join(names)}" if names else "there is none"
        raise BadInputError(f"--name: there is no cluster {name}{did_you_mean(name, names)}; {known}")
    return state


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user without an entry in passwd, as in containers
        return Path("/")


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _bytes_of(file: Path) -> int:
    try:
        return file.lstat().st_blocks * _BLOCK
    except OSError:  # it was deleted meanwhile
        return 0
