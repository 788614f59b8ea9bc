"""Where `trainer up` keeps what it must remember: processes, kubeconfig, logs and the data of the dev cluster."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainer.cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LOCK_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """The directory of one user's background cluster; nothing in it is created by asking for a path."""

    root: Path

    @classmethod
    def of_user(cls, environment: Mapping[str, str] = os.environ) -> StateDirectory:
        """`$XDG_STATE_HOME/trainer`, by default `~/.local/state/trainer` (XDG Base Directory Specification)."""
        state_home = environment.get("XDG_STATE_HOME", "")
        # The specification tells programs to ignore relative paths.
        base = Path(state_home) if state_home.startswith("/") else _home() / ".local" / "state"
        return cls(base / "trainer")

    @property
    def kubeconfig(self) -> Path:
        """Credentials of the dev cluster, as kubectl reads them."""
        return self.root / "kubeconfig"

    @property
    def manager_kubeconfig(self) -> Path:
        """Credentials of the controller manager, which may do less."""
        return self.root / "manager.kubeconfig"

    @property
    def manager_configuration(self) -> Path:
        """Configuration file of the controller manager."""
        return self.root / "manager.yaml"

    @property
    def data(self) -> Path:
        """What the dev cluster stores: objects, pod volumes and container logs."""
        return self.root / "data"

    def record(self, name: str) -> Path:
        """The run record of a background process."""
        return self.root / f"{name}.json"

    def log(self, name: str) -> Path:
        """Standard output and error of a background process."""
        return self.root / f"{name}.log"

    def create(self) -> None:
        """Make the directory, readable by its owner only."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def delete_data(self) -> None:
        """Forget what the dev cluster stores; blocks.

        Raises:
            CommandError: something of it cannot be deleted.
        """
        try:
            shutil.rmtree(self.data)
        except FileNotFoundError:
            return
        except OSError as error:
            raise CommandError(f"cannot delete {error.filename}: {error.strerror}") from error

    @contextmanager
    def lock(self, *, timeout_seconds: float = 120) -> Iterator[None]:
        """Hold the directory against other commands that change it, waiting for them first; blocks the thread.

        Raises:
            CommandError: another command still holds it after the timeout.
        """
        self.create()
        deadline = time.monotonic() + timeout_seconds
        with (self.root / "lock").open("w") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        message = f"another `trainer up` or `trainer down` is at work on {self.root}; try again later"
                        raise CommandError(message) from None
                    time.sleep(_LOCK_POLL_SECONDS)
            yield


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user that nobody knows, as in containers
        return Path("/")
