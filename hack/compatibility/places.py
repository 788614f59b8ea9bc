"""Where the Pythons are: on this machine, or in a clean machine with a suite of Debian that has one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from hack.compatibility.combinations import ROOT
from hack.images.base import PYTHON
from hack.images.errors import ImageError
from hack.images.machine import CleanMachine, clean_machine

SUITES: Final = {"3.11": "bookworm", "3.13": "trixie", "3.14": "sid"}
"""Suites of Debian by the Python that they have; none has 3.12."""
_PACKAGES: Final = (*PYTHON, "git", "iproute2", "kmod", "make", "procps")
_TREE: Final = "/root/tree"


class NoPythonError(Exception):
    """A Python is to be had neither on this machine nor from Debian."""


class Place(Protocol):
    """Where commands run, with a copy of the repository as working directory."""

    @property
    def interpreter(self) -> str:
        """The program."""
        ...

    @property
    def environments(self) -> str:
        """The directory for virtual environments."""
        ...

    def call(self, command: tuple[str, ...]) -> int:
        """Run a command, show what it prints, and give its exit code."""
        ...


@dataclass(frozen=True, slots=True)
class ThisMachine:
    """The repository itself."""

    interpreter: str
    environments: str = ".venv/compatibility"

    def call(self, command: tuple[str, ...]) -> int:
        """Run a command with the priority of what can wait."""
        return subprocess.run(["nice", *command], cwd=ROOT, check=False).returncode


@dataclass(frozen=True, slots=True)
class DebianMachine:
    """A clean machine with a copy of the repository."""

    machine: CleanMachine
    interpreter: str = "python3"
    environments: str = "/root/environments"

    def call(self, command: tuple[str, ...]) -> int:
        """Run a command with the priority of what can wait."""
        there = self.machine.command("nice", "env", f"--chdir={_TREE}", *command)
        return subprocess.run(there, stdin=subprocess.DEVNULL, check=False).returncode


@contextmanager
def place_of(python: str) -> Iterator[Place]:
    """Give a place that has this Python.

    Args:
        python: such as `3.13`.

    Raises:
        NoPythonError: none has it.
    """
    found = interpreter(python)
    if found is not None:
        yield ThisMachine(found)
        return
    suite = SUITES.get(python)
    if suite is None:
        raise NoPythonError(f"Python {python} is not on PATH, not in pyenv, and in no suite of Debian")
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _archive(directory / "tree.tar")
        try:
            machine = stack.enter_context(clean_machine(suite, packages=_PACKAGES, mounts={directory: "/source"}))
        except ImageError as error:
            raise NoPythonError(
                f"Python {python} is not on PATH, not in pyenv, and Debian's {suite}: {error}"
            ) from error
        machine.run("mkdir", _TREE)
        machine.run("tar", "--extract", "--file=/source/tree.tar", f"--directory={_TREE}")
        yield DebianMachine(machine)


def interpreter(python: str) -> str | None:
    """Find an interpreter of this machine: this process's own, on PATH, or the newest one of pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    installed = sorted(versions.glob(f"{python}.*/bin/python"), key=_patch, reverse=True)
    candidates = [sys.executable, shutil.which(f"python{python}"), *map(str, installed)]
    return next((each for each in candidates if each and _version(each) == python), None)


def _patch(path: Path) -> int:
    patch = path.parents[1].name.rpartition(".")[2]
    return int(patch) if patch.isdigit() else -1


def _version(candidate: str) -> str:
    """The version of an interpreter; empty where it makes no environments, as Debian's without python3-venv."""
    code = "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([candidate, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _archive(place: Path) -> None:
    """Pack what belongs to the repository, as it is now."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout
    present = b"\0".join(each for each in files.split(b"\0") if each and (ROOT / os.fsdecode(each)).is_file())
    pack = ["tar", "--create", f"--file={place}", "--null", "--files-from=-"]
    subprocess.run(pack, cwd=ROOT, input=present, check=True)
