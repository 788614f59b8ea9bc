"""The images that ours are built on, made from roots of Debian where no registry can be reached."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.images.base import OLDSTABLE, PYTHON, debian
from hack.images.host import Host
from hack.images.storage import Storage
from hack.pins import pins

DEBIAN: Final = "debian"
"""Instead of the reference of a base: make one from Debian's packages."""
_TIME: Final = 1767225600
_RUNTIME: Final = ("ca-certificates", "python3")
_WITH_TORCH: Final = """
FROM {base}
COPY constraints.txt /tmp/
RUN python3 -m pip install --quiet --break-system-packages --no-cache-dir --no-compile \\
      --constraint /tmp/constraints.txt torch numpy
"""


@dataclass(frozen=True, slots=True)
class Bases:
    """What the stages of a Dockerfile start from."""

    final: str
    """Of the image."""
    build: str
    """Of the stage that installs."""


def debian_bases(storage: Storage) -> Bases:
    """Two images of the same suite: with Python, and with pip and venv as well."""
    return Bases(_imported(storage, _RUNTIME, "python"), _imported(storage, PYTHON, "python-build"))


def torch_base(storage: Storage, host: Host, constraints: Path) -> str:
    """An image with PyTorch and NumPy in the versions that the constraints name, installed as the base's own."""
    build = debian_bases(storage).build
    image = f"{build}-torch-{pins(constraints.read_text())['torch']}"
    if not storage.has(image):
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "Dockerfile").write_text(_WITH_TORCH.format(base=build))
            shutil.copy(constraints, Path(directory) / "constraints.txt")
            arguments = [*host.build_arguments(Path(directory)), "--pull-never", f"--tag={image}"]
            storage.build(*arguments, context=Path(directory), timestamp=_TIME)
    return image


def _imported(storage: Storage, packages: tuple[str, ...], name: str) -> str:
    root = debian(OLDSTABLE, packages)
    image = f"localhost/{DEBIAN}-{name}:{root.name}"
    if not storage.has(image):
        container = storage.buildah("from", "scratch")
        try:
            storage.buildah("add", "--quiet", container, str(root), "/")
            storage.buildah("config", f"--cmd={json.dumps(['python3'])}", container)
            storage.buildah(
                "commit", "--quiet", f"--timestamp={_TIME}", f"--signature-policy={storage.policy}", container, image
            )
        finally:
            storage.buildah("rm", container)
    return image
