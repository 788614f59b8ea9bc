"""The images of a release, as they are built: `images.json` of a folder lists them, with archives beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

MANAGER, INITIALIZER, TRANSFORMERS = "trainer-operator", "trainer-initializer", "transformers-runtime"
NAMES = (MANAGER, INITIALIZER, TRANSFORMERS)


@dataclass(frozen=True)
class Image:
    """An image of which the digest is known before it is in a registry."""

    name: str
    digest: str
    """Of its manifest, or of the index where it is for several platforms."""
    archive: Path
    """In the layout of OCI."""


def read(folder: Path) -> tuple[Image, ...]:
    """Read what `make images` or `make join-images` has written.

    Raises:
        ValueError: there is no list, or it lacks a field.
    """
    listed = folder / "images.json"
    try:
        entries = json.loads(listed.read_text("utf-8"))
        return tuple(Image(each["name"], each["digest"], folder / each["archive"]) for each in entries)
    except FileNotFoundError:
        raise ValueError(f"there is no {listed}: make images") from None
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{listed}: {error!r}; each image has name, digest and archive: make images") from None
