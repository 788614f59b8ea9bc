"""A machine on which there are the artefacts of a release, and nothing of the repository."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.request import urlopen

from hack.images import CleanMachine

DIST = "/dist"
"""Where the machine has the artefacts."""
_PROCESS = "/root/background-process"
_VARIABLES = {"XDG_STATE_HOME": "/root/state"}


@dataclass(frozen=True)
class Environment:
    """A virtual environment of the machine."""

    machine: CleanMachine
    folder: str

    def pip_install(self, *requirements: str) -> None:
        """Install what the artefacts have, and what it needs in the versions that they name."""
        ours = ("--find-links", DIST, "--constraint", f"{DIST}/constraints.txt")
        self.run("pip", "install", "--quiet", *ours, *requirements)

    def run(self, program: str, *arguments: str, succeeds: bool = True) -> str:
        """Give what a program prints."""
        done = self.machine.run(
            f"{self.folder}/bin/{program}", *arguments, environment=self._variables(), check=False, timeout=300
        )
        output = done.stdout + done.stderr
        assert (done.returncode == 0) == succeeds, f"{shlex.join((program, *arguments))}: {output}"
        return output

    @contextmanager
    def started(self, program: str, *arguments: str, until: str) -> Iterator[re.Match[str]]:
        """Run a program in the background, from its first line that has a pattern to the end of the context."""
        noting = ("/bin/bash", "-c", f'echo $$ >{_PROCESS}; exec "$@"', "bash", f"{self.folder}/bin/{program}")
        command = self.machine.command(*noting, *arguments, environment=self._variables())
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            assert process.stdout is not None
            printed = []
            for line in process.stdout:
                printed.append(line)
                if found := re.search(until, line):
                    break
            else:
                raise AssertionError(f"{program} ended: {''.join(printed)}")
            try:
                yield found
            finally:
                # It is in a namespace of its own, where a signal to the process that entered it does not arrive.
                self.machine.run("/bin/bash", "-c", f"kill $(cat {_PROCESS})")

    def _variables(self) -> dict[str, str]:
        path = f"{self.folder}/bin:{self.machine.environment['PATH']}"
        return {**self.machine.environment, **_VARIABLES, "PATH": path}


def environment(machine: CleanMachine, name: str) -> Environment:
    """Make a virtual environment."""
    folder = f"/root/{name}"
    machine.run("python3", "-m", "venv", folder)
    return Environment(machine, folder)


def write(machine: CleanMachine, name: str, text: str) -> None:
    """Write a file into the home directory."""
    machine.run("/bin/bash", "-c", 'printf %s "$TEXT" >"$NAME"', environment={"TEXT": text, "NAME": name})


def page_at(address: str) -> str:
    """Give the page of a server on the machine, which shares the network of this one."""
    with urlopen(address, timeout=20) as answer:
        return str(answer.read(), "utf-8")
