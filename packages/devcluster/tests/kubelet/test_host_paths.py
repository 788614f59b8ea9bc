"""Working directories of containers without mount namespaces."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from trainer_devcluster.kubelet.errors import VolumeError
from trainer_devcluster.kubelet.host_paths import (
    host_path,
    make_beneath,
    resolve_beneath,
    unreachable_mount,
)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A directory with a file, a directory and a socket."""
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        pytest.param("Directory", "file", "is not a directory", id="file as directory"),
        pytest.param("DirectoryOrCreate", "file", "is not a directory", id="file where a directory may be made"),
        pytest.param("Directory", "none", "is not a directory", id="nothing"),
        pytest.param("File", "directory", "is not a file", id="directory as file"),
        pytest.param("FileOrCreate", "directory", "is not a file", id="directory where a file may be made"),
        pytest.param("Socket", "file", "is not a socket file", id="file as socket"),
        pytest.param("CharDevice", "file", "is not a character device", id="file as device"),
        pytest.param("BlockDevice", "/dev/null", "is not a block device", id="the other kind of device"),
    ],
)
def test_refused(machine: Path, kind: str, name: str, message: str) -> None:
    """Another thing than the type says is refused in a kubelet's words, and nothing is made."""
    path = machine / name
    with pytest.raises(VolumeError, match=f"^{re.escape(f'hostPath type check failed: {path} {message}')}$"):
        host_path({"path": str(path), "type": kind})
    assert not (machine / "none").exists()


def test_unknown_type(tmp_path: Path) -> None:
    """A type that does not exist is named."""
    with pytest.raises(VolumeError, match=r"^Tape is an invalid volume type$"):
        host_path({"path": str(tmp_path), "type": "Tape"})


def test_file_in_a_directory_that_is_missing(tmp_path: Path) -> None:
    """Only directories are made with those above them."""
    with pytest.raises(FileNotFoundError):
        host_path({"path": str(tmp_path / "a" / "b"), "type": "FileOrCreate"})
    assert host_path({"path": str(tmp_path / "a" / "b"), "type": "DirectoryOrCreate"}).is_dir()


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


@pytest.mark.parametrize("is_directory", [True, False])
@pytest.mark.parametrize("path", ["out", "out/b", "absolute/b/c", "inside/b", "dangling", "loop/b", "file/b"])
def test_make_follows_no_link(root: Path, path: str, is_directory: bool) -> None:
    """A link that takes the place of a directory after the path was resolved is not followed."""
    with pytest.raises(OSError, match=path.split("/", maxsplit=1)[0]):
        make_beneath(root, path, is_directory=is_directory)
    assert list((root.parent / "outside").iterdir()) == []
    assert list((root / "real").iterdir()) == []


@pytest.mark.parametrize(
    ("directory", "targets", "problem"),
    [
        pytest.param("/work", ["/work", "/work/a"], "/work has other mounts below it", id="below the volume"),
        pytest.param("/work", ["/work/a/b/c", "/work/a"], "/work/a has other mounts below it", id="nested"),
    ],
)
def test_unreachable_mount(directory: str, targets: list[str], problem: str | None) -> None:
    """A mount is refused that would need a link in another volume."""
    container = {"workingDir": directory, "volumeMounts": [{"name": "v", "mountPath": path} for path in targets]}
    found = unreachable_mount(container)
    assert found is None if problem is None else found is not None and found.startswith(problem)
