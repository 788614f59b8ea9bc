"""Files of volumes that are replaced all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer_devcluster.kubelet.errors import VolumeError
from trainer_devcluster.kubelet.volume_files import VolumeFile, write_files


def files(**content: str) -> list[VolumeFile]:
    """Files with these contents; `__` in a name is a slash."""
    return [VolumeFile(name.replace("__", "/"), text.encode(), 0o640) for name, text in content.items()]


def seen(volume: Path) -> dict[str, str]:
    """What a program finds, by the names that a volume shows."""
    names = [entry for entry in volume.iterdir() if not entry.name.startswith("..")]
    found = [path for name in names for path in ([name] if name.is_file() else name.rglob("*"))]
    return {str(path.relative_to(volume)): path.read_text() for path in found}


def test_change_is_made_at_once(tmp_path: Path) -> None:
    """Who has the old directory open goes on seeing it whole; the links lead to the new one, and nothing is left."""
    write_files(tmp_path, files(a="1", b="1", gone__c="1"))
    before = (tmp_path / "..data").resolve()
    assert write_files(tmp_path, files(a="2", b="2", new="2"))
    assert seen(tmp_path) == {"a": "2", "b": "2", "new": "2"}
    assert not before.exists()
    payload = (tmp_path / "..data").readlink().name
    assert {entry.name for entry in tmp_path.iterdir()} == {"..data", payload, "a", "b", "new"}


@pytest.mark.parametrize("path", ["../a", "a/../../b", "/a"])
def test_way_out(tmp_path: Path, path: str) -> None:
    """No file is written beside the volume."""
    with pytest.raises(VolumeError, match="must be relative and must not contain"):
        write_files(tmp_path, [VolumeFile(path, b"", 0o644)])
    assert list(tmp_path.iterdir()) == []
