"""Directories of pods."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from trainer_devcluster.kubelet import pod_directory
from trainer_devcluster.kubelet.errors import VolumeError
from trainer_devcluster.kubelet.pod_directory import PodDirectory, remove_memory, remove_orphans

NOBODY = 65534


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What stands for /dev/shm: everybody may make names in it."""
    path = tmp_path / "shm"
    path.mkdir()
    path.chmod(0o1777)
    monkeypatch.setattr(pod_directory, "_SHARED_MEMORY", path)
    monkeypatch.setattr(pod_directory, "_HAS_SHARED_MEMORY", True)
    return path


def base_of(shared: Path, data_dir: Path) -> Path:
    """The directory that a former version, or an attacker, knows the name of."""
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()
    return shared / f"trainer-devcluster-{os.geteuid()}-{digest[:16]}"


def test_memory_is_private(shared: Path, tmp_path: Path) -> None:
    """Other users of the machine cannot enter the directory of volumes in memory, even one of a former version."""
    base = base_of(shared, tmp_path)
    for mode in (None, 0o755):
        if mode is not None:
            base.chmod(mode)
        PodDirectory(tmp_path, "uid").create_memory()
        assert PodDirectory(tmp_path, "uid").memory_volume("v") == base / "uid" / "v"
        assert stat.S_IMODE(base.stat().st_mode) == 0o700


def plant_link(base: Path, target: Path) -> None:
    """An attacker makes a link to a directory of ours."""
    base.symlink_to(target)


def plant_file(base: Path, _target: Path) -> None:
    """An attacker makes a file."""
    base.touch()


def plant_directory(base: Path, _target: Path) -> None:
    """An attacker makes a directory that everybody may use."""
    base.mkdir()
    base.chmod(0o777)
    os.chown(base, NOBODY, NOBODY)


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(plant_link, id="link"),
        pytest.param(plant_file, id="file"),
        pytest.param(
            plant_directory,
            id="directory of another user",
            marks=[
                pytest.mark.root,
                pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user"),
            ],
        ),
    ],
)
def test_planted(shared: Path, tmp_path: Path, plant: object) -> None:
    """A directory of another user is neither used nor emptied, and the error names the remedy."""
    target = tmp_path / "target"
    (target / "uid").mkdir(parents=True)
    base = base_of(shared, tmp_path)
    assert callable(plant)
    plant(base, target)
    before = base.lstat()
    with pytest.raises(VolumeError, match=f"{base}.* not a directory of this user: .* another --data-dir"):
        PodDirectory(tmp_path, "uid").create_memory()
    PodDirectory(tmp_path, "uid").remove()
    remove_orphans(tmp_path, ())
    remove_memory(tmp_path)
    assert base.lstat() == before
    assert (target / "uid").is_dir()
