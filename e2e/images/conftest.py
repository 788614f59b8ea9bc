"""The images, each built once in a run on Debian's packages, or those that the folder $E2E_IMAGES lists."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from e2e import parts
from e2e.images.container import HOSTS, Container, settings_of
from hack.images import DEBIAN, IMAGES, build
from hack.images.storage import storage
from hack.oci.listing import Image, listed, write_list

PROGRAMS = ("buildah", "crun", "debootstrap", "skopeo")


@pytest.fixture(scope="session", autouse=True)
def can_build() -> None:
    """Skip where images cannot be built and started."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f"images are built and started with {', '.join(PROGRAMS)} of Debian; missing: {', '.join(missing)}")
    if os.geteuid():
        pytest.skip("only root can build images")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, can_build: None) -> Callable[[str], Path]:
    """Give the directory with the archive of an image, its `images.json` and its root file system."""
    shared = (parts.directory() or tmp_path_factory.mktemp("run")) / "images"

    def directory(name: str) -> Path:
        place = shared / name
        place.mkdir(parents=True, exist_ok=True)
        with (place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (place / "root").exists():
                [image] = _given(name, place) or build([name], output=place, base=DEBIAN)
                unpacked = place / "unpacking"
                shutil.rmtree(unpacked, ignore_errors=True)
                with storage() as ours:
                    ours.unpack(image.archive, unpacked)
                (unpacked / HOSTS.relative_to("/")).touch()
                unpacked.rename(place / "root")
        return place

    return directory


def _given(name: str, place: Path) -> tuple[Image, ...]:
    """The image of $E2E_IMAGES, listed in a directory of the run as well; none where the variable is not set."""
    if "E2E_IMAGES" not in os.environ:
        return ()
    given = [image for image in listed(Path(os.environ["E2E_IMAGES"])) if image.name == IMAGES[name].image]
    if not given:
        (pytest.fail if os.environ.get("COMPLETE") else pytest.skip)(f"$E2E_IMAGES has no image {IMAGES[name].image}")
    for image in given:
        (place / image.archive.name).unlink(missing_ok=True)
        (place / image.archive.name).symlink_to(image.archive.resolve())
    images = tuple(replace(image, archive=place / image.archive.name) for image in given)
    write_list(images, place)
    return images


@pytest.fixture(scope="session")
def container(built: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Container]:
    """Give an image that can be started."""

    def start(name: str) -> Container:
        place = built(name)
        [image] = listed(place)
        return Container(place / "root", settings_of(image.archive), tmp_path_factory.mktemp("bundles"))

    return start
