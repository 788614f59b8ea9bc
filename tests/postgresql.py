"""A PostgreSQL server of the tests' own, run by an unprivileged account in a temporary directory."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SETTINGS = "-c listen_addresses='' -c fsync=off -c synchronous_commit=off -c max_connections=50"


def postgresql_programs() -> Path | None:
    """The directory of the server's programs, that of the newest version; Debian keeps them off the PATH."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    directories = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return next((each for each in reversed(directories) if (each / "initdb").exists()), None)


MISSING = "PostgreSQL is not installed (Debian's package postgresql)"


@contextmanager
def postgresql_server(programs: Path) -> Iterator[str]:
    """A server on a socket in its directory, until the context is left; yields the URL of it, with `NAME` at its place.

    The server refuses to run as root, so root runs it as nobody.
    """
    account = pwd.getpwnam("nobody") if os.getuid() == 0 else None
    # Paths of sockets are limited to some 100 characters.
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as directory:
        if account is not None:
            os.chown(directory, account.pw_uid, account.pw_gid)

        def run(program: str, *arguments: str) -> None:
            subprocess.run(
                [str(programs / program), *arguments],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=directory,
                user=None if account is None else account.pw_uid,
                group=None if account is None else account.pw_gid,
                extra_groups=None if account is None else [],
            )

        data = f"{directory}/data"
        run("initdb", "-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", "--locale", "C.UTF-8", "--no-sync")
        run("pg_ctl", "-D", data, "-w", "-l", f"{directory}/log", "-o", f"-k {directory} {_SETTINGS}", "start")
        try:
            yield f"postgresql://test@/NAME?host={directory}"
        finally:
            run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
