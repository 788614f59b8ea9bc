"""Processes that are measured from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_TIMEOUT = 60.0


class Child:
    """A process that is measured."""

    def __init__(self, name: str, process: subprocess.Popen[str], log: Path) -> None:
        self.name = name
        self.log = log
        """What it has written."""
        self._process = process
        self._proc = Path(f"/proc/{process.pid}")

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself, or was killed."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it without asking."""
        self._process.kill()
        self._process.wait()

    def resident_bytes(self, field: str = "VmRSS") -> int:
        """Resident set size; `VmHWM` is the largest so far."""
        for line in (self._proc / "status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"/proc/{self._process.pid}/status has no {field}")

    def cpu_seconds(self) -> float:
        """Processor time so far."""
        fields = (self._proc / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def child(name: str, command: list[str], directory: Path, *, ready: str) -> Iterator[Child]:
    """Run a process until the context ends; its output goes to a log in the directory.

    Args:
        name: of the process and its log.
        command: with its arguments.
        directory: for the log.
        ready: what the process writes when it is.

    Raises:
        RuntimeError: it does not say that it is ready.
    """
    log = directory / f"{name}.log"
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, text=True)
    try:
        deadline = time.monotonic() + _TIMEOUT
        while ready not in log.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the {name} did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.1)
        yield Child(name, process, log)
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def dev_cluster(directory: Path) -> Iterator[tuple[Path, Child]]:
    """A dev cluster that runs no pods; yields its kubeconfig and its process.

    Raises:
        RuntimeError: it does not start.
    """
    kubeconfig = directory / "kubeconfig"
    command = [sys.executable, "-m", "trainer.cli", "cluster", "--no-kubelet", "--kubeconfig", str(kubeconfig)]
    with child("cluster", command, directory, ready="cluster ready") as process:
        yield kubeconfig, process
