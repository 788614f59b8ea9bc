"""Processes that tests start, and those that must not be left."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from e2e.waiting import until


@dataclass(slots=True)
class Process:
    """A program in the background with its output in a file; may be started again after its end."""

    command: list[str]
    log: Path
    environment: dict[str, str] = field(default_factory=dict)
    _popen: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def pid(self) -> int:
        assert self._popen is not None
        return self._popen.pid

    def start(self, *, ready: str) -> None:
        """Start it and wait until its output has the text `ready`.

        It gets SIGHUP even if the tests ignore it, as under nohup: what is ignored would stay ignored.
        """
        self.log.write_bytes(b"")
        with self.log.open("ab") as output:
            self._popen = subprocess.Popen(
                ["env", "--default-signal=HUP", *self.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | self.environment,
                start_new_session=True,
            )
        self.wait_for_output(ready)

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for_output(self, text: str, *, timeout: float = 60) -> None:
        """Wait until it has written this text."""

        def written() -> bool:
            if text in self.output():
                return True
            assert self._popen is not None
            assert self._popen.poll() is None, f"{self.command} ended:\n{self.output()}"
            return False

        until(written, lambda: f"{text!r} in the output of {self.command}:\n{self.output()}", timeout=timeout)

    def send(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def exit_code(self) -> int | None:
        """As `subprocess` has it; None while it runs."""
        return None if self._popen is None else self._popen.poll()

    def wait(self, *, timeout: float = 60) -> int:
        """Wait for its end; returns the exit status as `subprocess` has it."""
        assert self._popen is not None
        return self._popen.wait(timeout)

    def stop(self) -> None:
        """End it, asking first."""
        if self._popen is None or self._popen.poll() is not None:
            return
        self._popen.terminate()
        try:
            self._popen.wait(30)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()


def running(pid: int) -> bool:
    """Whether there is such a process and it is more than a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def peak_bytes(pid: int) -> int:
    """The most memory that a process has ever had in RAM."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def descendants(pid: int) -> set[int]:
    """The pids of all children of a process, and their children."""
    parents: dict[int, list[int]] = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            with suppress(OSError):
                stat = (directory / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(stat[1]), []).append(int(directory.name))
    found: set[int] = set()
    pending = [pid]
    while pending:
        for child in parents.get(pending.pop(), []):
            found.add(child)
            pending.append(child)
    return found


def with_argument(text: str) -> set[int]:
    """The pids of running processes with this text in their command line."""
    found = set()
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and int(directory.name) != os.getpid():
            with suppress(OSError):
                if text.encode() in (directory / "cmdline").read_bytes() and running(int(directory.name)):
                    found.add(int(directory.name))
    return found
