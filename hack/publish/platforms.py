"""Images of several platforms become one image each."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hack.oci.archive import INDEX, MANIFEST, Archive, blob_name, digest_of, json_of, opened, write
from hack.oci.listing import NAME, Image, listed, write_list
from hack.publish.programs import PublishError

_REFERENCE: Final = "org.opencontainers.image.ref.name"


def join(folder: Path) -> tuple[Image, ...]:
    """Make of the images in the subfolders of a folder, one for each platform, images of all platforms in the folder.

    The same archives give the same digest, so that it is known before anything is pushed.

    Args:
        folder: each subfolder with `images.json` is what `make images` has written on a machine of its platform.

    Raises:
        PublishError: there are none, they do not have the same images, or two are for one platform.
    """
    parts = sorted(path.parent for path in folder.glob(f"*/{NAME}"))
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
        with opened(image.archive) as archive:
            platform, entry = _manifest(image, archive)
            blobs |= archive.blobs()
        if platform in manifests:
            raise PublishError(f"{image.archive} is for {platform}, and so is another archive of {image.reference}")
        manifests[platform] = entry
    entries = [manifests[platform] for platform in sorted(manifests)]
    index = json_of({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries})
    digest = digest_of(index)
    first = images[0]
    descriptor = {"mediaType": INDEX, "digest": digest, "size": len(index), "annotations": {_REFERENCE: first.tag}}
    blobs[blob_name(digest)] = index
    target = folder / first.archive.name
    write(descriptor, blobs, target)
    platforms = tuple((platform, manifests[platform]["digest"]) for platform in sorted(manifests))
    return Image(first.name, first.reference, digest, target, platforms)


def _manifest(image: Image, archive: Archive) -> tuple[str, dict[str, Any]]:
    if [each["digest"] for each in archive.entries()] != [image.digest]:
        raise PublishError(f"{image.archive} does not contain {image.digest} alone, as images.json says: make images")
    manifest = archive.document(image.digest)
    config = archive.document(manifest["config"]["digest"])
    platform = {"architecture": config["architecture"], "os": config["os"]}
    if config.get("variant"):
        platform["variant"] = config["variant"]
    entry = {
        "mediaType": manifest.get("mediaType", MANIFEST),
        "digest": image.digest,
        "size": len(archive.blob(image.digest).read()),
        "platform": platform,
    }
    return f"{config['os']}/{config['architecture']}", entry
