"""Container storage of our own, so that nothing of this machine's is touched, and buildah on it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.cache import cache_directory, locked
from hack.images.errors import ImageError, require, require_root
from hack.images.host import CONFINED

_POLICY: Final = '{"default": [{"type": "insecureAcceptAnything"}]}'
"""Bases are named by digest where that matters; this machine's policy of signatures says nothing about them."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Images and containers below a directory."""

    root: Path
    """Where layers are kept."""
    state: Path
    """What is only true while processes run: mounts."""
    lock: int
    """Descriptor of the lock. Programs have it, too: it is held until the last of them has ended."""

    def buildah(self, *arguments: str) -> str:
        """Run buildah; it ends with this process, and what it has started and mounted ends with it.

        Raises:
            ImageError: it failed; the message has the last lines of what it printed.
        """
        command = [*CONFINED, "buildah", "--storage-driver=overlay", f"--root={self.root}", f"--runroot={self.state}"]
        done = subprocess.run(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            pass_fds=(self.lock,),
        )
        if done.returncode:
            last = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
            raise ImageError(f"buildah {arguments[0]} failed:\n{last}")
        return done.stdout.strip()

    def build(self, *arguments: str, context: Path, timestamp: int) -> None:
        """Build an image of a Dockerfile; files and image have the given time, in seconds since 1970."""
        common = ["--quiet", "--isolation=chroot", f"--timestamp={timestamp}", f"--signature-policy={self.policy}"]
        self.buildah("build", *common, *arguments, str(context))

    def unpack(self, archive: Path, directory: Path) -> None:
        """Make a directory of the files of an image in an OCI archive, with their owners and modes."""
        with tempfile.TemporaryDirectory() as context:
            (Path(context) / "Dockerfile").write_text(f"FROM oci-archive:{archive}\n")
            options = ["--quiet", f"--signature-policy={self.policy}", f"--output=type=local,dest={directory}"]
            image = self.buildah("build", *options, context)
        directory.chmod(0o755)
        self.remove(image)

    def remove(self, *images: str) -> None:
        """Remove images, and the containers that builds have left: buildah keeps that of a stage which adds nothing."""
        self.buildah("rm", "--all")
        self.buildah("rmi", *images)

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

    It is emptied first where the last one to hold it was interrupted or failed: killed at any instant, buildah leaves
    containers that it does not know itself, and whose images cannot be removed.

    Raises:
        ImageError: not root, or there is no buildah.
    """
    require_root("build an image")
    require({"buildah": "buildah", "unshare": "util-linux", "setpriv": "util-linux"})
    root = cache_directory() / "images" / "storage"
    unfinished = root.with_name("storage.unfinished")
    with locked(root) as lock, tempfile.TemporaryDirectory(prefix="images-") as state:
        if unfinished.exists():
            shutil.rmtree(root, ignore_errors=True)
        unfinished.touch()
        root.mkdir(exist_ok=True, mode=0o700)
        yield Storage(root, Path(state), lock)
        unfinished.unlink()
