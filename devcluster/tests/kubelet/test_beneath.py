"""Paths inside a volume."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trainer_devcluster.kubelet.beneath import make_beneath, resolve_beneath

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A volume with directories, a file and links, beside a directory that is not part of it."""
    (tmp_path / "outside").mkdir()
    volume = tmp_path / "volume"
    (volume / "real").mkdir(parents=True)
    (volume / "file").touch()
    for link, place in {
        "inside": "real",
        "out": "../outside",
        "absolute": str(tmp_path / "outside"),
        "sibling": "../volume-2",
        "loop": "loop",
        "dangling": "real/missing",
    }.items():
        (volume / link).symlink_to(place)
    return volume


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("a/b", "a/b", id="missing"),
        pytest.param("inside/b", "real/b", id="a link inside"),
        pytest.param("dangling/b", "real/missing/b", id="a link to what is missing"),
        pytest.param("out/b", None, id="a relative link out"),
        pytest.param("absolute/b", None, id="an absolute link out"),
        pytest.param("sibling", None, id="a link to a name that begins like the root's"),
        pytest.param("../outside", None, id="parent"),
    ],
)
def test_resolve(root: Path, path: str, expected: str | None) -> None:
    """Links inside the volume are resolved; what leads out of it has no path."""
    assert resolve_beneath(root, path) == expected


def test_a_volume_behind_a_link(root: Path) -> None:
    """The root itself may be reached through a link."""
    (root.parent / "alias").symlink_to(root)
    assert resolve_beneath(root.parent / "alias", "inside/b") == "real/b"


@pytest.mark.parametrize("is_directory", [True, False])
def test_make(root: Path, is_directory: bool) -> None:
    """A directory or an empty file is made with its parents; what exists stays."""
    for _ in range(2):
        make_beneath(root, "a/b/c", is_directory=is_directory)
    assert (root / "a" / "b" / "c").is_dir() is is_directory
    assert (root / "a" / "b" / "c").is_file() is not is_directory


@pytest.mark.parametrize("is_directory", [True, False])
@pytest.mark.parametrize("path", ["out", "out/b", "absolute/b/c", "inside/b", "dangling", "loop/b", "file/b"])
def test_make_follows_no_link(root: Path, path: str, is_directory: bool) -> None:
    """A link that takes the place of a directory after the path was resolved is not followed."""
    with pytest.raises(OSError, match=path.split("/", maxsplit=1)[0]):
        make_beneath(root, path, is_directory=is_directory)
    assert list((root.parent / "outside").iterdir()) == []
    assert list((root / "real").iterdir()) == []
