"""The images of this repository, built without a daemon, and roots of Debian to build and to try things on."""

from __future__ import annotations

from hack.images.base import debian
from hack.images.bases import DEBIAN
from hack.images.building import IMAGES, build
from hack.images.errors import ImageError
from hack.images.machine import CleanMachine, clean_machine

__all__ = [
    "DEBIAN",
    "IMAGES",
    "CleanMachine",
    "ImageError",
    "build",
    "clean_machine",
    "debian",
]
