"""The folder of a release."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.release.artefacts import make
from hack.release.checksums import write
from hack.release.settings import Release


def test_folder_of_somebody_else(tmp_path: Path) -> None:
    """A folder that is no release is not replaced by one."""
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match="is no release, since it has no SHA256SUMS"):
        make(Release("1.2.3", "c" * 40, 0), tmp_path, images=None)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_sums(tmp_path: Path) -> None:
    """They are as sha256sum prints them, in the order of the names."""
    (tmp_path / "b").write_bytes(b"b")
    (tmp_path / "a").write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    b = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"
    assert write(tmp_path).read_text() == f"{empty}  a\n{b}  b\n"
