"""What is refused of an archive."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from hack.oci.archive import ArchiveError, opened
from tests.hack.oci.images import image


def test_a_damaged_archive(tmp_path: Path) -> None:
    """A blob that is not what its name says is named."""
    archive = image(tmp_path, "trainer-operator", "amd64").archive
    data = archive.read_bytes()
    archive.write_bytes(data.replace(b"trainer-operator amd64", b"trainer-operator-amd64"))
    with opened(archive) as damaged, pytest.raises(ArchiveError, match=r"is damaged: blobs/sha256/"):
        damaged.blobs()


@pytest.mark.parametrize("content", [b"", b"no archive", None], ids=["empty", "other", "missing"])
def test_no_archive(tmp_path: Path, content: bytes | None) -> None:
    """It is named."""
    path = tmp_path / "some.oci.tar"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ArchiveError, match=r"some\.oci\.tar is no archive of an OCI image"), opened(path):
        pass


def test_archive_of_something_else(tmp_path: Path) -> None:
    """The file that it lacks is named."""
    path = tmp_path / "some.oci.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("manifest.json"))
    with opened(path) as found, pytest.raises(ArchiveError, match=r"some\.oci\.tar .*: it has no file index\.json"):
        next(found.manifests())


@pytest.mark.parametrize("text", ["{", "{}", '{"manifests": [{}]}', "[]"])
def test_index_of_something_else(tmp_path: Path, text: str) -> None:
    """The archive is named, whatever its index lacks."""
    path = tmp_path / "some.oci.tar"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("index.json")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text.encode()))
    with pytest.raises(ArchiveError, match=r"some\.oci\.tar is no archive of an OCI image"), opened(path) as found:
        next(found.manifests())
