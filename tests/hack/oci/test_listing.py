"""Which images a folder has."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.oci.archive import ArchiveError
from hack.oci.listing import NAME, listed, write_list
from tests.hack.oci.images import image


def test_list(tmp_path: Path) -> None:
    """What was written is read, also after the folder has moved."""
    built = image(tmp_path / "here", "trainer-operator", "amd64")
    write_list([built], tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    (found,) = listed(tmp_path / "there")
    assert (found.name, found.tag, found.digest) == ("trainer-operator", "9.8.7", built.digest)
    assert found.archive == tmp_path / "there" / built.archive.name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(None, r"there is no .*images\.json: make images", id="missing"),
        pytest.param("[", r"images\.json is no list of images \(.*\): make images", id="cut"),
        pytest.param("[1]", r"images\.json is no list of images", id="other"),
        pytest.param('[{"name": "a"}]', r"images\.json is no list of images \('reference'\)", id="field"),
    ],
)
def test_no_list(tmp_path: Path, text: str | None, message: str) -> None:
    """The message names the file, and the target that makes it."""
    if text is not None:
        (tmp_path / NAME).write_text(text)
    with pytest.raises(ArchiveError, match=message):
        listed(tmp_path)


def test_an_archive_is_missing(tmp_path: Path) -> None:
    """A list without its archives is refused by name."""
    built = image(tmp_path, "trainer-operator", "amd64")
    write_list([built], tmp_path)
    built.archive.unlink()
    with pytest.raises(ArchiveError, match=built.archive.name):
        listed(tmp_path)
