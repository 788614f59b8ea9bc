"""The data directory."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from trainer_devcluster.apiserver.storage.data_directory import exclusive, write_private


def test_private_files_replace_open_ones(tmp_path: Path) -> None:
    """A file that others could read is replaced, not written into."""
    path = tmp_path / "kubeconfig"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["kubeconfig"]


def test_a_refused_private_file_leaves_nothing_behind(tmp_path: Path) -> None:
    """A file that cannot be replaced is named, and what should have been in it is nowhere."""
    (tmp_path / "taken").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_private(tmp_path / "taken", b"secret")
    assert caught.value.filename == str(tmp_path / "taken")
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]


def test_a_directory_serves_one_at_a_time(tmp_path: Path) -> None:
    """A directory in use is refused until it is free again."""
    with exclusive(tmp_path / "data"):
        with pytest.raises(OSError, match="another dev cluster") as caught, exclusive(tmp_path / "data"):
            raise AssertionError("two at once")
        assert caught.value.filename == str(tmp_path / "data")
    with exclusive(tmp_path / "data"):
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert [entry.name for entry in (tmp_path / "data").iterdir()] == ["lock"]
