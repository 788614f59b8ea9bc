"""Containers of our images under crun: read-only root, user of the image, no capabilities, network of this machine."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

USER: Final = 65532
"""The number in the Dockerfiles."""
HOSTS: Final = Path("/etc/hosts")
"""A kubelet gives one to each container, too."""
_NAMESPACES: Final = ("pid", "mount", "ipc", "uts")
_WITHOUT_CGROUPS: Final = (
    *("unshare", "--mount", "sh", "-c"),
    'mount -t tmpfs none /sys/fs/cgroup && exec "$@"',
    "crun",
)
"""crun refuses to start where both versions of cgroups have controllers, although it is to use none."""
_DEVICES: Final = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
    {
        "destination": "/dev/shm",
        "type": "tmpfs",
        "source": "shm",
        "options": ["nosuid", "noexec", "nodev", "mode=1777"],
    },
    {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},
]


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """What an image says about its processes."""

    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    environment: Mapping[str, str]
    user: str
    directory: str
    labels: Mapping[str, str]


def settings_of(archive: Path) -> ImageSettings:
    """Read the configuration of the image in an OCI archive."""
    command = ["skopeo", "inspect", "--config", f"oci-archive:{archive}"]
    section = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["config"]
    return ImageSettings(
        tuple(section.get("Entrypoint") or ()),
        tuple(section.get("Cmd") or ()),
        dict(each.split("=", 1) for each in section.get("Env") or ()),
        section.get("User", ""),
        section.get("WorkingDir") or "/",
        section.get("Labels") or {},
    )


@dataclass(frozen=True, slots=True)
class Container:
    """An image that was unpacked, and where its bundles go."""

    root: Path
    settings: ImageSettings
    bundles: Path

    def command(
        self,
        *arguments: str,
        entrypoint: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
        reads: Iterable[Path] = (),
        writes: Iterable[Path] = (),
        user: int = USER,
        root_is_read_only: bool = True,
    ) -> list[str]:
        """What this machine has to run for the image to start.

        Args:
            arguments: in place of those of the image, where there are any.
            entrypoint: in place of that of the image.
            environment: variables beside those of the image.
            reads: files and directories of this machine, which are there at the same path.
            writes: the same, and it may write to them.
            user: its number.
            root_is_read_only: as in the manifests.
        """
        name = f"e2e-{uuid.uuid4().hex[:12]}"
        bundle = self.bundles / name
        bundle.mkdir(parents=True)
        started = self.settings.entrypoint if entrypoint is None else tuple(entrypoint)
        variables = {**self.settings.environment, **(environment or {})}
        process = {
            "args": [*started, *(arguments or self.settings.command)],
            "env": [f"{key}={value}" for key, value in variables.items()],
            "cwd": self.settings.directory,
            "user": {"uid": user, "gid": user},
            "capabilities": {kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")},
            "noNewPrivileges": True,
        }
        mounts = [*_DEVICES, *(_bind(each, "ro") for each in (HOSTS, *reads)), *(_bind(each, "rw") for each in writes)]
        document = {
            "ociVersion": "1.0.0",
            "process": process,
            "root": {"path": str(self.root), "readonly": root_is_read_only},
            "mounts": mounts,
            "linux": {"namespaces": [{"type": each} for each in _NAMESPACES]},
        }
        (bundle / "config.json").write_text(json.dumps(document))
        state = self.bundles / "state"
        return [
            *_WITHOUT_CGROUPS,
            "crun",
            "--cgroup-manager=disabled",
            f"--root={state}",
            "run",
            f"--bundle={bundle}",
            name,
        ]

    def run(self, *arguments: str, timeout: float = 120, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run it to its end, within seconds; see `command` for the options."""
        command = self.command(*arguments, **options)
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
        )

    def python(self, code: str, interpreter: str = "python") -> str:
        """What a program prints with the Python of the image."""
        done = self.run("-c", code, entrypoint=[interpreter])
        assert done.returncode == 0, f"{shlex.quote(code)}:\n{done.stderr}"
        return done.stdout

    @contextmanager
    def derived(self) -> Iterator[Container]:
        """Give the image with a root of its own, to which files may be added, until the context closes.

        Other tests use the root of the image at the same time. Its files are hard links here: none may be changed.
        """
        with tempfile.TemporaryDirectory(prefix="derived-", dir=self.root.parent) as directory:
            root = Path(directory) / "root"
            subprocess.run(["cp", "--archive", "--link", self.root, root], check=True)
            yield replace(self, root=root)

    def files(self) -> dict[str, int]:
        """When each file was last written."""
        return {str(path): path.lstat().st_mtime_ns for path in self.root.rglob("*")}


def give(directory: Path) -> None:
    """Make the user of the image the owner of a directory and of what is in it."""
    for path in (directory, *directory.rglob("*")):
        shutil.chown(path, USER, USER)


def _bind(path: Path, access: str) -> dict[str, Any]:
    return {"destination": str(path), "type": "none", "source": str(path), "options": ["rbind", access]}
