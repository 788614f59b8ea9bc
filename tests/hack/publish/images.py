"""Images of one small layer, in archives as `make images` writes them."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from hack.publish.layout import MANIFEST, Image, write, write_list


def image(folder: Path, name: str, architecture: str, content: str = "") -> Image:
    """An image in a folder, without the list."""
    folder.mkdir(parents=True, exist_ok=True)
    blobs: dict[str, bytes] = {}

    def add(data: bytes, kind: str) -> dict[str, Any]:
        digest = sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    def text(value: object) -> bytes:
        return json.dumps(value).encode()

    layer = add(f"{name} {architecture} {content}".encode(), "layer.v1.tar")
    config = {"architecture": architecture, "os": "linux", "config": {}}
    config["rootfs"] = {"type": "layers", "diff_ids": [layer["digest"]]}
    parts = {"config": add(text(config), "config.v1+json"), "layers": [layer]}
    manifest = add(text({"schemaVersion": 2, "mediaType": MANIFEST, **parts}), "manifest.v1+json")
    top = {"schemaVersion": 2, "manifests": [manifest]}
    archive = folder / f"{name}-0.2.0.oci.tar"
    write({"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": text(top), **blobs}, archive)
    return Image(name, f"{name}:0.2.0", manifest["digest"], archive)


def platforms(folder: Path, *architectures: str, names: tuple[str, ...] = ("trainer-operator",)) -> Path:
    """A folder with a subfolder for each architecture."""
    for architecture in architectures:
        part = folder / architecture
        write_list([image(part, name, architecture) for name in names], part)
    return folder
