"""A clean machine: a root of Debian in namespaces of its own, whose changes and processes end with it."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hack.images.base import OLDSTABLE, PYTHON, debian
from hack.images.errors import ImageError, require, require_root
from hack.images.host import AUTHORITIES, pip_settings, proxies

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_HOLD: Final = """
mount -t overlay overlay -o "lowerdir=$LOWER,upperdir=$UPPER,workdir=$WORK" "$ROOT"
mount -t proc proc "$ROOT/proc"
mount --rbind /sys "$ROOT/sys"
mount --rbind /dev "$ROOT/dev"
eval "$BINDS"
cd "$ROOT"
pivot_root . .
umount --lazy .
exec /bin/bash -c 'echo ready; read -r'
"""
"""Its first process: it reaps orphans, and ends with this one, since `read` then meets the end of the pipe.

A changed root directory alone would keep users from making namespaces, which they may on a machine."""


@dataclass(frozen=True, slots=True)
class CleanMachine:
    """A machine with the network of this one, on which commands run as root from /root."""

    holder: int
    """The process that has its namespaces."""
    changes: Path
    """The directory with all that differs from the base."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The variables of its commands; nothing of this machine's is in them but proxies."""

    def command(self, *command: str, environment: Mapping[str, str] | None = None) -> list[str]:
        """What this machine has to run for a command to run there."""
        variables = {**self.environment, **(environment or {})}
        return [
            "nsenter",
            f"--mount=/proc/{self.holder}/ns/mnt",
            f"--pid=/proc/{self.holder}/ns/pid_for_children",
            *("/usr/bin/env", "--ignore-environment", "--chdir=/root"),
            *(f"{name}={value}" for name, value in variables.items()),
            *command,
        ]

    def run(
        self, *command: str, environment: Mapping[str, str] | None = None, check: bool = True, timeout: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end.

        Args:
            command: program and arguments.
            environment: variables beside those of the machine.
            check: whether another exit code than 0 is an error.
            timeout: seconds.

        Raises:
            ImageError: it failed, and the message has what it printed; or it took too long.
        """
        there = self.command(*command, environment=environment)
        try:
            done = subprocess.run(
                there, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=timeout
            )
        except subprocess.TimeoutExpired as error:
            raise ImageError(f"{shlex.join(command)} has not ended after {timeout:.0f} s") from error
        if check and done.returncode:
            raise ImageError(f"{shlex.join(command)} exits with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done


@contextmanager
def clean_machine(
    suite: str = OLDSTABLE, *, packages: Sequence[str] = PYTHON, mounts: Mapping[Path, str] | None = None
) -> Iterator[CleanMachine]:
    """A machine with a suite of Debian, and pip configured as here, until the end of the context.

    Args:
        suite: as Debian names it.
        packages: what is installed; see `debian`.
        mounts: files and directories of this machine, by the path at which the other one reads them; it cannot write.

    Raises:
        ImageError: not root, a program is missing, or the base could not be made.
    """
    require_root("start a clean machine")
    require({"unshare": "util-linux", "nsenter": "util-linux"})
    base = debian(suite, packages)
    with (
        tempfile.TemporaryDirectory(prefix="clean-machine-") as directory,
        _held(base, Path(directory), mounts or {}) as machine,
    ):
        yield machine


@contextmanager
def _held(base: Path, directory: Path, mounts: Mapping[Path, str]) -> Iterator[CleanMachine]:
    root, changes, work = (directory / name for name in ("root", "changes", "work"))
    for each in (root, changes, work):
        each.mkdir(mode=0o755)
    pip = pip_settings()
    (changes / "etc").mkdir()
    (changes / "etc" / "pip.conf").write_text(pip.text)
    binds = {place: str(place) for place in (Path("/etc/resolv.conf"), Path("/etc/hosts"), AUTHORITIES, *pip.places)}
    environment = {"PATH": _PATH, "HOME": "/root", "LANG": "C.UTF-8", **proxies()}
    variables = {
        "PATH": _PATH,
        "LOWER": str(base),
        "UPPER": str(changes),
        "WORK": str(work),
        "ROOT": str(root),
        "BINDS": "\n".join(_bind(source, root, target) for source, target in {**binds, **mounts}.items()),
    }
    holder = subprocess.Popen(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-e", "-u", "-c", _HOLD],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stderr is not None
        try:
            if holder.stdout.readline() != "ready\n":
                raise ImageError(f"the clean machine does not start: {holder.stderr.read().strip()}")
            yield CleanMachine(holder.pid, changes, environment)
        finally:
            holder.stdin.close()
            holder.wait(timeout=30)


def _bind(source: Path, root: Path, target: str) -> str:
    there = f"{root}/{target.lstrip('/')}"
    here, place = shlex.quote(str(source.resolve())), shlex.quote(there)
    make = f"mkdir -p {place}" if source.is_dir() else f"mkdir -p $(dirname {place}); touch {place}"
    return f"{make}; mount --bind {here} {place}; mount -o remount,bind,ro {place}"
