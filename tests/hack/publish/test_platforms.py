"""Images of several platforms become one, whose digest is known before it is pushed."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from hack.oci.archive import INDEX, ArchiveError, opened
from hack.oci.listing import listed, write_list
from hack.publish.platforms import join
from hack.publish.programs import PublishError
from tests.hack.oci.images import image, platforms


def test_join(tmp_path: Path) -> None:
    """The index names the manifest of each platform by the platform of its configuration, and all blobs are there."""
    folder = platforms(tmp_path, "arm64", "amd64", names=("trainer-operator", "trainer-initializer"))
    joined = join(folder)
    assert [each.reference for each in joined] == ["trainer-initializer:9.8.7", "trainer-operator:9.8.7"]
    assert listed(folder) == joined
    for each in joined:
        assert [platform for platform, _ in each.platforms] == ["linux/amd64", "linux/arm64"]
        with opened(each.archive) as archive:
            (top,) = archive.entries()
            assert (top["digest"], top["mediaType"]) == (each.digest, INDEX)
            manifests = dict(archive.manifests())
            assert [*manifests] == [digest for _, digest in each.platforms]
            for manifest in manifests.values():
                for blob in (manifest["config"], *manifest["layers"]):
                    assert len(archive.blob(blob["digest"]).read()) == blob["size"]


def test_the_same_archives_give_the_same_image(tmp_path: Path) -> None:
    """Byte by byte, whatever the folders are called and whenever it is done."""
    first = join(platforms(tmp_path / "a", "amd64", "arm64"))
    second = tmp_path / "b"
    write_list([image(second / "one", "trainer-operator", "arm64")], second / "one")
    write_list([image(second / "two", "trainer-operator", "amd64")], second / "two")
    (joined,) = join(second)
    assert joined.archive.read_bytes() == first[0].archive.read_bytes()


def test_nothing_to_join(tmp_path: Path) -> None:
    """The message names the target that makes the folders."""
    with pytest.raises(PublishError, match=r"no folder with images.json: make images"):
        join(tmp_path)


def test_a_platform_lacks_an_image(tmp_path: Path) -> None:
    """Nothing is published for some platforms only."""
    platforms(tmp_path, "amd64", names=("trainer-operator", "trainer-initializer"))
    platforms(tmp_path, "arm64")
    with pytest.raises(PublishError, match=r"arm64 has trainer-operator:9.8.7"):
        join(tmp_path)


def test_a_platform_twice(tmp_path: Path) -> None:
    """A second archive of the same platform is refused, whatever its folder is called."""
    platforms(tmp_path, "amd64")
    write_list([image(tmp_path / "arm64", "trainer-operator", "amd64", "other")], tmp_path / "arm64")
    with pytest.raises(PublishError, match="is for linux/amd64, and so is another"):
        join(tmp_path)


def test_an_archive_of_another_build(tmp_path: Path) -> None:
    """What is listed is what is joined."""
    platforms(tmp_path, "amd64", "arm64")
    image(tmp_path / "arm64", "trainer-operator", "arm64", "built again")
    with pytest.raises(PublishError, match=r"does not contain sha256:[0-9a-f]+ alone"):
        join(tmp_path)


def test_an_archive_is_none(tmp_path: Path) -> None:
    """It is named."""
    platforms(tmp_path, "amd64")
    (archive,) = tmp_path.glob("amd64/*.tar")
    archive.write_bytes(b"")
    with pytest.raises(ArchiveError, match=rf"{archive.name} is no archive of an OCI image"):
        join(tmp_path)


def test_archives_can_be_read_by_others(tmp_path: Path) -> None:
    """Each file is a plain one that anybody may read."""
    (joined,) = join(platforms(tmp_path, "amd64", "arm64"))
    with tarfile.open(joined.archive) as opened:
        assert {(member.isfile(), member.mode, member.uid) for member in opened} == {(True, 0o644, 0)}
