"""Which images belong to a release."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.oci.listing import write_list
from hack.publish.platforms import join
from hack.release.images import INITIALIZER, MANAGER, images_of
from hack.release.settings import Release
from tests.hack.oci.images import image, platforms

RELEASE = Release("9.8.7", "c" * 40, 0)


@pytest.mark.parametrize("commit", ["", RELEASE.commit], ids=["without a label", "of the commit"])
def test_images(tmp_path: Path, capsys: pytest.CaptureFixture[str], commit: str) -> None:
    """Those that the folder lists; what it lacks is said."""
    write_list([image(tmp_path, name, "amd64", commit=commit) for name in (MANAGER, INITIALIZER)], tmp_path)
    assert [each.name for each in images_of(RELEASE, tmp_path)] == [MANAGER, INITIALIZER]
    assert capsys.readouterr().err == (
        f"note: {tmp_path} lacks transformers-runtime: manifests name the tag and no digest\n"
    )


def test_platforms(tmp_path: Path) -> None:
    """Also where one image is for several."""
    join(platforms(tmp_path, "amd64", "arm64"))
    (found,) = images_of(RELEASE, tmp_path)
    assert len(found.platforms) == 2


@pytest.mark.parametrize("commit", ["d" * 40, f"{RELEASE.commit}-dirty"])
def test_another_commit(tmp_path: Path, commit: str) -> None:
    """An image that was built before, or from a tree with changes, is refused with what makes the right one."""
    write_list([image(tmp_path, MANAGER, "amd64", commit=commit)], tmp_path)
    with pytest.raises(ValueError, match=rf"9\.8\.7\.oci\.tar was built from {commit}, the release is c+: make images"):
        images_of(RELEASE, tmp_path)


def test_another_version(tmp_path: Path) -> None:
    """So is one with the tag of another version."""
    write_list([image(tmp_path, MANAGER, "amd64")], tmp_path)
    with pytest.raises(ValueError, match=r"is trainer-operator:9\.8\.7, the release is 9\.8\.8: make images"):
        images_of(Release("9.8.8", "c" * 40, 0), tmp_path)
