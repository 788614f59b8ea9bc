"""Images of one small layer, in archives as `make images` writes them."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from hack.oci.archive import archive_of
from hack.oci.listing import Image, write_list


def image(folder: Path, name: str, architecture: str, content: str = "", *, commit: str = "") -> Image:
    """An image in a folder, without the list."""
    folder.mkdir(parents=True, exist_ok=True)
    layer = f"{name} {architecture} {content}".encode()
    files = {"type": "layers", "diff_ids": [f"sha256:{sha256(layer).hexdigest()}"]}
    labels = {"org.opencontainers.image.revision": commit} if commit else None
    config = json.dumps(
        {"architecture": architecture, "os": "linux", "config": {"Labels": labels}, "rootfs": files}
    ).encode()
    archive = folder / f"{name}-9.8.7.oci.tar"
    kind = "application/vnd.oci.image"
    digest = archive_of(archive, (f"{kind}.config.v1+json", config), [(f"{kind}.layer.v1.tar", layer)])
    return Image(name, f"{name}:9.8.7", digest, archive)


def platforms(folder: Path, *architectures: str, names: tuple[str, ...] = ("trainer-operator",)) -> Path:
    """A folder with a subfolder for each architecture."""
    for architecture in architectures:
        part = folder / architecture
        write_list([image(part, name, architecture) for name in names], part)
    return folder
