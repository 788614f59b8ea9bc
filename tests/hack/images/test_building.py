"""What is refused before anything is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.images import IMAGES, ImageError, build
from hack.images.__main__ import main
from hack.images.building import revision
from hack.images.errors import require
from hack.release.settings import ROOT, GitError
from tests.hack.release.commits import commit


def test_unknown_image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named with those that there are."""
    assert main(["manger", "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"error: there is no image manger; choose from {', '.join(IMAGES)}\n"


def test_missing_program() -> None:
    """The package that has it is named."""
    with pytest.raises(ImageError, match="no-such-program not found on PATH: apt-get install a-package"):
        require({"no-such-program": "a-package"})


def test_not_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is not root gets an error that says so."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(ImageError, match="only root can build an image"):
        build(["manager"], output=tmp_path)


@pytest.mark.parametrize("name", IMAGES)
def test_dockerfiles(name: str) -> None:
    """Each installs with hashes, and says by which name its stage is known where it has one."""
    text = (ROOT / IMAGES[name].dockerfile).read_text()
    assert text.count("--require-hashes") == text.count("--requirement ")
    assert (" AS build\n" in text) is IMAGES[name].has_build_stage
    assert f"images/{name}/requirements.txt" in text


def test_revision(tmp_path: Path) -> None:
    """A tree with changes is no commit, so no release takes an image of it for one."""
    commit(tmp_path)
    clean = revision(tmp_path)
    assert len(clean) == 40
    (tmp_path / "trainer" / "more.py").write_text("")
    assert revision(tmp_path) == f"{clean}-dirty"


def test_no_repository(tmp_path: Path) -> None:
    """What git complains of is said."""
    (tmp_path / ".git").write_text("nothing")
    with pytest.raises(GitError, match=r"git status failed in .*:\nfatal: "):
        revision(tmp_path)
