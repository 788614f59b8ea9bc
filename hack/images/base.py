"""A root file system of Debian's packages, for images where no registry can be reached, and for clean machines."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from hack.cache import cache_directory, locked
from hack.images.errors import ImageError, require, require_root
from hack.images.host import CONFINED

OLDSTABLE: Final = "bookworm"
"""The suite whose Python is the oldest that is supported."""
PYTHON: Final = ("ca-certificates", "python3", "python3-pip", "python3-venv")
_LEFTOVERS: Final = (
    "etc/apt/sources.list",
    "etc/hostname",
    "etc/resolv.conf",
    "var/cache/apt/*.bin",
    "var/cache/apt/archives/*.deb",
    "var/cache/ldconfig/*",
    "var/lib/apt/lists/*_*",
    "var/log/*.log",
    "var/log/apt/*",
)
"""Files that differ from one time to the next, or that name a mirror, a host and servers of this machine."""


def debian(suite: str = OLDSTABLE, packages: Sequence[str] = PYTHON) -> Path:
    """Give a root of a suite with these packages, from the cache or by debootstrap (a minute): nobody may write to it.

    Args:
        suite: as Debian names it.
        packages: what is installed beside the essential packages and apt; what they recommend is not.

    Raises:
        ImageError: not root, no debootstrap, or it failed.
    """
    wanted = sorted(set(packages))
    key = sha256(" ".join([*wanted, *_LEFTOVERS]).encode()).hexdigest()[:12]
    place = cache_directory() / "debian" / f"{suite}-{key}"
    with locked(place):
        if not place.exists():
            _bootstrap(suite, wanted, place)
    return place


def _bootstrap(suite: str, packages: Sequence[str], place: Path) -> None:
    require_root("make a root of Debian")
    require({"debootstrap": "debootstrap", "unshare": "util-linux", "setpriv": "util-linux"})
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="making-") as made:
        root = Path(made) / "root"
        include = [f"--include={','.join(packages)}"] if packages else []
        command = [*CONFINED, "debootstrap", "--variant=minbase", *include, suite, str(root), *mirror()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = "\n".join((done.stdout + done.stderr).splitlines()[-5:])
            raise ImageError(f"debootstrap of {suite} failed:\n{last}")
        for leftover in (each for pattern in _LEFTOVERS for each in root.glob(pattern)):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        root.rename(place)


def mirror() -> list[str]:
    """The mirror of Debian that apt of this machine is configured with; none, and thus debootstrap's own, without."""
    if shutil.which("apt-get") is None:
        return []
    command = ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = (line.rstrip("/").partition(" ") for line in listed.splitlines())
    return [uri for origin, _, uri in lines if origin == "Debian" and uri.endswith("/debian")][:1]
