"""`images.json`: which images the archives of a folder hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from hack.oci.archive import ArchiveError

NAME: Final = "images.json"


@dataclass(frozen=True, slots=True)
class Image:
    """A file `NAME-VERSION.oci.tar`: one image, for one platform or several."""

    name: str
    """Such as trainer-operator."""
    reference: str
    """Name and tag, such as trainer-operator:0.2.0."""
    digest: str
    """Of the manifest, or of the index where there are several platforms; `sha256:` is before it. A registry has the
    same after a push that does not compress anew."""
    archive: Path
    platforms: tuple[tuple[str, str], ...] = ()
    """Platform, such as linux/amd64, and digest of its manifest; none for what runs nowhere, such as a chart."""

    @property
    def tag(self) -> str:
        """The version."""
        return self.reference.rpartition(":")[2]


def listed(folder: Path) -> tuple[Image, ...]:
    """Give the images that `images.json` of a folder lists.

    Raises:
        ArchiveError: the folder has none, it cannot be read, or an archive is not there.
    """
    path = folder / NAME
    if not path.exists():
        raise ArchiveError(f"there is no {path}: make images")
    try:
        entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        images = tuple(
            Image(
                each["name"],
                each["reference"],
                each["digest"],
                folder / each["archive"],
                tuple((name, digest) for name, digest in each["platforms"]),
            )
            for each in entries
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ArchiveError(f"{path} is no list of images ({error}): make images") from error
    for image in images:
        if not image.archive.exists():
            raise ArchiveError(f"there is no {image.archive}, which {path} lists: make images")
    return images


def write_list(images: Iterable[Image], folder: Path) -> None:
    """Write `images.json`, with archives by their path in the folder."""
    entries = [asdict(image) | {"archive": str(image.archive.relative_to(folder))} for image in images]
    (folder / NAME).write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
