"""Archives of images in the layout of OCI, and how those of several platforms become one."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from hack.publish.programs import PublishError

INDEX: Final = "application/vnd.oci.image.index.v1+json"
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_LAYOUT: Final = b'{"imageLayoutVersion": "1.0.0"}'
_NAME: Final = "org.opencontainers.image.ref.name"


@dataclass(frozen=True, slots=True)
class Image:
    """A file `NAME-VERSION.oci.tar`: one image, for one platform or several."""

    name: str
    """Such as trainer-operator."""
    reference: str
    """Name and tag, such as trainer-operator:0.2.0."""
    digest: str
    """Of the manifest, or of the index where there are several platforms."""
    archive: Path
    platforms: tuple[tuple[str, str], ...] = ()
    """Platform and digest of its manifest, such as linux/amd64; empty where there is one that nobody has asked for."""

    @property
    def tag(self) -> str:
        """The version."""
        return self.reference.rpartition(":")[2]


def listed(folder: Path) -> tuple[Image, ...]:
    """Give the images that `images.json` of a folder lists.

    Raises:
        PublishError: the folder has none, or an archive is not there.
    """
    path = folder / "images.json"
    if not path.exists():
        raise PublishError(f"there is no {path}: make images")
    entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    images = tuple(
        Image(
            each["name"],
            each["reference"],
            each["digest"],
            folder / each["archive"],
            tuple((platform["platform"], platform["digest"]) for platform in each.get("platforms", ())),
        )
        for each in entries
    )
    for image in images:
        if not image.archive.exists():
            raise PublishError(f"there is no {image.archive}, which {path} lists")
    return images


def write_list(images: Iterable[Image], folder: Path) -> None:
    """Write `images.json`, with archives by their path in the folder."""
    entries = [
        {
            "name": image.name,
            "reference": image.reference,
            "digest": image.digest,
            "archive": str(image.archive.relative_to(folder)),
            "platforms": [{"platform": platform, "digest": digest} for platform, digest in image.platforms],
        }
        for image in images
    ]
    (folder / "images.json").write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")


def join(folder: Path) -> tuple[Image, ...]:
    """Make of the images in the subfolders of a folder, one for each platform, images of all platforms in the folder.

    The same archives give the same digest, so that it is known before anything is pushed.

    Args:
        folder: each subfolder with `images.json` is what `make images` has written on a machine of its platform.

    Raises:
        PublishError: there are none, they do not have the same images, or two are for one platform.
    """
    parts = sorted(path.parent for path in folder.glob("*/images.json"))
    if not parts:
        raise PublishError(f"{folder} has no folder with images.json: make images IMAGES={folder}/PLATFORM")
    built = {part: listed(part) for part in parts}
    references = {part.name: sorted(image.reference for image in images) for part, images in built.items()}
    if len({tuple(each) for each in references.values()}) > 1:
        said = "; ".join(f"{name} has {', '.join(each)}" for name, each in references.items())
        raise PublishError(f"the platforms do not have the same images: {said}")
    joined = tuple(
        _join_one([image for images in built.values() for image in images if image.reference == reference], folder)
        for reference in references[parts[0].name]
    )
    write_list(joined, folder)
    return joined


def _join_one(images: list[Image], folder: Path) -> Image:
    blobs: dict[str, bytes] = {}
    manifests: dict[str, dict[str, Any]] = {}
    for image in images:
        content = read(image.archive)
        blobs |= {name: data for name, data in content.items() if name.startswith("blobs/")}
        platform, entry = _manifest(image, content)
        if platform in manifests:
            raise PublishError(f"{image.archive} is for {platform}, and so is another archive of {image.reference}")
        manifests[platform] = entry
    entries = [manifests[platform] for platform in sorted(manifests)]
    index = _json({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries})
    digest = _digest(index)
    first = images[0]
    descriptor = {"mediaType": INDEX, "digest": digest, "size": len(index), "annotations": {_NAME: first.tag}}
    blobs[_blob(digest)] = index
    archive = folder / first.archive.name
    top = {"schemaVersion": 2, "manifests": [descriptor]}
    write({"oci-layout": _LAYOUT, "index.json": _json(top), **blobs}, archive)
    platforms = tuple((platform, manifests[platform]["digest"]) for platform in sorted(manifests))
    return Image(first.name, first.reference, digest, archive, platforms)


def _manifest(image: Image, content: Mapping[str, bytes]) -> tuple[str, dict[str, Any]]:
    top: list[dict[str, Any]] = json.loads(content["index.json"])["manifests"]
    if len(top) != 1 or top[0]["digest"] != image.digest:
        raise PublishError(f"{image.archive} does not contain {image.digest} alone, as images.json says: make images")
    data = content[_blob(image.digest)]
    manifest = json.loads(data)
    config = json.loads(content[_blob(manifest["config"]["digest"])])
    platform = {"architecture": config["architecture"], "os": config["os"]}
    if config.get("variant"):
        platform["variant"] = config["variant"]
    entry = {
        "mediaType": manifest.get("mediaType", MANIFEST),
        "digest": image.digest,
        "size": len(data),
        "platform": platform,
    }
    return f"{config['os']}/{config['architecture']}", entry


def read(archive: Path) -> dict[str, bytes]:
    """Give the files of an archive.

    Raises:
        PublishError: a file of `blobs` has another content than its name says.
    """
    content = dict(_members(archive))
    for name, data in content.items():
        if name.startswith("blobs/sha256/") and _blob(_digest(data)) != name:
            raise PublishError(f"{archive} is damaged: {name} has another content")
    return content


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(archive) as opened:
        for member in opened:
            stream = opened.extractfile(member)
            if stream is not None:
                yield member.name.removeprefix("./"), stream.read()


def write(content: Mapping[str, bytes], archive: Path) -> None:
    """Write an archive, which is the same for the same files."""
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as opened:
        for name in sorted(content):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content[name]), 0o644
            opened.addfile(member, io.BytesIO(content[name]))


def archive_of(archive: Path, config: tuple[str, bytes], layers: Iterable[tuple[str, bytes]]) -> str:
    """Write an archive of one manifest, and give the digest of that.

    Args:
        archive: the file.
        config: its media type and content.
        layers: media type and content of each.
    """
    blobs: dict[str, bytes] = {}

    def add(kind: str, data: bytes) -> dict[str, Any]:
        digest = _digest(data)
        blobs[_blob(digest)] = data
        return {"mediaType": kind, "digest": digest, "size": len(data)}

    parts = {"config": add(*config), "layers": [add(*layer) for layer in layers]}
    manifest = add(MANIFEST, _json({"schemaVersion": 2, "mediaType": MANIFEST, **parts}))
    top = {"schemaVersion": 2, "manifests": [manifest]}
    write({"oci-layout": _LAYOUT, "index.json": _json(top), **blobs}, archive)
    digest: str = manifest["digest"]
    return digest


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
