"""A user with a state directory of their own, for `trainer up`, `down` and `status`."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.kubectl import BIN, Kubectl


@dataclass(frozen=True, slots=True)
class Home:
    """A user with a state directory of their own."""

    state: Path
    bin: Path = BIN
    """Where its programs are. Default: those of the environment under test."""
    directory: Path | None = None
    """Where they run. Default: where the tests do, which is a checkout: `python -m` would import what is there."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, of all clusters."""
        return self.state / "trainer" / "kubeconfig"

    @property
    def kubectl(self) -> Kubectl:
        """Of the administrator."""
        return Kubectl(self.kubeconfig)

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        environment |= {"XDG_STATE_HOME": str(self.state)}
        return subprocess.run(
            [self.bin / program, *arguments],
            cwd=self.directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def run_on_terminal(self, typed: str, *command: str) -> str:
        """What a command shows on a terminal with colours on which this is typed."""
        environment = {name: value for name, value in os.environ.items() if name not in {"KUBECONFIG", "NO_COLOR"}}
        environment |= {"XDG_STATE_HOME": str(self.state), "TERM": "xterm"}
        ours, theirs = pty.openpty()
        with os.fdopen(ours, "r+b", buffering=0) as terminal:
            with os.fdopen(theirs, "r+b", buffering=0) as end:
                process = subprocess.Popen(
                    [self.bin / command[0], *command[1:]], env=environment, stdin=end, stdout=end, stderr=end
                )
            terminal.write(typed.encode())
            shown = b""
            with suppress(OSError):  # EIO: all have closed their end
                while chunk := terminal.read(4096):
                    shown += chunk
            process.wait(timeout=120)
        return shown.decode()

    def trainer(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("trainer", *arguments)

    def end(self) -> None:
        """Stop and delete all clusters."""
        for state in (self.state / "trainer" / "clusters").glob("*"):
            self.trainer("down", "--delete", "--name", state.name)
        self.trainer("down", "--delete")

    def pids(self) -> dict[str, int]:
        """The pids of both halves, as `trainer status` tells them."""
        found = re.findall(r"^(cluster|manager) +running, pid (\d+)", self.trainer("status").stdout, re.MULTILINE)
        return {name: int(pid) for name, pid in found}

    def require_pod_networks(self) -> None:
        """Skip the test where pods have no networks of their own."""
        if "pod network  netns" not in self.trainer("status").stdout:
            pytest.skip("pods share one network on this machine, where trainings cannot use one port side by side")


@contextmanager
def running_home(state: Path, *options: str) -> Iterator[Home]:
    """A user whose cluster `trainer up` has started with these options, until the context closes."""
    own = Home(state)
    up = own.trainer("up", *options)
    assert up.returncode == 0, up.stdout + up.stderr
    try:
        yield own
    finally:
        own.trainer("down", "--delete")
