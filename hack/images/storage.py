"""Container storage of our own, so that nothing of this machine's is touched, and buildah on it."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.images.base import cache_directory, locked
from hack.images.errors import ImageError, require, require_root

_POLICY: Final = '{"default": [{"type": "insecureAcceptAnything"}]}'
"""Bases are named by digest where that matters; this machine's policy of signatures says nothing about them."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Images and containers below a directory."""

    root: Path
    """Where layers are kept."""
    state: Path
    """What is only true while processes run: mounts."""

    def buildah(self, *arguments: str) -> str:
        """Run buildah, in mounts of its own, so that none is left when it is killed.

        Raises:
            ImageError: it failed; the message has the last lines of what it printed.
        """
        command = ["unshare", "--mount", "buildah", "--storage-driver=overlay", f"--root={self.root}"]
        command += [f"--runroot={self.state}", *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            last = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
            raise ImageError(f"buildah {arguments[0]} failed:\n{last}")
        return done.stdout.strip()

    def build(self, *arguments: str, context: Path, timestamp: int) -> None:
        """Build an image of a Dockerfile; files and image have the given time, in seconds since 1970."""
        common = ["--quiet", "--isolation=chroot", f"--timestamp={timestamp}", f"--signature-policy={self.policy}"]
        self.buildah("build", *common, *arguments, str(context))

    def remove(self, *images: str) -> None:
        """Remove images, and containers that building them has left."""
        self.buildah("rm", "--all")
        self.buildah("rmi", "--force", *images)

    def has(self, image: str) -> bool:
        """Whether an image is in it."""
        return image in self.buildah("images", "--format={{.Name}}:{{.Tag}}").splitlines()

    @property
    def policy(self) -> Path:
        """A file that accepts images whoever signed them."""
        place = self.state / "policy.json"
        place.write_text(_POLICY)
        return place


@contextmanager
def storage() -> Iterator[Storage]:
    """Hold the storage of the cache; another process waits until the end of the context.

    Raises:
        ImageError: not root, or there is no buildah.
    """
    require_root("build an image")
    require({"buildah": "buildah", "unshare": "util-linux"})
    root = cache_directory() / "images" / "storage"
    with locked(root), tempfile.TemporaryDirectory(prefix="images-") as state:
        root.mkdir(exist_ok=True, mode=0o700)
        yield Storage(root, Path(state))
