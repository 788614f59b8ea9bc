"""The images that manifests and chart name."""

from __future__ import annotations

import sys
from pathlib import Path

from hack.oci.archive import opened
from hack.oci.listing import Image, listed
from hack.release.settings import Release

MANAGER, INITIALIZER, TRANSFORMERS = "trainer-operator", "trainer-initializer", "transformers-runtime"
NAMES = (MANAGER, INITIALIZER, TRANSFORMERS)
REVISION = "org.opencontainers.image.revision"
"""The label that has the commit."""


def images_of(release: Release, folder: Path) -> tuple[Image, ...]:
    """Give what a folder lists, and say which images of a release it lacks.

    Raises:
        ArchiveError: the folder has no list, or an archive cannot be read.
        ValueError: an image is of another version, or was built from another commit.
    """
    images = listed(folder)
    for image in images:
        if image.reference != f"{image.name}:{release.version}":
            raise ValueError(f"{image.archive} is {image.reference}, the release is {release.version}: make images")
        for commit in _commits(image) - {"", release.commit}:
            raise ValueError(f"{image.archive} was built from {commit}, the release is {release.commit}: make images")
    missing = set(NAMES) - {image.name for image in images}
    if missing:
        sys.stderr.write(f"note: {folder} lacks {', '.join(sorted(missing))}: manifests name the tag and no digest\n")
    return images


def _commits(image: Image) -> set[str]:
    with opened(image.archive) as archive:
        configurations = [archive.document(manifest["config"]["digest"]) for _, manifest in archive.manifests()]
    return {(each["config"].get("Labels") or {}).get(REVISION, "") for each in configurations}
